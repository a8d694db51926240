"""Archives of a web server: whole, or not at all."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from fairlead import errors
from fairlead.areas.content.sources import archive, limits
from fairlead.areas.content.sources import web as web_source

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    """Starts a web server with that one answer; its address."""
    runners: list[web.AppRunner] = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_get("/{any:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        return f"http://127.0.0.1:{runner.addresses[0][1]}/1.tar.gz"

    yield start
    for each in runners:
        await each.cleanup()


Serve = Callable[[Handler], Awaitable[str]]


async def test_an_archive_is_fetched_as_it_is(serve: Serve) -> None:
    packed = gzip.compress(b"tar")

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    assert await archive.fetch(await serve(answer), "1") == packed


async def test_half_an_archive_is_never_used(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    with pytest.raises(errors.Unavailable, match="did not come"):
        await archive.fetch(await serve(answer), "1")


async def test_an_archive_without_end_is_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_PACKED", 1_000_000)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"\0" * 65536)

    with pytest.raises(errors.Rejected, match="too large"):
        await archive.fetch(await serve(answer), "1")


async def test_an_archive_that_drips_is_not_waited_for_without_end(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_source, "_PATIENCE", aiohttp.ClientTimeout(total=0.5))

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    with pytest.raises(errors.Unavailable, match="did not come"):
        await archive.fetch(await serve(answer), "1")


@pytest.mark.parametrize(
    ("status", "fate"),
    [(404, errors.NotFound), (403, errors.Unavailable), (500, errors.Unavailable)],
)
async def test_an_answer_that_is_no_archive_is_told(
    serve: Serve, status: int, fate: type[errors.FairleadError]
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    with pytest.raises(fate):
        await archive.fetch(await serve(answer), "1")


async def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(errors.Unavailable, match="did not come"):
        await archive.fetch("http://127.0.0.1:9/1.tar.gz", "1")
