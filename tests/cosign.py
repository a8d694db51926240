"""Keys and bundles of cosign, made for tests as its tool makes them with a key of one's own."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def _made() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True, slots=True)
class Signer:
    """Holds a secret key."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=_made)

    @property
    def public(self) -> str:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()

    def sign(self, data: bytes) -> bytes:
        return json.dumps(self.bundle(data)).encode()

    def bundle(self, data: bytes) -> dict[str, Any]:
        signed = self.key.sign(data, ec.ECDSA(hashes.SHA256()))
        digest = hashlib.sha256(data).digest()
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"publicKey": {"hint": "a key of a test"}, "tlogEntries": []},
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": _text(digest)},
                "signature": _text(signed),
            },
        }


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
