"""Our controller runtime, without the engine: watches, caches, queue, apply and status.

With `seconds` it stays after the work and tells what it asked of the API server meanwhile.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from bench.contestants import fleet
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.credentials import Fixed, Identity
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import Answered, ClientOptions
from fairlead.kubernetes.controller.queue import Queue, QueueOptions
from fairlead.kubernetes.objects import Key, Resource, Selection
from fairlead.kubernetes.writes import status
from fairlead.kubernetes.writes.apply import Applier
from tests.contract import whole_controller

BUNDLES = Resource("tests.fairlead.dev", "v1", "bundles", "Bundle")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
# All fields: the kind's schema has defaults, and what we leave out the API server puts in again.
_STATUS = {"phase": fleet.READY, "round": 0, "voyages": 0, "generation": 0, "conditions": []}
# Our own brake (500 requests a second) is off: the peers have none, and the limit neither.
UNBRAKED = Limits(rate=1e6, burst=1_000_000)


class NamespaceController:
    """One controller over one namespace."""

    def __init__(self, task: fleet.Task, client: Client, options: ClientOptions) -> None:
        self._task = task
        self._client = client
        self.watches = Watches(client, options)
        chosen = Selection(task.namespace)
        self.objects = self.watches.of(BUNDLES, chosen)
        self.children = self.watches.of(CONFIG_MAPS, chosen)
        self.queue = Queue(QueueOptions(workers=task.workers))
        self.done = asyncio.Event()
        self._applier = Applier(client, self.objects)
        self._ready: set[Key] = set()
        self.objects.on_change(self.queue.add)
        self.children.on_child_change("Bundle", self.queue.add)

    async def reconcile(self, key: Key) -> float | None:
        found = self.objects.get(key)
        if found is None or objects.is_deleting(found):
            return None
        wanted = fleet.children(found, self._task.children)
        for child in wanted:
            await self._applier.ensure(self.children, child, found)
        keep = [objects.key_of(child) for child in wanted]
        await self._applier.prune(self.children, found, keep)
        await status.write(self._client, self.objects, found, _STATUS)
        self._ready.add(key)
        if len(self._ready) == self._task.objects:
            self.done.set()
        return None


def connection(task: fleet.Task) -> Connection:
    identity = Fixed(Identity(token=task.token))
    return Connection(task.server, identity, ca=Path(task.authority).read_bytes())


@contextlib.asynccontextmanager
async def working(
    task: fleet.Task, requests: "collections.Counter[str]"
) -> AsyncIterator[NamespaceController]:
    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    options = ClientOptions(UNBRAKED, count=count)
    async with Client(connection(task), manager="bench", options=options) as client:
        running = NamespaceController(task, client, options)
        operating = asyncio.create_task(
            whole_controller.operate(running.watches, running.queue, running.reconcile)
        )
        try:
            yield running
        finally:
            operating.cancel()
            await asyncio.gather(operating, return_exceptions=True)


async def run(task: fleet.Task) -> fleet.Measurements:
    watch = fleet.Watch()
    requests: collections.Counter[str] = collections.Counter()
    async with working(task, requests) as running:
        await running.done.wait()
        measurements = watch.measurements(task.objects)
        if task.seconds:
            await running.queue.idle()
            measurements |= await _stay(task, running, requests)
    return measurements


async def _stay(
    task: fleet.Task, running: NamespaceController, requests: "collections.Counter[str]"
) -> fleet.Measurements:
    """What a controller costs that has nothing to do."""
    writes = sum(requests.values()) - requests["list"] - requests["watch"]
    before = sum(requests.values()) - requests["watch"]
    await asyncio.sleep(task.seconds)
    return {
        "cached": float(len(running.objects) + len(running.children)),
        "writes": float(writes),
        "idle_requests": float(sum(requests.values()) - requests["watch"] - before),
        "idle_memory_mb": fleet.memory("VmRSS"),
    }


if __name__ == "__main__":
    fleet.serve(run)
