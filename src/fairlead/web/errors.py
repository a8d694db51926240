"""Whatever goes wrong in a request, told the same way: message, hint, code.

    request ──► Shield ──► BodyLimit ──► Gate ──► routes
                (counts, catches)

What Fairlead refuses carries its own status; what nobody foresaw is logged here under the
request's id and told without a word about the inside.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import errors
from fairlead.engine import messages
from fairlead.web import redaction

MAX_BODY = messages.MAX_PAYLOAD_BYTES + 65_536
"""The largest command, and room for what is written around it."""

_BODY_SECONDS = 15.0
_log = structlog.get_logger(__name__)


class TooLarge(errors.Rejected):
    """The body is larger than anything we would store."""

    http_status = 413


class TooSlow(errors.Rejected):
    """The body does not come to its end."""

    http_status = 408


def respond(error: errors.FairleadError) -> Response:
    headers = {}
    if error.http_status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.http_status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    body = describe(code(error), error.message, error.hint)
    if isinstance(error, errors.Invalid):
        body["error"]["problems"] = [
            {"path": each.path, "message": each.message, "hint": each.hint}
            for each in error.problems
        ]
    return json(body, error.http_status, headers)


def describe(code_: str, message: str, hint: str) -> dict[str, Any]:
    return {"error": {"message": message, "hint": hint, "code": code_}}


def code(error: errors.FairleadError) -> str:
    """An error's name for programs: NotFound is not_found."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


def json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    data = redaction.encoded(msgspec.json.encode(body))
    return Response(data, status, headers, media_type="application/json")


Page = Callable[[errors.FairleadError], Response]
"""How an error is shown to a person in front of a browser."""


def answer(scope: Scope, error: errors.FairleadError, page: Page) -> Response:
    if isinstance(error, errors.Unavailable) and "caller" not in scope.get("state", {}):
        # The words of the driver name hosts and users: those are for the log.
        _log.warning("store_unavailable", path=scope["path"], error=error.message)
        error = errors.Unavailable("the store did not answer", hint="the server's log says why")
    return page(error) if _is_for_a_person(scope) else respond(error)


def _is_for_a_person(scope: Scope) -> bool:
    """Asked by a browser that shows what comes, not by a program."""
    accepts = Headers(scope=scope).get("accept", "")
    return "text/html" in accepts and not scope["path"].startswith("/api/")


def install(app: FastAPI, page: Page) -> None:
    """Answer foreseen errors in our own words."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, errors.FairleadError)
        return answer(request.scope, error, page)

    async def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"malformed request: {where}: {first['msg'][:200]}"
        wrong = errors.Rejected(message, hint="see /api/openapi.json")
        return answer(request.scope, wrong, page)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == HTTPStatus.NOT_FOUND and _is_for_a_person(request.scope):
            missing = f"no such page: {request.url.path[:80]}"
            return page(errors.NotFound(missing, hint="start from /"))
        phrase = HTTPStatus(error.status_code).phrase
        body = describe(phrase.lower().replace(" ", "_"), phrase.lower(), "see /api/openapi.json")
        return json(body, error.status_code, dict(error.headers or {}))

    app.add_exception_handler(errors.FairleadError, ours)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, http)


Observe = Callable[[Scope, int, float], None]


class Shield:
    """The outermost layer: counts each request and lets no surprise through."""

    def __init__(self, app: ASGIApp, observe: Observe, page: Page) -> None:
        self._app = app
        self._observe = observe
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        began = time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except errors.FairleadError as error:
            if status == 0:
                await answer(scope, error, self._page)(scope, receive, watched)
        except Exception:  # noqa: BLE001 - the edge of the house: logged here, told without internals
            surprise = _surprise(scope)
            if status == 0:
                await surprise(scope, receive, watched)
        finally:
            self._observe(scope, status, time.perf_counter() - began)


class BodyLimit:
    """Refuses a body that is too large, by its stated length or while it arrives, or too slow."""

    def __init__(self, app: ASGIApp, seconds: float = _BODY_SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > MAX_BODY):
                raise _too_large()
        body = _Body(receive, asyncio.get_running_loop().time() + self._seconds)
        await self._app(scope, body.receive, send)


class _Body:
    """A request's body on its way; what comes after it (that the client left) may take its time."""

    def __init__(self, receive: Receive, deadline: float) -> None:
        self._receive = receive
        self._deadline = deadline
        self._seen = 0
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError as error:
            raise TooSlow("the body did not come to its end", hint="send it faster") from error
        self._seen += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._seen > MAX_BODY:
            raise _too_large()
        return message


def _too_large() -> TooLarge:
    return TooLarge(
        f"the body is larger than {MAX_BODY} bytes",
        hint="keep large data elsewhere and send where it is",
    )


def _surprise(scope: Scope) -> Response:
    request = secrets.token_hex(6)
    _log.exception("request_failed", request=request, method=scope["method"], path=scope["path"])
    return json(
        describe("internal", "something went wrong here", f"search the log for {request}"), 500
    )
