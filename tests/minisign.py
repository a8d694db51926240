"""Keys and signatures of minisign, made for tests as its tool makes them."""

import base64
import hashlib
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class Signer:
    """Holds a secret key."""

    number: bytes = b"12345678"
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> str:
        raw = b"Ed" + self.number + self.key.public_key().public_bytes_raw()
        return base64.b64encode(raw).decode()

    def sign(self, data: bytes, *, legacy: bool = False, comment: str = "file:x") -> bytes:
        message = data if legacy else hashlib.blake2b(data).digest()
        signed = self.key.sign(message)
        head = (b"Ed" if legacy else b"ED") + self.number
        lines = [
            "untrusted comment: signature from a test",
            base64.b64encode(head + signed).decode(),
            f"trusted comment: {comment}",
            base64.b64encode(self.key.sign(signed + comment.encode())).decode(),
        ]
        return "\n".join(lines).encode() + b"\n"
