"""Who made a version: signatures, of minisign or cosign, checked before anything of it is used."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import ClassVar, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fairlead import errors
from fairlead.areas.content import sigstore
from fairlead.areas.content.domain.edition import Files

SUMS = "SHA256SUMS"
_COMMENT = "trusted comment: "
_LINES = 4
_SUM = re.compile(r"([0-9a-f]{64})[ ][ *](.+)")
_HINT = "do not use this version; ask whoever releases it"


class Key(Protocol):
    """A public key, and what the name of a signature by it ends with."""

    suffix: ClassVar[str]

    def verify(self, data: bytes, signature: bytes, what: str) -> None:
        """Rejected unless the key's owner signed these bytes."""
        ...


@dataclass(frozen=True, slots=True)
class MinisignKey:
    """A public key of minisign."""

    number: bytes
    key: Ed25519PublicKey
    suffix: ClassVar[str] = ".minisig"

    def verify(self, data: bytes, signature: bytes, what: str) -> None:
        """Rejected unless the key's owner signed these bytes, and the comment beside them."""
        lines = signature.decode("utf-8", "replace").splitlines()
        signed = _decoded(lines[1], 74) if len(lines) >= _LINES else None
        whole = _decoded(lines[3], 64) if len(lines) >= _LINES else None
        if signed is None or whole is None or not lines[2].startswith(_COMMENT):
            raise errors.Rejected(f"not a signature of minisign: {what}", hint=_HINT)
        if signed[2:10] != self.number:
            raise errors.Rejected(f"signed by another key: {what}", hint=_HINT)
        # `ED` signs a digest, `Ed`, the older way, the bytes themselves.
        message = hashlib.blake2b(data).digest() if signed[:2] == b"ED" else data
        try:
            self.key.verify(signed[10:], message)
            self.key.verify(whole, signed[10:] + lines[2].removeprefix(_COMMENT).encode())
        except InvalidSignature as error:
            raise errors.Rejected(f"the signature does not fit: {what}", hint=_HINT) from error


def parse_key(text: str) -> Key:
    """From the text of a `.pub` file; Rejected where it is none."""
    if text.strip().startswith(sigstore.BEGIN):
        return sigstore.parse_key(text)
    line = text.strip().splitlines()[-1] if text.strip() else ""
    raw = _decoded(line, 42)
    if raw is None or raw[:2] != b"Ed":
        raise errors.Rejected(
            f"not a public key of minisign: {line[:80]}",
            hint="it begins with RW, as in minisign.pub",
        )
    return MinisignKey(raw[2:10], Ed25519PublicKey.from_public_bytes(raw[10:]))


def verify_files(key: Key, files: Files, version: str) -> None:
    """By the list of sums that is among them: every file stands there, as it is."""
    signature = f"{SUMS}{key.suffix}"
    for needed in (SUMS, signature):
        if needed not in files:
            hint = f"make {SUMS} with sha256sum, and sign it"
            raise errors.Rejected(f"version {version} is not signed: no {needed}", hint=hint)
    key.verify(files[SUMS], files[signature], f"{SUMS} of version {version}")
    listed = dict(_sums(files[SUMS]))
    for path, data in files.items():
        if path in {SUMS, signature}:
            continue
        if listed.get(path) != hashlib.sha256(data).hexdigest():
            said = f"not what was signed in version {version}: {path}"
            raise errors.Rejected(said, hint=_HINT)
    if missing := listed.keys() - files.keys():
        said = f"signed, but missing in version {version}: {min(missing)}"
        raise errors.Rejected(said, hint=_HINT)


def digest(files: Files) -> str:
    """One sum for all files, whatever brought them: the SHA-256 of their sorted list of sums."""
    listed = (f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files))
    return hashlib.sha256("".join(listed).encode("utf-8", "surrogateescape")).hexdigest()


def _sums(raw: bytes) -> list[tuple[str, str]]:
    lines = raw.decode("utf-8", "replace").splitlines()
    found = (_SUM.fullmatch(line) for line in lines)
    return [(each[2].removeprefix("./"), each[1]) for each in found if each]


def _decoded(text: str, length: int) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == length else None
