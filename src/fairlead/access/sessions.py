"""Sessions of the page: what a browser shows instead of a token.

A cookie goes to every port of its host, to the workloads there too. So it holds no token but a
session: it changes something only where a browser names our page as the origin, and ends after
some hours, with its token or when its owner signs out. The store keeps a digest of it, as of a
token.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from fairlead import errors
from fairlead.access import tokens
from fairlead.engine import clock
from fairlead.engine.store import protocol

COOKIE = "fairlead_session"
"""How the names of the page's cookies begin: what stands in front of workloads strips them."""

_FORM = re.compile(r"fls_(?P<id>[0-9a-f]{12})_(?P<secret>[0-9a-f]{64})")
_NOBODY = "0" * 64


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session; the only moment at which its text exists."""

    id: str
    text: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"Opened(id={self.id!r})"


def start(
    session: protocol.Session, token: tokens.TokenView, life: timedelta, now: datetime
) -> Opened:
    """A session of a token that was verified; it never outlives the token."""
    public, secret = secrets.token_hex(6), secrets.token_hex(32)
    until = now + life
    if token.expires_at is not None:
        until = min(until, token.expires_at)
    at = clock.to_millis(now)
    session.script(
        [
            ("forget_sessions", {"now": at}),
            (
                "insert_session",
                {
                    "id": public,
                    "token": token.id,
                    "digest": _digest(secret),
                    "now": at,
                    "expires": clock.to_millis(until),
                },
            ),
        ]
    )
    return Opened(public, f"fls_{public}_{secret}", until)


def verify(session: protocol.Session, text: str, now: datetime) -> tokens.TokenView:
    """The token behind a session; Unauthorised where either of them is no longer good."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise _over()
    rows = session.rows("get_session", id=form["id"])
    kept = rows[0][1] if rows else _NOBODY
    # Compared also where there is none, so that the time taken tells no id.
    right = hmac.compare_digest(kept, _digest(form["secret"]))
    if not rows or not right or clock.from_millis(rows[0][2]) <= now:
        raise _over()
    return tokens.usable(session, rows[0][0], now)


def end(session: protocol.Session, text: str) -> None:
    """Signed out; what is no session is none afterwards either."""
    form = _FORM.fullmatch(text)
    if form is not None:
        session.rows("end_session", id=form["id"], digest=_digest(form["secret"]))


def _over() -> errors.Unauthorised:
    return errors.Unauthorised("the session is over", hint="sign in again with a token")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
