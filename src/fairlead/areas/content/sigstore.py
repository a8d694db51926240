"""Bundles of Sigstore that a key of one's own signed, as `cosign sign-blob --key` makes them.

Whose key it is was told by whoever described the content, so neither a certificate nor a log of
Sigstore's is asked: a bundle without our key's signature is refused, whatever else it brings.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import ClassVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairlead import errors

BEGIN = "-----BEGIN PUBLIC KEY-----"
_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle"
_HINT = "do not use this version; ask whoever releases it"


class _Signature(msgspec.Struct, frozen=True):
    signature: str


class _Bundle(msgspec.Struct, frozen=True, rename="camel"):
    media_type: str
    message_signature: _Signature
    """Of the bytes themselves; one of a statement about them is none."""


@dataclass(frozen=True, slots=True)
class CosignKey:
    """A public key of cosign."""

    key: ec.EllipticCurvePublicKey
    suffix: ClassVar[str] = ".sigstore.json"

    def verify(self, data: bytes, signature: bytes, what: str) -> None:
        """Rejected unless the key's owner signed these bytes."""
        try:
            bundle = msgspec.json.decode(signature, type=_Bundle)
            signed = base64.b64decode(bundle.message_signature.signature, validate=True)
        except (msgspec.DecodeError, binascii.Error, ValueError) as error:
            told = f"not a bundle of Sigstore with a signature: {what}"
            raise errors.Rejected(told, hint=_HINT) from error
        if not bundle.media_type.startswith(_MEDIA_TYPE):
            raise errors.Rejected(f"not a bundle of Sigstore: {what}", hint=_HINT)
        try:
            self.key.verify(signed, data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature as error:
            hint = f"{_HINT}; a certificate of Sigstore's is no key of theirs"
            raise errors.Rejected(f"the signature does not fit: {what}", hint=hint) from error


def parse_key(text: str) -> CosignKey:
    """From the text of a `.pub` file; Rejected where it is none."""
    try:
        key = serialization.load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_key() from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise _no_key()
    return CosignKey(key)


def _no_key() -> errors.Rejected:
    return errors.Rejected(
        "not a public key of cosign", hint="use cosign.pub of cosign generate-key-pair (P-256)"
    )
