"""Bundles of Sigstore: whose key signed them, and every way in which they do not fit."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from fairlead import errors
from fairlead.areas.content import signatures
from tests.cosign import Signer

SIGNER = Signer()
BUNDLE = SIGNER.bundle(b"data")


def test_what_the_owner_of_the_key_signed_is_taken() -> None:
    signatures.parse_key(f"\n{SIGNER.public}\n").verify(b"data", SIGNER.sign(b"data"), "it")


@pytest.mark.parametrize(
    ("bundle", "said"),
    [
        (SIGNER.bundle(b"date"), "does not fit"),
        (Signer().bundle(b"data"), "does not fit"),
        ({**BUNDLE, "messageSignature": {"signature": "AAAA"}}, "does not fit"),
        ({**BUNDLE, "messageSignature": {"signature": "a b"}}, "not a bundle"),
        ({**BUNDLE, "mediaType": "application/json"}, "not a bundle"),
        # Of a statement about something, which may be anything.
        ({"mediaType": BUNDLE["mediaType"], "dsseEnvelope": {}}, "not a bundle"),
        ([], "not a bundle"),
    ],
    ids=["other data", "other key", "short", "words", "other type", "statement", "list"],
)
def test_anything_else_is_refused(bundle: Any, said: str) -> None:
    key = signatures.parse_key(SIGNER.public)

    with pytest.raises(errors.Rejected, match=said):
        key.verify(b"data", json.dumps(bundle).encode(), "it")


@pytest.mark.parametrize(
    "text",
    [SIGNER.public.replace("M", "N", 1), Signer(ec.generate_private_key(ec.SECP384R1())).public],
    ids=["damaged", "other curve"],
)
def test_what_is_no_key_of_cosign_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a public key of cosign"):
        signatures.parse_key(text)
