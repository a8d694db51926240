"""One connection: an answer is the same however it is cut, and half of one is none."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.kubernetes.client.connection import Answer, Broken, HttpConnection

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Level: low\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-level: low\r\n\r\n"
    b"2\r\nhe\r\n3;note\r\nllo\r\n0\r\n\r\n"
)
AFTER_INTERIM = b"HTTP/1.1 100 Continue\r\nX-Level: none\r\n\r\n" + PLAIN


class Socket(asyncio.Transport):
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.reads = True
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent += data

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


def wired() -> tuple[HttpConnection, Socket]:
    connection, socket = HttpConnection(lambda _: None), Socket()
    connection.connection_made(socket)
    return connection, socket


async def asking(connection: HttpConnection) -> "asyncio.Task[Answer]":
    task = asyncio.create_task(connection.exchange(b"ask", asyncio.get_running_loop().time() + 60))
    await asyncio.sleep(0)
    return task


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if a < b]


@given(
    st.lists(st.sampled_from([PLAIN, CHUNKED, AFTER_INTERIM]), min_size=1, max_size=3),
    st.lists(st.integers(0, 1000), max_size=12),
)
def test_answers_are_the_same_however_they_are_cut(told: list[bytes], cuts: list[int]) -> None:
    async def run() -> None:
        connection, socket = wired()
        for each in told:
            task = await asking(connection)
            for piece in pieces_of(each, cuts):
                connection.data_received(piece)
            answer = await task
            assert (answer.status, answer.body) == (200, b"hello")
            assert answer.header("X-LEVEL") == "low"
            assert connection.is_open
        assert socket.sent == b"ask" * len(told)

    asyncio.run(run())


@given(st.sampled_from([PLAIN, CHUNKED]), st.integers(0, 1000))
def test_half_an_answer_is_none(told: bytes, cut: int) -> None:
    async def run() -> None:
        connection, _ = wired()
        task = await asking(connection)
        connection.data_received(told[: cut % len(told)] or told[:1])
        connection.connection_lost(None)
        with pytest.raises(Broken):
            await task

    asyncio.run(run())


async def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    connection, _ = wired()
    task = await asking(connection)

    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhel")
    connection.data_received(b"lo")
    connection.connection_lost(None)

    assert (await task).body == b"hello"
    assert not connection.is_open


async def test_an_answer_without_a_length_is_not_whole_when_the_line_breaks() -> None:
    connection, _ = wired()
    task = await asking(connection)

    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhel")
    connection.connection_lost(ConnectionResetError())

    with pytest.raises(Broken):
        await task


async def test_a_server_that_wants_to_close_is_not_asked_again() -> None:
    connection, socket = wired()
    task = await asking(connection)

    connection.data_received(PLAIN.replace(b"X-Level: low", b"Connection: close"))

    assert (await task).body == b"hello"
    assert not connection.is_open
    assert socket.closed


@pytest.mark.parametrize("said", [PLAIN, b"HTTP/1.1 408 Request Timeout\r\n\r\n", b"hello"])
async def test_what_nobody_asked_for_ends_the_connection(said: bytes) -> None:
    connection, socket = wired()

    connection.data_received(said)

    assert not connection.is_open
    assert socket.closed


async def test_a_second_answer_to_one_question_ends_the_connection() -> None:
    connection, socket = wired()
    task = await asking(connection)

    connection.data_received(PLAIN + PLAIN)

    assert (await task).body == b"hello"
    assert socket.closed


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: %s\r\n" % (b"x" * 1000) * 80,
    ],
)
async def test_what_is_no_answer_is_a_broken_connection(said: bytes) -> None:
    connection, socket = wired()
    task = await asking(connection)

    connection.data_received(said)

    with pytest.raises(Broken):
        await task
    assert socket.closed


async def test_whoever_leaves_takes_the_connection_along() -> None:
    connection, socket = wired()
    task = await asking(connection)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert socket.closed


async def test_nothing_is_read_beyond_a_megabyte_that_nobody_takes() -> None:
    connection, socket = wired()
    begun = asyncio.create_task(connection.begin(b"ask", asyncio.get_running_loop().time() + 60))
    await asyncio.sleep(0)
    connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    await begun

    for _ in range(3):
        connection.data_received(b"80000\r\n" + b"x" * 2**19 + b"\r\n")
    stopped = not socket.reads
    connection.data_received(b"0\r\n\r\n")
    taken = [len(piece) async for piece in connection.pieces()]

    assert stopped
    assert socket.reads
    assert sum(taken) == 3 * 2**19
    assert connection.is_open


async def test_an_answer_in_pieces_is_cut_when_its_time_is_over() -> None:
    connection, socket = wired()
    begun = asyncio.create_task(connection.begin(b"ask", asyncio.get_running_loop().time()))

    with pytest.raises(TimeoutError):
        await begun
    assert socket.closed
