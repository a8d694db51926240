"""A wire to PostgreSQL that breaks at one chosen commit: before it arrives, or after.

It reads the frontend's messages as they pass, so it knows which of them commits. "After" is
the cruel one: the server has committed, its answer is swallowed, and the client is left to
wonder. See the PostgreSQL manual, chapter "Frontend/Backend Protocol", for the formats.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

_READS = ("SELECT", "SHOW", "SET", "LISTEN", "BEGIN", "ROLLBACK", "DEALLOCATE", "UNLISTEN")


async def _nothing() -> None:
    pass


@dataclass(slots=True)
class Wire:
    """Where and how the connection breaks."""

    commit: int
    after: bool
    down_seconds: float = 0.0
    """How long nobody is let in afterwards."""

    text: str = ""
    """Count only statements that contain this, whether they commit or not."""

    blow: Callable[[], Awaitable[None]] = _nothing
    """What else happens at that moment."""

    commits: int = field(default=0, init=False)
    broken: bool = field(default=False, init=False)
    down: bool = field(default=False, init=False)
    lines: "set[_Line]" = field(default_factory=set, init=False)

    def breaks_at(self, statement: str) -> bool:
        if self.text in statement:
            self.commits += 1
            return self.commits == self.commit
        return False

    async def break_all(self) -> None:
        """Every connection at once, as when a cable is pulled."""
        self.broken = self.down = True
        for line in list(self.lines):
            line.cut()
        await self.blow()
        await asyncio.sleep(self.down_seconds)
        self.down = False


@contextlib.asynccontextmanager
async def wired(url: str, wire: Wire) -> AsyncIterator[str]:
    """The same database, reached over the wire."""
    parts = urlsplit(url)
    port = parts.port or 5432
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if wire.down:
            writer.close()
            return
        tasks.add(asyncio.ensure_future(carry(reader, writer)))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            theirs = await asyncio.open_connection("127.0.0.1", port)
            line = _Line(wire, (reader, writer), theirs)
            if await line.carry():
                await wire.break_all()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    own = server.sockets[0].getsockname()[1]
    query = "&".join(filter(None, [parts.query, "sslmode=disable", "gssencmode=disable"]))
    try:
        yield urlunsplit(("postgresql", f"postgres@127.0.0.1:{own}", parts.path, query, ""))
    finally:
        server.close()
        for line in list(wire.lines):
            line.cut()
        await asyncio.gather(*tasks)


_Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Line:
    """One client's connection."""

    def __init__(self, wire: Wire, ours: _Pair, theirs: _Pair) -> None:
        self._wire = wire
        self._ours = ours
        self._theirs = theirs
        self._names: dict[bytes, str] = {}
        self._in_transaction = False
        self._mute = False
        self._committed = asyncio.Event()

    def cut(self) -> None:
        self._ours[1].transport.abort()
        self._theirs[1].transport.abort()

    async def carry(self) -> bool:
        """Until an end hangs up; True if this is where the wire breaks."""
        self._wire.lines.add(self)
        back = asyncio.create_task(self._carry_back())
        try:
            return await self._carry_over()
        except (OSError, asyncio.IncompleteReadError):
            return False
        finally:
            self.cut()
            await asyncio.gather(back, return_exceptions=True)
            self._wire.lines.discard(self)

    async def _carry_over(self) -> bool:
        reader, writer = self._ours[0], self._theirs[1]
        (size,) = struct.unpack("!I", await reader.readexactly(4))
        writer.write(struct.pack("!I", size) + await reader.readexactly(size - 4))
        while True:
            kind, body = await _message(reader)
            breaks = self._breaks(kind, body)
            if breaks and not self._wire.after:
                return True
            self._mute = self._mute or breaks
            writer.write(kind + struct.pack("!I", len(body) + 4) + body)
            if self._mute and kind in b"QS":
                await writer.drain()
                await self._committed.wait()
                return True

    async def _carry_back(self) -> None:
        reader, writer = self._theirs[0], self._ours[1]
        try:
            while True:
                kind, body = await _message(reader)
                if not self._mute:
                    writer.write(kind + struct.pack("!I", len(body) + 4) + body)
                elif kind == b"Z":
                    self._committed.set()
        finally:
            self._committed.set()
            self._ours[1].transport.abort()

    def _breaks(self, kind: bytes, body: bytes) -> bool:
        statement = self._statement(kind, body)
        if statement is None or self._wire.broken:
            return False
        word = statement.lstrip().upper()
        inside = self._in_transaction
        if word.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            self._in_transaction = word.startswith("BEGIN")
        commits = word.startswith("COMMIT") or not (inside or word.startswith(_READS))
        return (commits or bool(self._wire.text)) and self._wire.breaks_at(statement)

    def _statement(self, kind: bytes, body: bytes) -> str | None:
        """What this message makes the server run, if anything."""
        if kind == b"Q":
            return body.rstrip(b"\0").decode()
        if kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            self._names[name] = text.decode()
        if kind == b"B":
            return self._names[body.split(b"\0", 2)[1]]
        return None


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    (size,) = struct.unpack("!I", head[1:])
    return head[:1], await reader.readexactly(size - 4)
