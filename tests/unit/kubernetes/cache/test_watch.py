"""List, watch, resume, begin again: the cache comes true whatever happens to the stream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from fairlead.errors import Unavailable
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.cache.watch import Watches, WatchOptions
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import Key, Selection
from tests.contract.kubernetes_samples import (
    CONFIG_MAPS,
    CRDS,
    WIDGETS,
    config_map,
    labelled,
    widget,
    widget_definition,
)
from tests.fakes.kubernetes.hand_clock import RushingClock
from tests.fakes.kubernetes.server import Fault, Request, Server

A = Key("default", "a")


class World:
    """A fake server, watches upon it, and a way to wait for what a cache shall hold."""

    def __init__(self, server: Server, client: Client, watches: Watches) -> None:
        self.server = server
        self.client = client
        self.watches = watches

    async def until(self, cache: Cache, holds: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        cache.on_change(lambda _: changed.set())
        async with asyncio.timeout(30):
            while not holds():
                changed.clear()
                await changed.wait()

    def lists(self) -> list[Request]:
        return [r for r in self.server.requests if not r.is_write and "watch" not in r.query]

    def watched(self) -> list[Request]:
        return [r for r in self.server.requests if "watch" in r.query]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    options = ClientOptions(
        Limits(rate=10_000, burst=10_000, page=2, attempts=1), RushingClock().clock()
    )
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, options=options) as client:
            yield World(server, client, Watches(client, options))


@contextlib.asynccontextmanager
async def running(watches: Watches) -> AsyncIterator[None]:
    task = asyncio.create_task(watches.run())
    try:
        await watches.synced(30)
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def add(world: World, *names: str) -> None:
    for name in names:
        await world.client.create(CONFIG_MAPS, config_map("default", name))


def names(cache: Cache) -> list[str]:
    return [key.name for key in cache.known()]


async def test_the_first_list_is_complete_before_anybody_acts(world: World) -> None:
    await add(world, "a", "b", "c", "d", "e")
    cache = world.watches.of(CONFIG_MAPS)

    async with running(world.watches):
        found = names(cache)

    assert found == ["a", "b", "c", "d", "e"]
    assert len(world.lists()) == 3


async def test_cached_objects_carry_their_kind(world: World) -> None:
    await add(world, "a")
    cache = world.watches.of(CONFIG_MAPS)

    async with running(world.watches):
        found = cache.get(A)

    assert found is not None
    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


async def test_changes_arrive(world: World) -> None:
    cache = world.watches.of(CONFIG_MAPS)

    async with running(world.watches):
        await add(world, "a")
        await world.until(cache, lambda: A in cache)
        await world.client.patch(CONFIG_MAPS, A, {"data": {"n": "1"}})
        await world.until(cache, lambda: (cache.get(A) or {}).get("data") == {"n": "1"})
        await world.client.delete(CONFIG_MAPS, A)
        await world.until(cache, lambda: A not in cache)


async def test_one_watch_serves_all_who_ask_for_the_same(world: World) -> None:
    first, second = world.watches.of(CONFIG_MAPS), world.watches.of(CONFIG_MAPS)
    third = world.watches.of(CONFIG_MAPS, Selection(labels="x=y"))

    async with running(world.watches):
        await add(world, "a")
        await world.until(first, lambda: A in first)

    assert first is second
    assert third is not first
    assert len(world.watched()) == 2


async def test_a_cache_asked_for_later_starts_its_watch(world: World) -> None:
    async with running(world.watches):
        cache = world.watches.of(CONFIG_MAPS)
        await add(world, "a")
        await world.until(cache, lambda: A in cache)

        await world.watches.synced(30)


async def test_a_cut_watch_is_resumed_without_a_list(world: World) -> None:
    cache = world.watches.of(CONFIG_MAPS)

    async with running(world.watches):
        await add(world, "a")
        await world.until(cache, lambda: A in cache)
        world.server.cut_watches()
        await add(world, "b")
        await world.until(cache, lambda: Key("default", "b") in cache)

    assert len(world.lists()) == 1
    resumed = [int(r.query["resourceVersion"]) for r in world.watched()]
    assert resumed == sorted(resumed)
    assert resumed[-1] > resumed[0]


async def test_forgotten_history_costs_one_new_list(world: World) -> None:
    await add(world, "a", "b")
    cache = world.watches.of(CONFIG_MAPS)

    async with running(world.watches):
        # While the stream is cut and refused, the world goes on and history is forgotten.
        world.server.faults.append(Fault(503, times=100_000, only=lambda r: "watch" in r.query))
        world.server.cut_watches()
        await world.client.delete(CONFIG_MAPS, A)
        await add(world, "c")
        world.server.store.compact()
        world.server.faults.clear()
        await world.until(cache, lambda: names(cache) == ["b", "c"])

    assert len([r for r in world.lists() if "continue" not in r.query]) == 2


async def test_a_list_that_expires_half_way_begins_again(world: World) -> None:
    await add(world, "a", "b", "c")
    cache = world.watches.of(CONFIG_MAPS)
    world.server.faults.append(
        Fault(410, times=2, reason="Expired", only=lambda r: "continue" in r.query)
    )

    async with running(world.watches):
        found = names(cache)

    assert found == ["a", "b", "c"]
    # The third try asks for all at once: it cannot expire half-way.
    assert [("limit" in r.query) for r in world.lists() if "continue" not in r.query] == [
        *(True, True, False)
    ]


async def test_bookmarks_keep_the_place_fresh(world: World) -> None:
    cache = world.watches.of(CONFIG_MAPS, Selection(labels="x=y"))

    async with running(world.watches):
        await add(world, "unselected")
        world.server.bookmarked.clear()
        await world.server.bookmarked.wait()
        # Nothing of ours happened since the list; without the bookmark this would be a 410.
        world.server.store.compact()
        world.server.cut_watches()
        await world.client.create(CONFIG_MAPS, labelled(config_map("default", "a"), x="y"))
        await world.until(cache, lambda: A in cache)

    assert len(world.lists()) == 1


async def test_selections_see_objects_join_and_leave(world: World) -> None:
    cache = world.watches.of(CONFIG_MAPS, Selection("default", labels="tier=web"))

    async with running(world.watches):
        await world.client.create(CONFIG_MAPS, labelled(config_map("default", "a"), tier="web"))
        await world.until(cache, lambda: A in cache)
        await world.client.patch(CONFIG_MAPS, A, {"metadata": {"labels": {"tier": "db"}}})
        await world.until(cache, lambda: A not in cache)


@pytest.mark.parametrize("code", [429, 500, 401, 403])
async def test_no_answer_ends_the_watch_for_good(world: World, code: int) -> None:
    cache = world.watches.of(CONFIG_MAPS)
    world.server.faults.append(Fault(code, times=4))

    async with running(world.watches):
        await add(world, "a")
        await world.until(cache, lambda: A in cache)


async def test_a_kind_that_is_not_installed_is_named(world: World) -> None:
    world.watches.of(WIDGETS)
    task = asyncio.create_task(world.watches.run())

    with pytest.raises(Unavailable, match=r"widgets.tests.fairlead.dev") as late:
        await world.watches.synced(0.05)

    assert "installed" in late.value.hint
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_kind_that_comes_later_holds_nobody_up(world: World) -> None:
    cache = world.watches.of(WIDGETS, manner=WatchOptions(late=True))

    async with running(world.watches):
        served = cache.is_served
        await world.client.create(CRDS, widget_definition())
        await world.client.create(WIDGETS, widget("default", "a"))
        await world.until(cache, lambda: A in cache)

    assert (served, cache.is_served) == (False, True)


async def test_whoever_needs_a_kind_at_once_is_not_told_it_is_there(world: World) -> None:
    world.watches.of(WIDGETS)
    cache = world.watches.of(WIDGETS, manner=WatchOptions(late=True))

    async with running(world.watches):
        assert not cache.is_served


async def test_a_kind_that_was_listed_is_not_taken_for_gone(world: World) -> None:
    """Its objects would be: every release of them would be given up for a server's bad moment."""
    await world.client.create(CRDS, widget_definition())
    await world.client.create(WIDGETS, widget("default", "a"))
    cache = world.watches.of(WIDGETS, manner=WatchOptions(late=True))
    lost: list[Key] = []

    async with running(world.watches):
        cache.on_change(lost.append)
        world.server.faults.append(Fault(404, times=4, only=lambda asked: not asked.is_write))
        world.server.cut_watches()
        await world.client.create(WIDGETS, widget("default", "b"))
        await world.until(cache, lambda: Key("default", "b") in cache)

    assert (A in cache, cache.is_served, lost) == (True, True, [Key("default", "b")])


async def test_steady_state_makes_no_request_but_the_watch(world: World) -> None:
    await add(world, "a")
    cache = world.watches.of(CONFIG_MAPS)

    async with running(world.watches):
        before = len(world.server.requests)
        for _ in range(100):
            assert cache.get(A) is not None
        assert len(world.server.requests) - before <= 1
