"""The live feed: from any place, in order, once each, and never for ever for nothing."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from fairlead.access import tokens
from fairlead.engine import messages, visibility
from fairlead.engine.sample.messages import Order
from fairlead.web import live
from tests.unit.web import rig

PATH = "/api/v1/feed/live"
COMMANDS = "/api/v1/streams/depot/a/commands"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        yield running


async def test_what_happens_next_arrives(site: rig.Site) -> None:
    async with rig.Wire(site.app, PATH).open() as wire:
        start = await wire.start()
        await wire.until(lambda text: ": connected" in text)

        await site.client.post(COMMANDS, json=rig.ORDER)
        text = await wire.until(lambda text: '"Closed"' in text)

    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in start["headers"]
    assert ids(text) == await places(site)


async def test_a_client_that_comes_back_misses_nothing_and_sees_nothing_twice(
    site: rig.Site,
) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")
    everything = await places(site)

    async with rig.Wire(site.app, PATH, headers={"last-event-id": everything[2]}).open() as wire:
        text = await wire.until(lambda text: '"Closed"' in text)

    assert ids(text) == everything[3:]


async def test_more_than_one_read_holds_arrives_whole(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_CHUNK", 2)
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    async with rig.Wire(site.app, PATH, "after=0.0").open() as wire:
        text = await wire.until(lambda text: '"Closed"' in text)

    assert ids(text) == await places(site)


async def test_one_stream_can_be_followed_alone(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    async with rig.Wire(site.app, PATH, "after=0.0&stream=trip/a-1").open() as wire:
        text = await wire.until(lambda text: '"Arrived"' in text)

    assert set(re.findall(r'"stream":"([^"]+)"', text)) == {"trip/a-1"}


async def test_one_machine_can_be_followed_alone(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    async with rig.Wire(site.app, PATH, "after=0.0&machine=trip").open() as wire:
        text = await wire.until(lambda text: '"Home' in text or text.count("id:") >= 4)

    assert '"stream":"trip/' in text
    assert '"stream":"depot/' not in text


async def test_commits_of_another_process_are_seen_too(site: rig.Site, tmp_path: Path) -> None:
    async with rig.Wire(site.app, PATH).open() as wire:
        await wire.until(lambda text: ": connected" in text)

        # An engine of its own on the same file: nothing wakes the first one's watchers.
        async with rig.site(tmp_path) as other:
            await other.client.post(COMMANDS, json=rig.ORDER)
            text = await wire.until(lambda text: '"Closed"' in text)

    assert ids(text) == await places(site)


async def test_silence_is_broken_by_a_heartbeat(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_HEARTBEAT_SECONDS", 0.0)

    async with rig.Wire(site.app, PATH).open() as wire:
        assert await wire.until(lambda text: ": still here" in text)


async def test_a_client_that_takes_nothing_is_let_go(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_SLOW_SECONDS", 0.05)
    monkeypatch.setattr(live, "_HEARTBEAT_SECONDS", 0.0)
    feed: live.SharedFeed = site.app.state.feed

    async with rig.Wire(site.app, PATH).open() as wire:
        await wire.until(lambda text: ": connected" in text)
        assert feed.clients == 1
        wire.taking.clear()
        await site.client.post(COMMANDS, json=rig.ORDER)
        with site.engine.watch() as signal:
            for _ in range(200):
                if feed.clients == 0:
                    break
                await site.engine.wait(signal, live._LOOK / 50)

        assert feed.clients == 0


async def test_a_stop_ends_every_live_stream(site: rig.Site) -> None:
    async with rig.Wire(site.app, PATH).open() as wire:
        await wire.until(lambda text: ": connected" in text)
        site.context.closing.set()
        await wire.end()


async def test_a_revoked_token_ends_its_stream(site: rig.Site) -> None:
    token = await site.token(tokens.Role.VIEWER)

    async with rig.Wire(site.app, PATH, headers=lower(rig.bearer(token))).open() as wire:
        await wire.until(lambda text: ": connected" in text)
        await site.engine.write(lambda s: tokens.revoke(s, token.id, datetime.now(UTC)))
        await wire.end()


async def test_a_store_that_is_away_does_not_cut_the_line(site: rig.Site) -> None:
    async with rig.Wire(site.app, PATH).open() as wire:
        await wire.until(lambda text: ": connected" in text)
        with rig.stopped(site.engine):
            await site.engine.submit(
                messages.stream_name("depot", "a"), Order("a", 1, 1), messages.command_id("away")
            )
        assert await wire.until(lambda text: '"Closed"' in text)


async def test_clients_at_one_place_share_a_read(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    feed = live.SharedFeed(site.engine)

    first, second = await asyncio.gather(
        feed.after(visibility.Place()), feed.after(visibility.Place())
    )

    assert first is second
    assert feed._reads == {}


@pytest.mark.parametrize("query", ["after=nonsense", "stream=nonsense", "after=1.9" + "9" * 30])
async def test_a_wrong_place_is_refused(site: rig.Site, query: str) -> None:
    answer = await site.client.get(f"{PATH}?{query}")

    assert answer.status_code == 400


async def test_too_many_clients_are_turned_away(site: rig.Site) -> None:
    for number in range(256):
        site.app.state.feed.enter(f"token-{number // 64}")

    answer = await site.client.get(PATH)

    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "too many live clients: 256"


async def test_one_token_does_not_take_all_places(site: rig.Site) -> None:
    for _ in range(64):
        site.app.state.feed.enter("")

    answer = await site.client.get(PATH)

    assert answer.status_code == 503
    site.app.state.feed.enter("another")


async def test_those_who_ask_in_the_same_moment_are_counted_too(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in = asyncio.Semaphore(0)

    async def never() -> visibility.Place:
        let_in.release()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(site.app.state.feed, "end", never)
    asking = [asyncio.create_task(site.client.get(PATH)) for _ in range(70)]
    async with asyncio.timeout(30):
        for _ in range(64):
            await let_in.acquire()
        refused = [(await each).status_code for each in asking if each not in await held(asking)]
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)

    assert refused == [503] * 6
    assert site.app.state.feed.clients == 0


async def held(asking: list[asyncio.Task[httpx.Response]]) -> set[asyncio.Task[httpx.Response]]:
    """Those without an answer, once six have one."""
    while True:
        pending = {task for task in asking if not task.done()}
        if len(pending) == len(asking) - 6:
            return pending
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)


def ids(text: str) -> list[str]:
    return re.findall(r"^id: (.+)$", text, re.MULTILINE)


async def places(site: rig.Site) -> list[str]:
    feed = (await site.client.get("/api/v1/feed")).json()
    return [event["place"] for event in feed["items"]]


def lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def test_some_streams_can_be_followed_together(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    both = "after=0.0&stream=trip/a-1&stream=depot/a"
    async with rig.Wire(site.app, PATH, both).open() as wire:
        text = await wire.until(lambda text: '"Arrived"' in text and '"Closed"' in text)

    assert set(re.findall(r'"stream":"([^"]+)"', text)) == {"trip/a-1", "depot/a"}
