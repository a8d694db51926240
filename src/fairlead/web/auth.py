"""The gate before all routes: is this really meant for us, and who is it?

On loopback, while no token has ever been made, whoever reaches us is this machine's user
and may do everything. A page of some other site in that user's browser reaches us too, so
the Host must be one of ours (a name that was rebound to 127.0.0.1 is not), and a request
that changes something must not come from a foreign page. As soon as a token exists, one is
asked for; it comes in the Authorization header, or in the page's cookie.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead import errors
from fairlead.engine import service
from fairlead.intents import intake, tokens
from fairlead.web import context as contexts
from fairlead.web import server

OPEN = ("/healthz", "/readyz", "/login")
ASSETS = "/assets/"
"""What anybody may see: it tells nothing about what is kept here."""

COOKIE = "fairlead_token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_REMEMBERED_SECONDS = 1.0
_MOST_REMEMBERED = 1024


class Doorkeeper:
    """Verifies tokens, and remembers an answer for a second at most."""

    def __init__(
        self,
        engine: service.Engine,
        bind: server.Bind,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._bind = bind
        self._ticks = ticks
        self._known: dict[bytes, tuple[float, intake.Caller]] = {}
        self._guarded = False
        self._looked_at = float("-inf")

    async def admit(self, shown: str | None, wall: contexts.Context) -> intake.Caller:
        """Who shows this; Unauthorised where that is nobody we know."""
        if shown is not None:
            return await self._verify(shown, wall)
        if self._bind.loopback and not await self._is_guarded():
            return intake.LOCAL
        raise errors.Unauthorised(
            "this takes a token",
            hint="send Authorization: Bearer TOKEN; make one with fairlead token create",
        )

    async def _verify(self, shown: str, wall: contexts.Context) -> intake.Caller:
        # Kept by digest: the memory of a long-lived process holds no usable token.
        key = hashlib.sha256(shown.encode(errors="replace")).digest()
        until, known = self._known.get(key, (0.0, None))
        if known is not None and self._ticks() < until:
            return known
        token = await self._engine.read(lambda s: tokens.verify(s, shown, wall.now()))
        found = intake.Caller(token.name, token.role, token.id)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = (self._ticks() + _REMEMBERED_SECONDS, found)
        return found

    async def _is_guarded(self) -> bool:
        """Whether any token was ever made; revoking the last one must not open the door."""
        if not self._guarded and self._ticks() - self._looked_at >= _REMEMBERED_SECONDS:
            self._guarded = bool(await self._engine.read(tokens.listed))
            self._looked_at = self._ticks()
        return self._guarded


class Gate:
    """Lets a request through to the routes with its caller known."""

    def __init__(self, app: ASGIApp, context: contexts.Context) -> None:
        self._app = app
        self._context = context
        self._keeper = Doorkeeper(context.engine, context.bind)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        check_host(headers, self._context.bind)
        check_origin(headers, scope["method"])
        state = scope.setdefault("state", {})
        if scope["path"] not in OPEN and not scope["path"].startswith(ASSETS):
            check_page(headers, scope["method"])
            shown = presented(headers)
            state["caller"] = await self._keeper.admit(shown, self._context)
            state["recheck"] = lambda: self._keeper.admit(shown, self._context)
        await self._app(scope, receive, send)


def check_host(headers: Headers, bind: server.Bind) -> None:
    """On loopback, only names of this machine: a rebound foreign name is refused."""
    name = _host_name(headers.get("host", ""))
    if bind.loopback and not (server.is_loopback(name) or name == bind.host):
        raise Misdirected(
            f"not a host of ours: {name[:80]}", hint="use 127.0.0.1 or localhost in the address"
        )


def check_origin(headers: Headers, method: str) -> None:
    """Our own page, or no page at all; from a foreign one a link may lead here, no more."""
    origin = headers.get("origin")
    foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    if method in _SAFE:
        # Without this, any page could hold hundreds of our live streams open.
        refused = foreign and headers.get("sec-fetch-mode") != "navigate"
    else:
        refused = foreign or (origin is not None and _netloc(origin) != headers.get("host"))
    if refused:
        raise errors.Forbidden(
            f"sent by a foreign page: {(origin or 'unknown')[:80]}",
            hint="use fairlead's own page, its command, or a client that is no browser",
        )


def check_page(headers: Headers, method: str) -> None:
    """A cookie goes along by itself, so it commands only from a page that is proven ours."""
    if method in _SAFE or "authorization" in headers or COOKIE not in _cookies(headers):
        return
    origin = headers.get("origin")
    ours = origin is not None and _netloc(origin) == headers.get("host")
    if not ours and headers.get("sec-fetch-site") != "same-origin":
        raise errors.Forbidden(
            "the cookie alone commands nothing: no origin",
            hint="use fairlead's own page, or send Authorization: Bearer TOKEN",
        )


class Misdirected(errors.Rejected):
    """The request names a host that we do not answer for."""

    http_status = 421


def presented(headers: Headers) -> str | None:
    """The token that a request shows, by header or by the page's cookie."""
    given = headers.get("authorization")
    if given is None:
        return _cookies(headers).get(COOKIE)
    scheme, _, text = given.partition(" ")
    if scheme.lower() != "bearer":
        raise errors.Unauthorised(
            "not a bearer token", hint="send Authorization: Bearer TOKEN, and no other scheme"
        )
    return text.strip()


def needs(role: tokens.Role) -> Callable[[Request], intake.Caller]:
    """A route's demand on its caller."""

    def check(request: Request) -> intake.Caller:
        found = contexts.caller(request)
        intake.authorise(found, role)
        return found

    return check


Operator = Annotated[intake.Caller, Depends(needs(tokens.Role.OPERATOR))]
Recheck = Callable[[], Awaitable[intake.Caller]]


def _cookies(headers: Headers) -> dict[str, str]:
    return cookie_parser(headers.get("cookie", ""))


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
