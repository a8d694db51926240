"""Signatures of minisign: whose, over what, and every way in which they do not fit."""

import hashlib
from collections.abc import Mapping

import pytest

from fairlead import errors
from fairlead.areas.content import signatures
from tests.minisign import Signer

SIGNER = Signer()


def signed(files: Mapping[str, bytes], signer: Signer = SIGNER) -> dict[str, bytes]:
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in files.items()]
    sums = "".join(lines).encode()
    return {**files, "SHA256SUMS": sums, "SHA256SUMS.minisig": signer.sign(sums)}


@pytest.mark.parametrize("legacy", [False, True])
def test_what_the_owner_of_the_key_signed_is_taken(legacy: bool) -> None:  # noqa: FBT001 - a parameter of the test
    key = signatures.parse_key(f"untrusted comment: minisign public key\n{SIGNER.public}\n")

    key.verify(b"data", SIGNER.sign(b"data", legacy=legacy), "it")


@pytest.mark.parametrize(
    ("data", "signature", "said"),
    [
        (b"date", SIGNER.sign(b"data"), "does not fit"),
        (b"data", Signer().sign(b"data"), "does not fit"),
        (b"data", Signer(b"87654321").sign(b"data"), "another key"),
        (b"data", SIGNER.sign(b"data").replace(b"file:x", b"file:y"), "does not fit"),
        (b"data", b"", "not a signature"),
        (b"data", b"a\nb\nc\nd\n", "not a signature"),
        (b"data", SIGNER.sign(b"data").rpartition(b"\ntrusted")[0], "not a signature"),
    ],
    # Keys are new in each process, and workers must call a test the same.
    ids=["other data", "other secret", "other key", "other comment", "empty", "words", "half"],
)
def test_anything_else_is_refused(data: bytes, signature: bytes, said: str) -> None:
    with pytest.raises(errors.Rejected, match=said):
        signatures.parse_key(SIGNER.public).verify(data, signature, "it")


@pytest.mark.parametrize(
    "text", ["", "RW", "not base64!", SIGNER.public[:-4]], ids=["empty", "begun", "words", "short"]
)
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a public key"):
        signatures.parse_key(text)


def test_signed_files_are_taken() -> None:
    files = signed({"a.json": b"1", "sub/b.json": b"2"})

    signatures.verify_files(signatures.parse_key(SIGNER.public), files, "1.0.2")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a.json": b"2"}, "not what was signed in version 1.0.2: a.json"),
        ({"new.json": b"1"}, "not what was signed in version 1.0.2: new.json"),
        ({"a.json": None}, "signed, but missing in version 1.0.2: a.json"),
        ({"SHA256SUMS.minisig": None}, "not signed: no SHA256SUMS.minisig"),
        ({"SHA256SUMS": None}, "not signed: no SHA256SUMS"),
        ({"SHA256SUMS": b""}, "does not fit"),
    ],
)
def test_a_changed_an_added_and_a_missing_file_are_refused(
    change: dict[str, bytes | None], said: str
) -> None:
    given: dict[str, bytes | None] = {**signed({"a.json": b"1"}), **change}
    files = {path: data for path, data in given.items() if data is not None}

    with pytest.raises(errors.Rejected, match=said):
        signatures.verify_files(signatures.parse_key(SIGNER.public), files, "1.0.2")
