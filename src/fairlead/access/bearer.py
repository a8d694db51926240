"""Who asks, by a signed token: a JWT whose key is in a file (a JWKS), read again when it changes.

What decides is ours, never the token's: the key says the algorithm, so neither `none` nor a shared
secret is ever tried, and a token without an end is none.
"""

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import structlog
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from fairlead import errors

_LONGEST = 8192
_MOST_KEPT = 4096
_LEEWAY_SECONDS = 30.0
_LOOK_SECONDS = 1.0
_LEAST_BITS = 2048
_HALF = 32
_HINT = "give a JWKS with keys of RSA (2,048 bits or more), P-256 or Ed25519"
_log = structlog.get_logger(__name__)

Verify = Callable[[bytes, bytes], None]
"""Of a signature and what was signed; InvalidSignature where it does not fit."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are good, and which claim says who asks."""

    file: Path
    issuer: str = ""
    audience: str = ""
    claim: str = "sub"


@dataclass(frozen=True, slots=True)
class _Key:
    algorithm: str
    verify: Verify


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]]


@dataclass
class Bearers:
    """Tells who sent a request by its token."""

    trusted: Issuer
    clock: Callable[[], float] = time.time
    _keys: Mapping[str, _Key] = field(init=False)
    _stamp: tuple[int, int] = field(init=False)
    _looked: float = field(init=False)
    _kept: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By token: who it is, and until when; a signature is checked once."""

    def __post_init__(self) -> None:
        self._stamp = _stamp(self.trusted.file)
        self._keys = read_keys(self.trusted.file)
        self._looked = self.clock()

    def who(self, token: str) -> str | None:
        """The claim that says who asks; None where the token is not good."""
        now = self.clock()
        self._follow(now)
        found = self._kept.get(token)
        if found is None:
            try:
                found = self._verified(token.strip())
            # The last one: what is nested too deeply.
            except (InvalidSignature, ValueError, msgspec.DecodeError, RecursionError):
                return None
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[token] = found
        return found[0] if now < found[1] + _LEEWAY_SECONDS else None

    def _follow(self, now: float) -> None:
        """A key that was taken out of the file opens nothing from then on."""
        if 0 <= now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            stamp = _stamp(self.trusted.file)
            if stamp != self._stamp:
                self._keys, self._stamp = read_keys(self.trusted.file), stamp
                self._kept.clear()
        except errors.FairleadError as error:
            _log.warning("keys_not_read", reason=error.message)

    def _verified(self, token: str) -> tuple[str, float]:
        """ValueError or another of the above where anything does not hold."""
        signed, _, signature = token.rpartition(".")
        parts = signed.split(".")
        if len(token) > _LONGEST or len(parts) != 2:  # noqa: PLR2004 - head and claims
            raise ValueError("no token")
        head, claims = (msgspec.json.decode(_decoded(each), type=dict[str, Any]) for each in parts)
        key = self._key(head)
        key.verify(_decoded(signature), signed.encode())
        return self._claimed(claims)

    def _key(self, head: Mapping[str, Any]) -> _Key:
        name = head.get("kid")
        if name is None and len(self._keys) == 1:
            (name,) = self._keys
        found = self._keys.get(name) if isinstance(name, str) else None
        if found is None or head.get("alg") != found.algorithm or "crit" in head:
            raise ValueError("no key of ours")
        return found

    def _claimed(self, claims: Mapping[str, Any]) -> tuple[str, float]:
        wanted, audience = self.trusted, claims.get("aud")
        who, ends, begins = claims.get(wanted.claim), claims.get("exp"), claims.get("nbf", 0)
        heard = audience if isinstance(audience, list) else [audience]
        holds = (
            isinstance(who, str)
            and type(ends) in {int, float}
            and type(begins) in {int, float}
            and begins <= self.clock() + _LEEWAY_SECONDS
            and (not wanted.issuer or claims.get("iss") == wanted.issuer)
            and (not wanted.audience or wanted.audience in heard)
        )
        if not holds or not who:
            raise ValueError("not for us")
        return str(who), float(ends or 0)


def read_keys(file: Path) -> Mapping[str, _Key]:
    """By their names; Rejected where the file has none, or one that is not strong enough."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_Keys).keys
        keys = {str(each.get("kid", "")): _public(each) for each in found}
    except OSError as error:
        said = f"cannot read the keys: {file}: {error.strerror}"
        raise errors.Rejected(said, hint="check its path and its rights") from error
    except (ValueError, KeyError, TypeError, AttributeError, msgspec.DecodeError) as error:
        raise errors.Rejected(f"not a set of keys: {file}: {error}", hint=_HINT) from error
    if not keys or len(keys) < len(found):
        raise errors.Rejected(f"no keys, or two of one name: {file}", hint=_HINT)
    return keys


def _public(words: Mapping[str, Any]) -> _Key:
    match words["kty"], words.get("crv"):
        case "RSA", _:
            numbers = rsa.RSAPublicNumbers(_number(words["e"]), _number(words["n"]))
            large = numbers.public_key()
            if large.key_size < _LEAST_BITS:
                raise ValueError(f"an RSA key of {large.key_size} bits")
            return _Key(
                "RS256", lambda s, d: large.verify(s, d, padding.PKCS1v15(), hashes.SHA256())
            )
        case "EC", "P-256":
            point = ec.EllipticCurvePublicNumbers(
                _number(words["x"]), _number(words["y"]), ec.SECP256R1()
            ).public_key()
            return _Key("ES256", lambda s, d: point.verify(_der(s), d, ec.ECDSA(hashes.SHA256())))
        case "OKP", "Ed25519":
            return _Key(
                "EdDSA", ed25519.Ed25519PublicKey.from_public_bytes(_decoded(words["x"])).verify
            )
        case kind, curve:
            raise ValueError(f"a key of kind {str(kind)[:20]} {str(curve or '')[:20]}")


def _der(signature: bytes) -> bytes:
    if len(signature) != 2 * _HALF:
        raise InvalidSignature
    first, second = signature[:_HALF], signature[_HALF:]
    return utils.encode_dss_signature(int.from_bytes(first), int.from_bytes(second))


def _number(text: str) -> int:
    return int.from_bytes(_decoded(text))


def _decoded(text: str) -> bytes:
    """Base64url without padding, as JWTs have it, and nothing else."""
    if not text.isascii() or set(text) & set("+/="):
        raise ValueError("not base64url")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError as error:
        said = f"cannot read the keys: {file}: {error.strerror}"
        raise errors.Rejected(said, hint="check its path and its rights") from error
    return found.st_mtime_ns, found.st_ino
