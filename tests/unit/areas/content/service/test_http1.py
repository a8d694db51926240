"""The protocol: heads in any pieces, one answer each, and nobody who holds a place for ever."""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from fairlead.areas.content.service import http1
from fairlead.web import server

LONG = b"x" * 8_000_000
GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Echo:
    """Says what it was asked; `/long` has a long answer."""

    draining: bool = False
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)

    def respond(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
        self.asked.append((method, path, headers))
        body = LONG if path == "/long" else path.encode()
        return http1.head(200, [("content-length", str(len(body)))]), body


@dataclass
class Serving:
    """A server, and connections to it."""

    echo: Echo
    port: int
    faults: list[Any]
    opened: contextlib.AsyncExitStack

    async def connect(self, buffer: int = 65536) -> tuple[asyncio.StreamReader, socket.socket]:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=made, limit=buffer)
        self.opened.callback(writer.close)
        return reader, made

    async def told(self, *pieces: bytes) -> bytes:
        """All that is said until the connection ends."""
        reader, made = await self.connect()
        for piece in pieces:
            await asyncio.get_running_loop().sock_sendall(made, piece)
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            return await reader.read()


@contextlib.asynccontextmanager
async def door(most: int = 100, silence: float = 30.0) -> AsyncIterator[Serving]:
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
    echo = Echo()
    with server.claim(server.Bind("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        async with (
            contextlib.AsyncExitStack() as opened,
            http1.serving(echo, listening, most, silence),
        ):
            yield Serving(echo, port, faults, opened)
    assert faults == []


def statuses(said: bytes) -> list[str]:
    return [each.decode() for each in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", said)]


LAST = b"GET /last HTTP/1.1\r\nConnection: Close\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (GET + GET + LAST,),
        (b"\r\n", GET, b"\r\n" + GET[:7], GET[7:], LAST),
        tuple(bytes([each]) for each in GET + GET + LAST),
    ],
    ids=["at once", "in pieces", "byte by byte"],
)
async def test_each_request_has_its_answer_in_its_turn(pieces: tuple[bytes, ...]) -> None:
    async with door() as here:
        said = await here.told(*pieces)

    assert statuses(said) == ["200"] * 3
    assert [path for _, path, _ in here.echo.asked] == ["/a", "/a", "/last"]
    assert said.count(b"\r\ndate: ") == 3
    assert said.count(b"connection: close\r\n") == 1
    assert said.endswith(b"\r\n\r\n/last")


async def test_names_of_headers_are_small_and_one_that_comes_twice_is_one_list() -> None:
    sent = b"GET http://x/%C3%A4?q=1 HTTP/1.0\r\nUser-AGENT: a \r\nX:1\r\nx: \t2\r\nY: \xff\r\n\r\n"

    async with door() as here:
        await here.told(sent)

    assert here.echo.asked == [
        ("GET", "/\u00e4", {"user-agent": "a", "x": "1,2", "y": "\udcff"}),
    ]


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5",
        b"Content-Length: 0\r\nContent-Length: 34",
        b"content-length: +0",
        b"Transfer-Encoding: chunked",
        b"transfer-encoding:\tidentity\r\ncontent-length: 0",
    ],
)
@pytest.mark.parametrize("method", [b"GET", b"POST"])
async def test_nothing_behind_a_body_is_ever_taken_for_a_request(
    framing: bytes, method: bytes
) -> None:
    async with door() as here:
        said = await here.told(method + b" /a HTTP/1.1\r\n" + framing + b"\r\n\r\n" + HIDDEN)

    assert [path for _, path, _ in here.echo.asked] == ["/a"]
    assert statuses(said) == ["200"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", "400"),
        (b"\r\n\r\n\r\n\r\n", "400"),
        (b"GET /a HTTP/2.0\r\n\r\n", "400"),
        (b"GET  /a HTTP/1.1\r\n\r\n", "400"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\nHost: x\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\r\nHost : x\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\r\nHost: x\ny: z\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\r\nHost: \0\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\r\n: x\r\n\r\n", "400"),
        (b"GET /a HTTP/1.1\r\nA: " + b"x" * 40_000, "431"),
        (b"GET /a HTTP/1.1\r\n" + b"A: x\r\n" * 101 + b"\r\n", "431"),
    ],
)
async def test_what_is_no_request_is_refused_and_nothing_after_it_is_read(
    sent: bytes, status: str
) -> None:
    async with door() as here:
        said = await here.told(sent + HIDDEN)

    assert statuses(said) == [status]
    assert b"connection: close\r\n" in said
    assert here.echo.asked == []


@pytest.mark.parametrize("drip", [b"", b"GET /a HTTP/1.1\r\nX: "], ids=["silent", "dripping"])
async def test_who_begins_no_whole_request_loses_the_place(drip: bytes) -> None:
    async with door(silence=0.5) as here:
        reader, made = await here.connect()
        ended = asyncio.create_task(reader.read())
        async with asyncio.timeout(30):
            while not ended.done():
                with contextlib.suppress(OSError):
                    made.send(drip[:1])
                drip = drip[1:] + drip[:1]
                await asyncio.sleep(0.05)
        with contextlib.suppress(ConnectionResetError):
            assert ended.result() == b""


async def test_who_reads_slowly_gets_all_of_it_and_who_does_not_read_loses_the_place() -> None:
    async with door(silence=0.5) as here:
        slow, asks = await here.connect(buffer=4096)
        asks.send(b"GET /long HTTP/1.0\r\n\r\n")
        _, stuck = await here.connect(buffer=4096)
        stuck.send(b"GET /long HTTP/1.1\r\n\r\n")
        got = 0
        async with asyncio.timeout(60):
            while piece := await slow.read(1_000_000):
                # Longer than the patience in all.
                got += len(piece)
                await asyncio.sleep(0.0005)
        assert got > len(LONG)
        async with asyncio.timeout(30):
            while not is_gone(stuck):  # noqa: ASYNC110 - only a write tells that it is gone
                await asyncio.sleep(0.1)


def is_gone(one: socket.socket) -> bool:
    try:
        one.send(b"x")
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


async def test_who_asks_without_end_and_reads_nothing_is_heard_no_further() -> None:
    async with door() as here:
        _, made = await here.connect(buffer=4096)
        for _ in range(200):
            with contextlib.suppress(BlockingIOError):
                made.send(b"GET /long HTTP/1.1\r\n\r\n" * 50)
            await asyncio.sleep(0.001)

    assert 1 <= len(here.echo.asked) < 20


async def test_many_requests_in_one_piece_have_their_answers_while_they_are_read() -> None:
    many = 20_000
    async with door() as here:
        said = await here.told(b"GET /a HTTP/1.1\r\n\r\n" * many + LAST)

    assert len(statuses(said)) == many + 1


async def test_in_a_flood_the_longest_silent_makes_room_for_the_next() -> None:
    async with door(most=5) as here:
        silent = [await here.connect() for _ in range(5)]
        reader, busy = silent[0]
        await asyncio.get_running_loop().sock_sendall(busy, GET)
        await reader.readuntil(b"/a")

        assert statuses(await here.told(LAST)) == ["200"]

        with contextlib.suppress(ConnectionResetError):
            assert await silent[1][0].read() == b""
        await asyncio.get_running_loop().sock_sendall(busy, GET)
        await reader.readuntil(b"/a")


async def test_a_stop_lets_the_idle_go_and_ends_what_is_under_way() -> None:
    async with contextlib.AsyncExitStack() as later:
        async with door() as here:
            idle, _ = await here.connect()
            slow, asks = await here.connect(buffer=4096)
            asks.send(b"GET /long HTTP/1.1\r\n\r\n")
            await slow.readuntil(b"\r\n\r\n")
            rest = asyncio.create_task(slow.readexactly(len(LONG)))
            later.push_async_exit(here.opened.pop_all())

        assert await rest == LONG
        with contextlib.suppress(ConnectionResetError):
            assert await idle.read() == b""


PIECES = [b"GET", b" ", b"/a", b" HTTP/1.1", b"\r\n", b":", b"x", b"\n", b"\0", b"\xff", b"Host: x"]


@settings(max_examples=60, deadline=None)
@given(strategies.lists(strategies.sampled_from(PIECES) | strategies.binary(), max_size=40))
def test_whatever_is_sent_no_fault_comes_of_it(pieces: list[bytes]) -> None:
    async def tell() -> bytes:
        async with door() as here:
            return await here.told(*pieces, b"\r\n\r\n", LAST, b"\r\n\r\n")

    said = asyncio.run(tell())

    assert said.startswith(b"HTTP/1.1 ")
    assert set(statuses(said)) <= {"200", "400", "431"}
