"""What all pages share, and those of streams: the list, and one stream with its events."""

import importlib.resources
import json
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import parse_qs

import jinja2
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import errors
from fairlead.engine import library, messages
from fairlead.intents import tokens
from fairlead.web import auth
from fairlead.web import context as contexts

router = APIRouter(include_in_schema=False)
_ROWS = 100
_FILES = importlib.resources.files("fairlead.web")
_ASSETS = {
    "live.js": "text/javascript",
    "rollout.js": "text/javascript",
    "chart.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}
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
async def streams(
    request: Request, before: Annotated[int | None, Query(ge=0, lt=2**63)] = None
) -> Response:
    which = library.StreamFilter(before=before, limit=_ROWS + 1)
    found = await contexts.of(request).engine.read(lambda s: library.streams(s, which))
    further = found[_ROWS - 1].number if len(found) > _ROWS else None
    return page("streams.html", streams=found[:_ROWS], further=further)


@router.get("/streams/{machine}/{key:path}")
async def stream(
    request: Request,
    machine: str,
    key: str,
    after: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    name = messages.stream_name(machine, key)
    engine = contexts.of(request).engine
    view = await engine.read(lambda s: library.stream(s, name))
    # The latest ones unless asked otherwise: that is where something happens.
    start = max(0, view.version - _ROWS) if after is None else after
    events = await engine.read(lambda s: library.events(s, name, start, _ROWS))
    before = max(0, start - _ROWS) if start else None
    return page("stream.html", stream=view, events=events, before=before)


@router.get("/login")
async def login() -> Response:
    return page("login.html")


@router.post("/login")
async def enter(request: Request) -> Response:
    """Keep a good token in a cookie that no script can read and no other site can send."""
    form = parse_qs((await request.body()).decode(errors="replace"))
    text = form.get("token", [""])[0].strip()
    context = contexts.of(request)
    try:
        token = await context.engine.read(lambda s: tokens.verify(s, text, context.now()))
    except errors.Unauthorised as error:
        return page("login.html", status=error.http_status, error=error)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        auth.COOKIE,
        text,
        expires=token.expires_at,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.get("/assets/{name}")
async def asset(name: str) -> Response:
    if name not in _ASSETS:
        raise errors.NotFound(f"no such asset: {name[:80]}", hint="start from /")
    headers = {"Cache-Control": "no-cache"}
    content = (_FILES / "assets" / name).read_bytes()
    return Response(content, headers=headers, media_type=_ASSETS[name])


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


def refused(error: errors.FairleadError) -> Response:
    """A person in front of a browser gets a page, not JSON."""
    if isinstance(error, errors.Unauthorised) and error.http_status == 401:  # noqa: PLR2004 - the status
        return RedirectResponse("/login", 303)
    return page("error.html", status=error.http_status, error=error)


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A template's text with these values, never kept by a browser."""
    text = _templates.get_template(template).render({"error": None, **values})
    headers = {"Cache-Control": "no-store"}
    return Response(text, status, headers, media_type="text/html")


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC"


def _span(value: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 3 h 5 min."""
    seconds = round(value)
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("fairlead.web"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"moment": _moment, "compact": _compact, "span": _span}
