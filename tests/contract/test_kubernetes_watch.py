"""A cache upon a real stream: complete, current, and reading its own writes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.objects import Key, Selection
from tests.contract.kubernetes import PATIENCE, QUICK, Api
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, config_map, owned, widget


@contextlib.asynccontextmanager
async def running(watches: Watches) -> AsyncIterator[None]:
    task = asyncio.create_task(watches.run())
    try:
        await watches.synced(PATIENCE)
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def heard(cache: Cache, key: Key) -> asyncio.Event:
    event = asyncio.Event()
    cache.on_change(lambda changed: event.set() if changed == key else None)
    return event


async def test_a_cache_lists_in_pages_then_follows(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.client.create(WIDGETS, widget(api.namespace, name))
    watches = Watches(api.client, QUICK)
    cache = watches.of(WIDGETS, Selection(api.namespace))

    async with running(watches):
        first = [key.name for key in cache.known()]
        event = await heard(cache, api.key("d"))
        await api.client.create(WIDGETS, widget(api.namespace, "d"))
        async with asyncio.timeout(PATIENCE):
            await event.wait()
        found = cache.get(api.key("d"))

    assert first == ["a", "b", "c"]
    assert found is not None
    assert found["kind"] == "Widget"
    assert "managedFields" not in found["metadata"]


async def test_an_own_write_is_never_followed_by_an_older_read(api: Api) -> None:
    watches = Watches(api.client, QUICK)
    cache = watches.of(CONFIG_MAPS, Selection(api.namespace))
    last = 0

    async with running(watches):
        for number in range(30):
            written = await api.client.apply(
                CONFIG_MAPS, config_map(api.namespace, "a", n=str(number))
            )
            cache.wrote(written)
            held = cache.get(api.key("a"))
            assert held is not None
            assert int(held["data"]["n"]) >= last
            last = int(held["data"]["n"])

    assert last == 29


async def test_children_are_found_by_their_owner(api: Api) -> None:
    parent = await api.client.create(WIDGETS, widget(api.namespace, "parent"))
    for name in ("one", "two"):
        await api.client.create(CONFIG_MAPS, owned(config_map(api.namespace, name), parent))
    watches = Watches(api.client, QUICK)
    cache = watches.of(CONFIG_MAPS, Selection(api.namespace))

    async with running(watches):
        children = cache.owned_by(parent["metadata"]["uid"])

    assert [child["metadata"]["name"] for child in children] == ["one", "two"]
