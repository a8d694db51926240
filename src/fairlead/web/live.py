"""Server-sent events: the feed as it happens, from any place on.

    client ──► Last-Event-ID ──► read from that place ──► caught up ──► wait for a commit
                                        ▲                                    │
                                        └────────────────────────────────────┘

This process' commits wake the readers at once; those of others are found by looking once a
second. A client that does not take its data is let go and may come back to where it was.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead import errors
from fairlead.engine import library, messages, service
from fairlead.web import auth, shapes
from fairlead.web import context as contexts

_CHUNK = 200
_LOOK = timedelta(seconds=1)
_HEARTBEAT_SECONDS = 15.0
_SLOW_SECONDS = 10.0
_MOST_CLIENTS = 256
_log = structlog.get_logger(__name__)
router = APIRouter(prefix="/api/v1", tags=["feed"])


@dataclass(frozen=True, slots=True)
class Told:
    """One event, already in the words of the wire."""

    stream: str
    place: library.Place
    text: bytes


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which streams a client hears of: one, all of a machine, or every one."""

    start: str
    whole: bool

    def has(self, stream: str) -> bool:
        return stream == self.start if self.whole else stream.startswith(self.start)


class SharedFeed:
    """The feed for many clients: those who stand at the same place share one read."""

    def __init__(self, engine: service.Engine) -> None:
        self.engine = engine
        self.clients = 0
        self._reads: dict[library.Place, asyncio.Task[Sequence[Told]]] = {}

    async def after(self, place: library.Place) -> Sequence[Told]:
        read = self._reads.get(place)
        if read is None:
            read = self._reads[place] = asyncio.create_task(self._read(place))
            read.add_done_callback(lambda _: self._reads.pop(place, None))
        # Shielded: one client that leaves must not take the others' read along.
        return await asyncio.shield(read)

    async def end(self) -> library.Place:
        return await self.engine.read(library.feed_end)

    async def _read(self, place: library.Place) -> Sequence[Told]:
        views = await self.engine.read(lambda s: library.feed(s, place, _CHUNK))
        return [Told(view.stream, view.place, _text(view)) for view in views]


@router.get(
    "/feed/live",
    summary="Events as they happen, as server-sent events",
    response_class=Response,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "One event a message."},
        401: {"model": shapes.Failure, "description": "No token, or not a good one."},
        503: {"model": shapes.Failure, "description": "Too many clients, or no store."},
    },
)
async def live(
    request: Request,
    after: Annotated[str, Query(description="Start after this place; empty: now.")] = "",
    stream: Annotated[str, Query(description="Only this stream; empty: all.")] = "",
    machine: Annotated[str, Query(description="Only streams of this machine.")] = "",
    last_event_id: Annotated[str, Header(description="Sent by browsers to resume.")] = "",
) -> Response:
    feed: SharedFeed = request.app.state.feed
    if feed.clients >= _MOST_CLIENTS:
        raise errors.Unavailable(
            f"too many live clients: {feed.clients}", hint="close some, or read /api/v1/feed"
        )
    start = messages.parse_stream(stream) if stream else f"{machine}/" if machine else ""
    wanted = Wanted(start, whole=bool(stream))
    resume = last_event_id or after
    place = library.parse_place(resume) if resume else await feed.end()
    return Live(feed, place, wanted, request)


class Live(Response):
    """A response that goes on until the client leaves, lags, or we stop."""

    media_type = "text/event-stream"

    def __init__(
        self,
        feed: SharedFeed,
        place: library.Place,
        wanted: Wanted,
        request: Request,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._feed = feed
        self._place = place
        self._wanted = wanted
        self._closing = contexts.of(request).closing
        self._recheck: auth.Recheck = request.scope["state"]["recheck"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - called so by the server
        self._feed.clients += 1
        tasks = [
            asyncio.create_task(self._pump(send)),
            asyncio.create_task(_left(receive)),
            asyncio.create_task(self._closing.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._feed.clients -= 1
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(outcomes[0], Exception):
            _log.info("live_client_let_go", reason=str(outcomes[0]) or "too slow")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SLOW_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        # The first words go out at once, so that the client knows it is connected.
        await _deliver(send, b": connected\nretry: 1000\n\n")
        loop = asyncio.get_running_loop()
        spoke = loop.time()
        with self._feed.engine.watch() as signal:
            while True:
                text, more = await self._next()
                if text or loop.time() - spoke >= _HEARTBEAT_SECONDS:
                    await _deliver(send, text or b": still here\n\n")
                    spoke = loop.time()
                if not more:
                    await self._feed.engine.wait(signal, _LOOK)
                    # A token may be revoked while its stream is open.
                    await self._allowed()

    async def _next(self) -> tuple[bytes, bool]:
        try:
            told = await self._feed.after(self._place)
        except errors.Unavailable:
            # The store is away: keep the line, and look again.
            return b"", False
        if told:
            self._place = told[-1].place
        wanted = [one.text for one in told if self._wanted.has(one.stream)]
        return b"".join(wanted), len(told) == _CHUNK

    async def _allowed(self) -> None:
        with contextlib.suppress(errors.Unavailable):
            await self._recheck()


async def _deliver(send: Send, text: bytes) -> None:
    # The server takes no more than the client reads, so a stalled client stalls here.
    async with asyncio.timeout(_SLOW_SECONDS):
        await send({"type": "http.response.body", "body": text, "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _text(view: library.EventView) -> bytes:
    data = shapes.Event.of(view).model_dump_json()
    return f"id: {view.place}\ndata: {data}\n\n".encode()
