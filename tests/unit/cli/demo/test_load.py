"""The customers count exactly: every answer, every failure, and what nobody answered."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from fairlead.cli.demo.load import Load
from fairlead.clients.processes import ports


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Every second request fails, every third is answered by no version."""
    count = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal count
        count += 1
        headers = {} if count % 3 == 0 else {"X-Version": "v1"}
        return web.Response(status=500 if count % 2 == 0 else 200, headers=headers)

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


async def test_answers_are_counted_by_version_and_status(url: str) -> None:
    tally = await Load(url, customers=4).send(60)

    assert (tally.sent, tally.failed, tally.lost) == (60, 30, 20)
    assert dict(tally.answers) == {("v1", 200): 20, ("v1", 500): 20, ("", 200): 10, ("", 500): 10}
    assert tally.of("v1") == 40


async def test_a_server_that_is_not_there_fails_every_request() -> None:
    tally = await Load(f"http://127.0.0.1:{ports.free(())}/", customers=2).send(10)

    assert (tally.sent, tally.failed, tally.lost) == (10, 10, 10)
    assert dict(tally.broken) == {"ClientConnectorError": 10}


async def test_a_steady_load_runs_as_long_as_the_block(url: str) -> None:
    async with Load(url, per_second=500, customers=2).running() as load:
        await load.at_least(20)

    ended = load.tally.sent
    assert ended >= 20
    assert load.tally.answers.total() == ended
