"""Many askers, one question a tick; and what a server can do that a real one seldom does."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead import errors
from fairlead.clients.prometheus import Access, Prometheus, Shared, Values

ONE = {"status": "success", "data": {"resultType": "scalar", "result": [1.0, "1"]}}


class Stand:
    """A server that answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.status = 200
        self.body = json.dumps(ONE)
        self.go = asyncio.Event()
        self.go.set()
        self.headers: dict[str, str] = {}

    async def answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        who = request.headers.get("Authorization", "")
        self.asked.append((request.path, str(form["query"]), who))
        await self.go.wait()
        return web.Response(status=self.status, text=self.body, headers=self.headers)


@pytest.fixture
async def stand() -> AsyncIterator[tuple[Stand, str]]:
    made = Stand()
    application = web.Application()
    application.router.add_post("/base/api/v1/{what}", made.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield made, f"http://127.0.0.1:{port}/base/"
    await runner.cleanup()


@pytest.fixture
async def client(stand: tuple[Stand, str]) -> AsyncIterator[Prometheus]:
    async with Prometheus(Access(stand[1])) as ready:
        yield ready


async def test_many_askers_send_one_query_a_tick(
    stand: tuple[Stand, str], client: Prometheus
) -> None:
    now = 0.0
    shared = Shared(client, tick_seconds=10.0, clock=lambda: now)

    answers = await asyncio.gather(*(shared.instant("up") for _ in range(50)))
    await shared.instant("other")
    now = 9.9
    await shared.instant("up")
    now = 10.0
    await shared.instant("up")

    assert all(isinstance(answer, Values) for answer in answers)
    assert [query for _, query, _ in stand[0].asked] == ["up", "other", "up"]


async def test_an_error_is_shared_too_and_forgotten_with_the_tick(
    stand: tuple[Stand, str], client: Prometheus
) -> None:
    now = 0.0
    shared = Shared(client, tick_seconds=10.0, clock=lambda: now)
    stand[0].status = 503

    for _ in range(3):
        with pytest.raises(errors.Unavailable):
            await shared.instant("up")
    stand[0].status = 200
    now = 10.0

    assert isinstance(await shared.instant("up"), Values)
    assert len(stand[0].asked) == 2


async def test_an_asker_that_gives_up_takes_nothing_from_the_others(
    stand: tuple[Stand, str], client: Prometheus
) -> None:
    shared = Shared(client, tick_seconds=10.0, clock=lambda: 0.0)
    stand[0].go.clear()
    first = asyncio.create_task(shared.instant("up"))
    second = asyncio.create_task(shared.instant("up"))
    await asyncio.sleep(0)

    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    stand[0].go.set()

    assert isinstance(await second, Values)
    assert len(stand[0].asked) == 1


async def test_a_token_is_read_anew_for_each_query(
    stand: tuple[Stand, str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    async with Prometheus(Access(stand[1], token_file=token)) as client:
        for text in ("first", "second\n"):
            token.write_text(text)
            await client.instant("up")
        token.unlink()
        with pytest.raises(errors.Rejected, match="cannot read the secret file"):
            await client.instant("up")

    assert [who for _, _, who in stand[0].asked] == ["Bearer first", "Bearer second"]
    assert stand[0].asked[0][0] == "/base/api/v1/query"


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, "<html>welcome</html>", errors.Unavailable),
        (200, '{"status": "error", "error": "no"}', errors.Unavailable),
        (200, '{"status": "success", "data": {"resultType": "vector"}}', errors.Unavailable),
        (302, "", errors.Unavailable),
        (404, "404 page not found", errors.Unavailable),
        (422, '{"status": "error", "error": "found duplicate series"}', errors.Rejected),
        (403, "", errors.Unauthorised),
        (429, '{"status": "error", "error": "slow down"}', errors.Unavailable),
        (503, '{"status": "error", "error": "query timed out"}', errors.Unavailable),
    ],
)
async def test_a_bad_answer_is_sorted_by_what_helps(
    stand: tuple[Stand, str], client: Prometheus, status: int, body: str, expected: type
) -> None:
    stand[0].status, stand[0].body = status, body

    with pytest.raises(errors.FairleadError) as raised:
        await client.instant("up")

    assert type(raised.value) is expected
    assert raised.value.hint


async def test_a_native_histogram_is_not_taken_for_a_number(
    stand: tuple[Stand, str], client: Prometheus
) -> None:
    sample = {"metric": {}, "histogram": [1.0, {}]}
    data = {"resultType": "vector", "result": [sample]}
    stand[0].body = json.dumps({"status": "success", "data": data})

    with pytest.raises(errors.Rejected, match="returns histograms"):
        await client.instant("up")


@pytest.mark.parametrize(
    "url", ["prometheus:9090", "ftp://prometheus", "http://", "http://a:b@prometheus"]
)
def test_a_malformed_address_is_refused(url: str) -> None:
    with pytest.raises(errors.Rejected, match="address of a prometheus"):
        Access(url)


async def test_a_broken_authority_file_is_said(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("no certificate")

    with pytest.raises(errors.Rejected, match="cannot read the CA file"):
        async with Prometheus(Access("https://127.0.0.1:1", ca_file=file)):
            pass
