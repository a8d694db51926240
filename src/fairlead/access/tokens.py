"""API tokens: who may come through the doors, as what, and until when.

A token reads `flt_<id>_<secret>`. The secret is random and shown once; the store keeps its
digest only, so that a copy of the database opens no door. The id is public: it is what
lists, logs and revocations name.
"""

import enum
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fairlead import errors
from fairlead.access import scopes
from fairlead.engine import clock
from fairlead.engine.store import protocol

MAX_NAME = 80
_FORM = re.compile(r"flt_(?P<id>[0-9a-f]{12})_(?P<secret>[0-9a-f]{64})")
_NOBODY = "0" * 64


class Role(enum.IntEnum):
    """What a caller may do; each role may do all that the ones before it may."""

    VIEWER = 1
    OPERATOR = 2
    DEPLOYER = 3
    ADMIN = 4

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token to be made."""

    name: str
    role: Role
    expires_at: datetime | None = None
    scope: str = scopes.EVERYWHERE


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token as people see it, without anything secret."""

    id: str
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    scope: str = scopes.EVERYWHERE

    def usable(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Minted:
    """A new token; the only moment at which its text exists."""

    id: str
    text: str

    def __repr__(self) -> str:
        # A log line or a traceback that shows this object must not show the secret.
        return f"Minted(id={self.id!r})"


def role(word: str) -> Role:
    for each in Role:
        if each.word == word:
            return each
    words = ", ".join(each.word for each in Role)
    raise errors.Rejected(f"no such role: {word[:80]}", hint=f"use one of: {words}")


def mint(session: protocol.Session, request: TokenRequest, now: datetime) -> Minted:
    """Make a token and keep its digest."""
    if not request.name or len(request.name) > MAX_NAME or not request.name.isprintable():
        raise errors.Rejected(
            f"not a token name: {request.name[:80]!r}",
            hint=f"use 1 to {MAX_NAME} printable characters that tell whose it is",
        )
    if request.expires_at is not None and request.expires_at <= now:
        raise errors.Rejected(
            f"the token would have expired already: {request.expires_at:%Y-%m-%d %H:%M}",
            hint="name a time that is still to come",
        )
    public, secret = secrets.token_hex(6), secrets.token_hex(32)
    session.rows(
        "insert_token",
        id=public,
        name=request.name,
        role=request.role.word,
        scope=scopes.parse(request.scope),
        digest=_digest(secret),
        now=clock.to_millis(now),
        expires=None if request.expires_at is None else clock.to_millis(request.expires_at),
    )
    return Minted(public, f"flt_{public}_{secret}")


def listed(session: protocol.Session) -> list[TokenView]:
    """All tokens there ever were, oldest first."""
    return [_view(*row) for row in session.rows("list_tokens")]


def revoke(session: protocol.Session, public: str, now: datetime) -> None:
    """From now on refused; told again it stays so, told of an unknown one it complains."""
    if session.rows("revoke_token", id=public, now=clock.to_millis(now)):
        return
    if not session.rows("get_token", id=public):
        raise errors.NotFound(
            f"no such token: {public[:80]}", hint="list them with fairlead token list"
        )


def verify(session: protocol.Session, text: str, now: datetime) -> TokenView:
    """Whose token this is; Unauthorised where it is wrong, expired or revoked."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise _refused("the token is malformed")
    rows = session.rows("get_token", id=form["id"])
    kept = rows[0][4] if rows else _NOBODY
    # Compared also where there is none, so that the time taken tells no id.
    right = hmac.compare_digest(kept, _digest(form["secret"]))
    if not rows or not right:
        raise _refused("the token is not known here")
    return _usable(rows[0], now)


def usable(session: protocol.Session, public: str, now: datetime) -> TokenView:
    """The token of this id; Unauthorised where it is no longer good."""
    rows = session.rows("get_token", id=public)
    if not rows:
        raise _refused("the token is not known here")
    return _usable(rows[0], now)


def _usable(row: tuple[Any, ...], now: datetime) -> TokenView:
    token = _view(*row)
    if not token.usable(now):
        how = "expired" if token.revoked_at is None else "revoked"
        raise _refused(f"the token is {how}: {token.id}")
    return token


def _refused(message: str) -> errors.Unauthorised:
    return errors.Unauthorised(message, hint="make one with fairlead token create")


def _digest(secret: str) -> str:
    # A plain hash will do: 256 random bits cannot be guessed, unlike a password.
    return hashlib.sha256(secret.encode()).hexdigest()


def _view(public: str, name: str, word: str, scope: str, *rest: Any) -> TokenView:
    _, created, expires, revoked = rest
    assert created is not None
    return TokenView(
        public,
        name,
        role(word),
        clock.from_millis(created),
        None if expires is None else clock.from_millis(expires),
        None if revoked is None else clock.from_millis(revoked),
        scope,
    )
