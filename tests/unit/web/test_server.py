"""The server: where it listens, what it refuses, and how it stops."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from fairlead import errors
from fairlead.web import server


@pytest.mark.parametrize(
    ("text", "bind"),
    [
        ("127.0.0.1:8600", server.Bind("127.0.0.1", 8600)),
        ("[::1]:0", server.Bind("::1", 0)),
        ("localhost:1", server.Bind("localhost", 1)),
        ("fairlead.example:80", server.Bind("fairlead.example", 80)),
    ],
)
def test_an_address_is_read(text: str, bind: server.Bind) -> None:
    assert server.parse_listen(text) == bind


@pytest.mark.parametrize(
    "text", ["", "8600", ":8600", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "a@b:1", "a:1/b"]
)
def test_a_malformed_address_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not an address to listen on"):
        server.parse_listen(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "fairlead.example"])  # noqa: S104 - only named
def test_an_open_bind_without_a_token_is_refused(host: str) -> None:
    with pytest.raises(errors.Rejected, match="without a token") as refused:
        server.check_exposure(server.Bind(host, 8600), guarded=False)

    assert "fairlead token create" in refused.value.hint
    server.check_exposure(server.Bind(host, 8600), guarded=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    server.check_exposure(server.Bind(host, 8600), guarded=False)


def test_a_taken_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(errors.Conflict, match=f"the port is taken: {port}") as refused:
            server.claim(server.Bind("127.0.0.1", port))

    assert "--listen" in refused.value.hint


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(errors.Rejected, match=r"cannot listen on 192\.0\.2\.1:8600"):
        server.claim(server.Bind("192.0.2.1", 8600))


def test_port_zero_takes_a_free_one() -> None:
    wanted = server.Bind("127.0.0.1", 0)
    with server.claim(wanted) as listening:
        bind = server.bound(wanted, listening)

        assert bind.port > 0
        assert bind.url == f"http://127.0.0.1:{bind.port}"


async def test_a_second_server_on_the_port_is_refused_while_the_first_answers() -> None:
    wanted = server.Bind("127.0.0.1", 0)
    listening = server.claim(wanted)
    bind = server.bound(wanted, listening)

    async with (
        server.serving(_hello, listening, asyncio.Event()),
        httpx.AsyncClient(base_url=bind.url) as client,
    ):
        assert (await client.get("/")).text == "hello"
        with pytest.raises(errors.Conflict):
            server.claim(bind)

    # Stopped for good: the port is free again.
    server.claim(bind).close()


async def test_a_stop_waits_for_an_answer_on_its_way() -> None:
    wanted = server.Bind("127.0.0.1", 0)
    listening = server.claim(wanted)
    bind = server.bound(wanted, listening)
    closing = asyncio.Event()
    begun = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await closing.wait()
        await _hello(scope, receive, send)

    async with httpx.AsyncClient(base_url=bind.url) as client:
        async with server.serving(slow, listening, closing):
            answer = asyncio.create_task(client.get("/"))
            async with asyncio.timeout(60):
                await begun.wait()
        async with asyncio.timeout(60):
            assert (await answer).text == "hello"


async def test_a_stop_leaves_no_thread_that_could_meet_the_end_of_the_process() -> None:
    """One that asks for Python while that ends aborts the whole process."""
    before = server.foreign_threads()
    for _ in range(5):
        listening = server.claim(server.Bind("127.0.0.1", 0))
        bind = server.bound(server.Bind("127.0.0.1", 0), listening)
        async with (
            httpx.AsyncClient(base_url=bind.url) as client,
            server.serving(_hello, listening, asyncio.Event()),
        ):
            assert (await client.get("/")).text == "hello"
            assert server.foreign_threads() > before

        assert server.foreign_threads() <= before


async def test_a_server_that_fails_is_noticed_while_it_should_run() -> None:
    listening = server.claim(server.Bind("127.0.0.1", 0))
    # Nothing to serve on: granian cannot start its worker.
    os.close(listening.detach())

    async with server.serving(_hello, listening, asyncio.Event()) as task, asyncio.timeout(60):
        done, _ = await asyncio.wait({task})

    assert done == {task}


async def test_silent_connections_do_not_keep_others_out() -> None:
    wanted = server.Bind("127.0.0.1", 0)
    listening = server.claim(wanted)
    bind = server.bound(wanted, listening)
    server.allow_many_files()

    async with (
        server.serving(_hello, listening, asyncio.Event()),
        silent(bind, 1_200),
        httpx.AsyncClient(base_url=bind.url, timeout=20) as client,
    ):
        assert (await client.get("/")).text == "hello"


async def test_with_every_place_taken_health_answers_on_its_own_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 32)
    wanted, patient = server.Bind("127.0.0.1", 0), timedelta(minutes=10)
    full, health = server.claim(wanted), server.claim(wanted)
    bind, alone = server.bound(wanted, full), server.bound(wanted, health)

    async with (
        asyncio.timeout(60),
        server.serving(_hello, full, asyncio.Event(), silence=patient),
        server.serving(_hello, health, asyncio.Event()),
        httpx.AsyncClient(timeout=60) as client,
    ):
        async with silent(bind, server.most_connections()):
            asked = asyncio.create_task(client.get(bind.url))
            for _ in range(50):
                assert (await client.get(alone.url)).text == "hello"
            assert not asked.done()
        # A place that comes free is taken: nothing but the number of places was in the way.
        assert (await asked).text == "hello"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", id="half of a header"),
        pytest.param(b"PRI * HT", id="half of the preface of HTTP/2"),
        pytest.param(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
            id="an HTTP/2 connection without a request",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", id="one request, no next"),
    ],
)
async def test_whoever_asks_nothing_is_let_go(said: bytes) -> None:
    wanted = server.Bind("127.0.0.1", 0)
    listening = server.claim(wanted)
    bind = server.bound(wanted, listening)

    async with server.serving(
        _hello, listening, asyncio.Event(), silence=timedelta(milliseconds=200)
    ):
        reader, writer = await asyncio.open_connection(bind.host, bind.port)
        with contextlib.closing(writer):
            writer.write(said)

            async with asyncio.timeout(10):
                answer = await _to_the_end(reader)

    assert answer.startswith(b"HTTP/1.1 200") == said.endswith(b"1\r\n\r\n")


async def _to_the_end(reader: asyncio.StreamReader) -> bytes:
    """All that comes, until the other side closes."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@contextlib.asynccontextmanager
async def silent(bind: server.Bind, count: int) -> AsyncIterator[None]:
    """So many connections on which nothing is ever said."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(count):
            _, writer = await asyncio.open_connection(bind.host, bind.port)
            stack.callback(writer.close)
        yield


def test_connections_leave_files_for_the_rest_of_the_process() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert 0 < server.most_connections() < soft


async def _hello(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
