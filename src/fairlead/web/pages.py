"""The pages of no area: streams, one stream with its events, signing in, assets."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import errors
from fairlead.access import sessions, tokens
from fairlead.engine import filters, visibility
from fairlead.web import auth, bodies
from fairlead.web import context as contexts

router = APIRouter(include_in_schema=False)
_ROWS = 100
_MOST_FORM = 4096
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SECURITY = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    # Not no-referrer: with it, browsers send a form of our own page with the origin null.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@router.get("/streams")
@auth.within_scope
async def streams(
    request: Request,
    before: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    where: str = "",
) -> Response:
    context, scope = contexts.of(request), contexts.caller(request).scope
    try:
        fits = contexts.where(request, where)
    except errors.Rejected as error:
        # What was typed stays in its box, with what is wrong about it.
        return _streams(request, where[: filters.MOST_TEXT], error=error)
    which = visibility.StreamFilter(before=before, limit=_ROWS, scope=scope, where=fits)
    found = await context.engine.read(lambda s: visibility.streams(s, which))
    # Which clusters there are is for those who may see all of them; others hear of their own.
    among = {each.queue for each in found} if scope else None
    problems = await context.engine.read(lambda s: visibility.problems(s, context.now(), among))
    return _streams(request, where, found, problems)


@router.get("/streams/{machine}/{key:path}")
@auth.within_scope
async def stream(
    request: Request,
    machine: str,
    key: str,
    after: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    name = contexts.stream(request, machine, key)
    engine = contexts.of(request).engine
    view = await engine.read(lambda s: visibility.stream(s, name))
    now = contexts.of(request).now()
    unserved = await engine.read(lambda s: visibility.unserved(s, view, now))
    # The latest ones unless asked otherwise: that is where something happens.
    start = max(0, view.version - _ROWS) if after is None else after
    events = await engine.read(lambda s: visibility.events(s, name, start, _ROWS))
    before = max(0, start - _ROWS) if start >= view.kept_from else None
    words = {"stream": view, "unserved": unserved, "events": events, "before": before}
    return contexts.page(request, "stream.html", **words)


@router.get("/login")
async def login(request: Request) -> Response:
    return contexts.of(request).layout.page("login.html")


@router.post("/login")
async def enter(request: Request) -> Response:
    """Open a session for a good token; its cookie no script can read and no other site can send."""
    context = contexts.of(request)
    form = await bodies.form(request, _MOST_FORM, "send a token and nothing else")
    text = form.get("token", "").strip()
    try:
        token = await context.engine.read(lambda s: tokens.verify(s, text, context.now()))
    except errors.Unauthorised as error:
        return context.layout.page("login.html", status=error.http_status, error=error)
    opened = await context.engine.write(
        lambda s: sessions.start(s, token, context.session_life, context.now())
    )
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        auth.cookie_name(context.bind),
        opened.text,
        expires=opened.expires_at,
        httponly=True,
        samesite="strict",
        secure=context.https or request.url.scheme == "https",
    )
    return answer


@router.post("/logout")
@auth.within_scope
async def leave(request: Request) -> Response:
    """End the session, on the server too: what a cookie held is worth nothing afterwards."""
    context = contexts.of(request)
    shown = auth.presented(request.headers, context.bind)
    if shown is not None and shown.by_cookie:
        await context.engine.write(lambda s: sessions.end(s, shown.text))
        request.scope["state"]["forget"](shown)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(auth.cookie_name(context.bind), httponly=True, samesite="strict")
    return answer


@router.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    return contexts.of(request).layout.asset(name)


def _streams(
    request: Request,
    where: str,
    found: visibility.Page[visibility.StreamView] | None = None,
    problems: Sequence[str] = (),
    error: errors.Rejected | None = None,
) -> Response:
    words = {
        "where": where,
        "streams": found or (),
        "further": found[-1].number if found and found.more else None,
        "problems": problems,
        "error": error,
    }
    status = 200 if error is None else error.http_status
    return contexts.page(request, "streams.html", status=status, **words)


class Headers:
    """Tells browsers what our answers may never do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_SECURITY]}
            await send(message)

        await self._app(scope, receive, dressed)
