"""How the whole ends: on closing, on a late start, and when its eyes fail."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead.errors import Unavailable
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.controller.queue import Queue
from fairlead.kubernetes.objects import Key
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, config_map
from tests.contract.whole_controller import operate
from tests.fakes.kubernetes.server import Server


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed())) as opened,
    ):
        yield opened


async def nothing(key: Key) -> float | None:
    return None


async def test_closing_the_queue_ends_it(client: Client) -> None:
    watches, queue = Watches(client), Queue()
    cache = watches.of(CONFIG_MAPS)
    looked = asyncio.Event()
    cache.on_change(queue.add)

    async def look(key: Key) -> float | None:
        # Behind the barrier: the whole list is there at the first look.
        assert len(cache) == 2
        looked.set()
        return None

    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map("default", name))
    task = asyncio.create_task(operate(watches, queue, look))
    async with asyncio.timeout(30):
        await looked.wait()
        queue.close()
        await task


async def test_a_kind_that_is_not_there_is_told(client: Client) -> None:
    watches = Watches(client)
    watches.of(WIDGETS)

    with pytest.raises(Unavailable, match="widgets"):
        await operate(watches, Queue(), nothing, sync_seconds=0.05)


async def test_a_crash_of_the_watch_ends_the_work(client: Client) -> None:
    watches, queue = Watches(client), Queue()
    cache = watches.of(CONFIG_MAPS)

    def crash(key: Key) -> None:
        raise ZeroDivisionError

    task = asyncio.create_task(operate(watches, queue, nothing))
    await watches.synced(30)
    cache.on_change(crash)
    await client.create(CONFIG_MAPS, config_map("default", "a"))

    with pytest.raises(ExceptionGroup) as crashed:
        async with asyncio.timeout(30):
            await task
    assert crashed.value.subgroup(ZeroDivisionError) is not None
