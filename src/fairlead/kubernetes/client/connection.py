"""HTTP/1.1 over one connection: a request goes out, its answer comes in, then the next.

Beneath the pool. The parser is llhttp, by httptools; what is left to us is when an answer is
whole, what happens when it never will be, and that nobody reads faster than we take it.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable

import httptools

# More in one go is not taken from the socket before somebody has read it.
_ROOM = 2**20
_LONGEST_HEAD = 2**16
_FIRST_FINAL = 200


class Broken(ConnectionError):
    """The connection ended, or spoke no HTTP, before the answer was whole."""


class Answer:
    """What came back, as far as it came."""

    __slots__ = ("body", "headers", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        """All of it, or nothing where it is read piece by piece."""

    def header(self, name: str) -> str:
        """The value under a name, empty for none."""
        wanted = name.lower().encode()
        for found, value in self.headers:
            if found.lower() == wanted:
                return value.decode("latin-1")
        return ""


class HttpConnection(asyncio.Protocol):
    """One connection, used by one call at a time."""

    def __init__(self, ended: Callable[["HttpConnection"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._awaited: Answer | None = None
        """The answer that is not whole yet."""

        self._pieces: list[bytes] = []
        self._held = self._head = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        self._in_pieces = self._begun = False
        self.gone = self._loop.create_future()
        """Set once the connection is closed."""

        self.trust: ssl.SSLContext | None = None
        self.idle_since = 0.0
        self.is_used = False
        """True once an answer has come: before its next one, the server may have closed it."""

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def is_open(self) -> bool:
        return self._error is None and not self.transport.is_closing()

    async def exchange(self, request: bytes, until: float) -> Answer:
        """Send a request and take in the whole answer, by this time of the loop."""
        answer = self._send(request, until, in_pieces=False)
        try:
            await self._news()
        except BaseException:
            # Half an answer may still come: nobody else shall take it for theirs.
            self.abort()
            raise
        answer.body = b"".join(self._pieces)
        self._rest()
        return answer

    async def begin(self, request: bytes, until: float) -> Answer:
        """Send a request and wait until its answer begins; `pieces` has the rest.

        Whatever has not come by this time of the loop is given up.
        """
        answer = self._send(request, until, in_pieces=True)
        try:
            while not self._begun:
                await self._news()
        except BaseException:
            self.abort()
            raise
        return answer

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body of an answer that has begun, as it comes."""
        try:
            while self._pieces or self._awaited is not None:
                if not self._pieces:
                    await self._news()
                    continue
                piece = b"".join(self._pieces)
                self._pieces.clear()
                self._flow(-len(piece))
                yield piece
        except BaseException:
            self.abort()
            raise
        self._rest()

    def attach(self, transport: asyncio.Transport) -> None:
        """Go on over another transport, as after a proxy has opened the way."""
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)
        self._rest()
        self.is_used = False

    def abort(self) -> None:
        self._fail(Broken("closed by us"))

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            broken = Broken(f"not an answer in HTTP/1.1: {error}")
            broken.__cause__ = error
            self._fail(broken)

    def connection_lost(self, error: Exception | None) -> None:
        if error is None and self._ends_with_connection():
            self._awaited = None
        broken = Broken("the connection was closed")
        broken.__cause__ = error
        self._fail(broken)
        self.gone.set_result(None)
        self._ended(self)

    # What the parser tells.

    def on_message_begin(self) -> None:
        self._head = 0
        if self._awaited is None:
            self._fail(Broken("an answer without a request"))
        else:
            self._awaited.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._awaited is not None:
            self._awaited.headers.append((name, value))
        self._head += len(name) + len(value)
        if self._head > _LONGEST_HEAD:
            self._fail(Broken("the headers of the answer do not end"))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._awaited is not None and status >= _FIRST_FINAL:
            self._awaited.status = status
            self._begun = True
            if self._in_pieces:
                self._wake()

    def on_body(self, piece: bytes) -> None:
        if self._awaited is None:
            return
        self._pieces.append(piece)
        if self._in_pieces:
            self._flow(len(piece))
            self._wake()

    def on_message_complete(self) -> None:
        if not self._begun:
            # 100 Continue and its like: the answer itself is still to come.
            return
        self._awaited = None
        if not self._parser.should_keep_alive():
            self._error = self._error or Broken("closed by the server")
        self._wake()

    # What happens inside.

    def _send(self, request: bytes, until: float, *, in_pieces: bool) -> Answer:
        if self._error is not None:
            raise self._error
        self._awaited = answer = Answer()
        self._in_pieces, self._begun = in_pieces, False
        self._timer = self._loop.call_at(until, self._fail, TimeoutError("no answer in time"))
        self.transport.write(request)
        return answer

    async def _news(self) -> None:
        """Until the answer is whole; in pieces, until there is more of it."""
        if self._error is None and self._awaited is not None:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._error is not None and self._awaited is not None:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _rest(self) -> None:
        """The answer was taken: the next may be asked for, where the server keeps us."""
        self._stop_timer()
        self._awaited, self.is_used = None, True
        self._pieces.clear()
        self._held = 0
        if self._error is not None:
            self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flow(self, more: int) -> None:
        """Stop reading while much is held that nobody has taken."""
        before, self._held = self._held, self._held + more
        if self._transport is None or self._transport.is_closing():
            return
        if before <= _ROOM < self._held:
            self._transport.pause_reading()
        elif self._held <= _ROOM < before:
            self._transport.resume_reading()

    def _ends_with_connection(self) -> bool:
        """Whether the answer is one whose end is that of the connection."""
        awaited = self._awaited
        if awaited is None or not self._begun or self._error is not None:
            return False
        return not (awaited.header("Content-Length") or awaited.header("Transfer-Encoding"))
