"""The gate before all routes: is this really meant for us, and who is it?

On loopback, while no token has ever been made, whoever reaches us is this machine's user
and may do everything. A page of some other site in that user's browser reaches us too, so
the Host must be one of ours (a name that was rebound to 127.0.0.1 is not), and a request
that changes something must not come from a foreign page. As soon as a token exists, one is
asked for, in the Authorization header; the page's cookie holds a session that was opened by one.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead import errors, values
from fairlead.access import intake, sessions, tokens
from fairlead.engine import service
from fairlead.web import context as contexts
from fairlead.web import server

OPEN = ("/healthz", "/readyz", "/login")
ASSETS = "/assets/"
"""What anybody may see: it tells nothing about what is kept here."""

HOOKS = "/hooks/"
"""Doors for programs that know no token and sign what they send; each checks that by itself."""

E = TypeVar("E", bound=Callable[..., Any])
_SAFE = ("GET", "HEAD", "OPTIONS")
FIGURES = "/metrics"
_REMEMBERED_SECONDS = 1.0
_MOST_REMEMBERED = 1024
_PATIENCE_SECONDS = 3.0
_AWAY_SECONDS = 600.0
"""While the store cannot be asked, for so long it counts for figures who somebody was."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request shows: a token in its header, or the page's session in a cookie."""

    text: str
    by_cookie: bool = False

    @property
    def digest(self) -> bytes:
        kind = b"session" if self.by_cookie else b"token"
        return hashlib.sha256(kind + self.text.encode(errors="replace")).digest()


_NOBODY = Credential("").digest
"""Who shows nothing."""


def cookie_name(bind: server.Bind) -> str:
    """Of this port: two control planes of one host must not sign each other out."""
    return f"{sessions.COOKIE}_{bind.port}"


class Authenticator:
    """Verifies tokens and sessions; an answer counts for a second, or while the store is away."""

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

    async def admit(self, shown: Credential | None, wall: contexts.WebContext) -> intake.Caller:
        """Who shows this; Unauthorised where that is nobody we know."""
        if shown is not None:
            return await self._verify(shown, wall)
        if self._bind.loopback and not await self._is_guarded():
            return self._remembered(_NOBODY, intake.LOCAL)
        self._known.pop(_NOBODY, None)
        raise errors.Unauthorised(
            "this takes a token",
            hint="set FAIRLEAD_TOKEN, or send Authorization: Bearer TOKEN;"
            " make one with fairlead token create",
        )

    async def admit_to_figures(
        self, shown: Credential | None, wall: contexts.WebContext
    ) -> intake.Caller:
        """As admit; but a graph is needed most while the store, which knows tokens, is away."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self.admit(shown, wall)
        except (errors.Unavailable, TimeoutError) as error:
            key = _NOBODY if shown is None else shown.digest
            at, known = self._known.get(key, (0.0, None))
            if known is None or self._ticks() - at > _AWAY_SECONDS:
                raise errors.Unavailable(
                    "the store, which knows the tokens, does not answer",
                    hint="who was admitted in the last ten minutes may read /metrics meanwhile",
                ) from error
            return known

    def forget(self, shown: Credential) -> None:
        """It is over: not even for a second more."""
        self._known.pop(shown.digest, None)

    async def _verify(self, shown: Credential, wall: contexts.WebContext) -> intake.Caller:
        # Kept by digest: the memory of a long-lived process holds no usable token.
        key = shown.digest
        at, known = self._known.get(key, (0.0, None))
        if known is not None and self._ticks() - at < _REMEMBERED_SECONDS:
            return known
        verify = sessions.verify if shown.by_cookie else tokens.verify
        try:
            token = await self._engine.read(lambda s: verify(s, shown.text, wall.now()))
        except errors.Unauthorised:
            self.forget(shown)
            raise
        return self._remembered(key, intake.Caller(token.name, token.role, token.id, token.scope))

    def _remembered(self, key: bytes, found: intake.Caller) -> intake.Caller:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = (self._ticks(), found)
        return found

    async def _is_guarded(self) -> bool:
        """Whether any token was ever made; revoking the last one must not open the door."""
        if not self._guarded and self._ticks() - self._looked_at >= _REMEMBERED_SECONDS:
            self._guarded = bool(await self._engine.read(tokens.listed))
            self._looked_at = self._ticks()
        return self._guarded


class Gate:
    """Lets a request through to the routes with its caller known."""

    def __init__(self, app: ASGIApp, context: contexts.WebContext) -> None:
        self._app = app
        self._context = context
        self._keeper = Authenticator(context.engine, context.bind)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        check_host(headers, self._context.bind)
        check_origin(headers, scope["method"])
        state = scope.setdefault("state", {})
        if scope["path"] not in OPEN and not scope["path"].startswith((ASSETS, HOOKS)):
            check_page(headers, scope["method"], self._context.bind)
            shown = presented(headers, self._context.bind)
            state["signed_in"] = shown is not None and shown.by_cookie
            admit = self._keeper.admit
            if scope["path"] == FIGURES:
                admit = self._keeper.admit_to_figures
            state["caller"] = await admit(shown, self._context)
            state["forget"] = self._keeper.forget
            state["recheck"] = lambda: self._keeper.admit(shown, self._context)
        await self._app(scope, receive, send)


def check_host(headers: Headers, bind: server.Bind) -> None:
    """On loopback, only names of this machine: a rebound foreign name is refused."""
    name = _host_name(headers.get("host", ""))
    if bind.loopback and not (values.is_loopback(name) or name == bind.host):
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


def check_page(headers: Headers, method: str, bind: server.Bind) -> None:
    """A cookie goes along by itself, so it commands only from a page that is proven ours."""
    signed_in = cookie_name(bind) in _cookies(headers)
    if method in _SAFE or "authorization" in headers or not signed_in:
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


def presented(headers: Headers, bind: server.Bind) -> Credential | None:
    """What a request shows, by header or by the page's cookie."""
    given = headers.get("authorization")
    if given is None:
        kept = _cookies(headers).get(cookie_name(bind))
        return None if kept is None else Credential(kept, by_cookie=True)
    scheme, _, text = given.partition(" ")
    if scheme.lower() != "bearer":
        raise errors.Unauthorised(
            "not a bearer token", hint="send Authorization: Bearer TOKEN, and no other scheme"
        )
    return Credential(text.strip())


def needs(role: tokens.Role) -> Callable[[Request], intake.Caller]:
    """A route's demand on its caller."""

    def check(request: Request) -> intake.Caller:
        found = contexts.caller(request)
        intake.authorise(found, role)
        return found

    return check


def within_scope(endpoint: E) -> E:
    """A route that shows and changes no more than its caller's scope holds."""
    endpoint.honours_scope = True  # type: ignore[attr-defined]  # a mark on the function
    return endpoint


def refuse_beyond_scope(request: Request) -> None:
    """For every route: one that does not heed scopes is closed to callers that have one."""
    caller = request.scope.get("state", {}).get("caller")
    heeds = getattr(request.scope["endpoint"], "honours_scope", False)
    if caller is not None and caller.scope and not heeds:
        raise errors.Forbidden(
            f"this token is good for one project or namespace only: {caller.scope}",
            hint="use a token without a scope (fairlead token create)",
        )


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
