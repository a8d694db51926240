"""Server-sent events: the feed as it happens, from any place on.

    client ──► Last-Event-ID ──► read from that place ──► caught up ──► wait for a commit
                                        ▲                                    │
                                        └────────────────────────────────────┘

This process' commits wake the readers at once; those of others are found by looking once a
second. A client that does not take its data is let go and may come back to where it was.

Memory is bounded by bytes: a client holds one chunk, sent in small pieces, and clients at one place
hold the same one, each event of it serialised once and off the event loop.
"""

import asyncio
import contextlib
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead import errors
from fairlead.access import scopes
from fairlead.engine import messages, service, visibility
from fairlead.engine.store import protocol
from fairlead.web import auth, event_json, shapes
from fairlead.web import context as contexts

_CHUNK = 200
_CHUNK_BYTES = 512 * 1024
"""A chunk ends with the event that makes it larger than this."""

_PIECE_BYTES = 64 * 1024
"""The server keeps some pieces of each client's in memory, however large one is."""

_LOOK = timedelta(seconds=1)
_HEARTBEAT_SECONDS = 15.0
_SLOW_SECONDS = 10.0
_MOST_CLIENTS = 256
_MOST_NAMES = 20
_MOST_OF_ONE = 64
"""Of one token's: a script that loses count must not shut the others out."""

_log = structlog.get_logger(__name__)
router = APIRouter(prefix="/api/v1", tags=["feed"])


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event, already in the words of the wire."""

    stream: messages.StreamName
    place: visibility.Place
    text: bytes


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Chunk:
    """Events from one place on, as many as one read holds."""

    events: tuple[FeedEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """Which streams a client hears of: some, all of a machine, or every one within its scope."""

    names: frozenset[str]
    machine: str
    scope: str = scopes.EVERYWHERE

    def has(self, stream: messages.StreamName) -> bool:
        asked = stream in self.names if self.names else stream.startswith(self.machine)
        return asked and scopes.covers(self.scope, stream)


class SharedFeed:
    """The feed for many clients: those who stand at the same place share one read."""

    def __init__(self, engine: service.Engine) -> None:
        self.engine = engine
        self._clients: Counter[str] = Counter()
        self._reads: dict[visibility.Place, asyncio.Task[Chunk]] = {}
        # Weak: a chunk lives for as long as one client is sending it, and a slow one that comes
        # to the same place meanwhile need not hold a copy of its own.
        self._chunks: weakref.WeakValueDictionary[visibility.Place, Chunk] = (
            weakref.WeakValueDictionary()
        )

    @property
    def clients(self) -> int:
        return self._clients.total()

    def enter(self, who: str) -> None:
        """Take a place, before anything is waited for: hundreds may ask in the same moment."""
        for count, most in (
            (self._clients.total(), _MOST_CLIENTS),
            (self._clients[who], _MOST_OF_ONE),
        ):
            if count >= most:
                raise errors.Unavailable(
                    f"too many live clients: {count}", hint="close some, or read /api/v1/feed"
                )
        self._clients[who] += 1

    def leave(self, who: str) -> None:
        self._clients[who] -= 1
        self._clients += Counter()  # forgets who has none left

    async def after(self, place: visibility.Place) -> Chunk:
        if (kept := self._chunks.get(place)) is not None:
            return kept
        read = self._reads.get(place)
        if read is None:
            read = self._reads[place] = asyncio.create_task(self._read(place))
            read.add_done_callback(lambda _: self._reads.pop(place, None))
        # Shielded: one client that leaves must not take the others' read along.
        return await asyncio.shield(read)

    async def end(self) -> visibility.Place:
        return await self.engine.read(visibility.feed_end)

    async def _read(self, place: visibility.Place) -> Chunk:
        chunk = await self.engine.read(lambda session: _chunk(session, place))
        if chunk.events:
            self._chunks[place] = chunk
        return chunk


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
@auth.within_scope
async def live(
    request: Request,
    after: Annotated[str, Query(description="Start after this place; empty: now.")] = "",
    stream: Annotated[
        Sequence[str], Query(max_length=_MOST_NAMES, description="Only these streams; none: all.")
    ] = (),
    machine: Annotated[str, Query(description="Only streams of this machine.")] = "",
    last_event_id: Annotated[str, Header(description="Sent by browsers to resume.")] = "",
) -> Response:
    feed: SharedFeed = request.app.state.feed
    names = frozenset(messages.parse_stream(each) for each in stream if each)
    caller = contexts.caller(request)
    fits = FeedFilter(names, f"{machine}/" if machine else "", caller.scope)
    resume = last_event_id or after
    known = visibility.parse_place(resume) if resume else None
    who = caller.token or ""
    feed.enter(who)
    try:
        place = known or await feed.end()
    except BaseException:
        feed.leave(who)
        raise
    return Live(feed, place, fits, request)


class Live(Response):
    """A response that goes on until the client leaves, lags, or we stop."""

    media_type = "text/event-stream"

    def __init__(
        self,
        feed: SharedFeed,
        place: visibility.Place,
        fits: FeedFilter,
        request: Request,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._feed = feed
        self._place = place
        self._filter = fits
        self._who = contexts.caller(request).token or ""
        self._closing = contexts.of(request).closing
        self._recheck: auth.Recheck = request.scope["state"]["recheck"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - called so by the server
        tasks = [
            asyncio.create_task(self._pump(send)),
            asyncio.create_task(_left(receive)),
            asyncio.create_task(self._closing.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._feed.leave(self._who)
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(outcomes[0], Exception):
            _log.info("live_client_dropped", reason=str(outcomes[0]) or "too slow")
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
                chunk = await self._next()
                for piece in _pieces(self._texts(chunk, silent=loop.time() - spoke)):
                    await _deliver(send, piece)
                    spoke = loop.time()
                if not chunk.events:
                    await self._feed.engine.wait(signal, _LOOK)
                    # A token may be revoked while its stream is open.
                    await self._allowed()

    async def _next(self) -> Chunk:
        try:
            return await self._feed.after(self._place)
        except errors.Unavailable:
            # The store is away: keep the line, and try again.
            return Chunk()

    def _texts(self, chunk: Chunk, silent: float) -> Iterator[bytes]:
        """What the client is told of a chunk; something at least once in a while."""
        heard = [one for one in chunk.events if self._filter.has(one.stream)]
        if chunk.events:
            self._place = chunk.events[-1].place
        yield from (one.text for one in heard)
        if not heard and silent >= _HEARTBEAT_SECONDS:
            yield b": still here\n\n"

    async def _allowed(self) -> None:
        with contextlib.suppress(errors.Unavailable):
            await self._recheck()


async def _deliver(send: Send, text: bytes) -> None:
    # The server takes no more than the client reads, so a stalled client stalls here.
    async with asyncio.timeout(_SLOW_SECONDS):
        await send({"type": "http.response.body", "body": text, "more_body": True})


def _pieces(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Small texts together, large ones in parts."""
    held: list[bytes] = []
    size = 0
    for text in texts:
        for start in range(0, len(text), _PIECE_BYTES):
            held.append(text[start : start + _PIECE_BYTES])
            size += len(held[-1])
            if size >= _PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _chunk(session: protocol.Session, place: visibility.Place) -> Chunk:
    views = visibility.feed(session, place, _CHUNK, visibility.raw, _CHUNK_BYTES)
    return Chunk(tuple(FeedEvent(view.stream, view.place, _text(view)) for view in views))


def _text(view: visibility.EventView) -> bytes:
    # A line break would end the message; inside a string of JSON there is none.
    data = event_json.event(view).replace(b"\n", b" ")
    return b"id: %s\ndata: %s\n\n" % (str(view.place).encode(), data)
