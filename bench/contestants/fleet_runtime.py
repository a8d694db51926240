"""Our controller runtime, without the engine: watches, caches, queue, apply and status.

With `seconds` it stays after the work and tells what it asked of the API server meanwhile.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from bench.contestants import fleet
from fairlead.adapters.kubernetes import objects, runtime, status
from fairlead.adapters.kubernetes.apply import Applier
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.credentials import Fixed, Identity
from fairlead.adapters.kubernetes.limits import Limits
from fairlead.adapters.kubernetes.objects import Key, Resource, Selection
from fairlead.adapters.kubernetes.queue import Pace, Queue
from fairlead.adapters.kubernetes.transport import Answered, Tempo
from fairlead.adapters.kubernetes.watch import Watches

FLOTILLAS = Resource("tests.fairlead.dev", "v1", "flotillas", "Flotilla")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
# All fields: the kind's schema has defaults, and what we leave out the API server puts in again.
_STATUS = {"phase": fleet.READY, "round": 0, "voyages": 0, "generation": 0, "conditions": []}
# Our own brake (500 requests a second) is off: the peers have none, and the limit neither.
UNBRAKED = Limits(rate=1e6, burst=1_000_000)


class Yard:
    """One controller over one namespace."""

    def __init__(self, task: fleet.Task, client: Client, tempo: Tempo) -> None:
        self._task = task
        self._client = client
        self.watches = Watches(client, tempo)
        chosen = Selection(task.namespace)
        self.objects = self.watches.of(FLOTILLAS, chosen)
        self.children = self.watches.of(CONFIG_MAPS, chosen)
        self.queue = Queue(Pace(workers=task.workers))
        self.done = asyncio.Event()
        self._applier = Applier(client, self.objects)
        self._ready: set[Key] = set()
        self.objects.on_change(self.queue.add)
        self.children.on_child_change("Flotilla", self.queue.add)

    async def look(self, key: Key) -> float | None:
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
async def working(task: fleet.Task, requests: "collections.Counter[str]") -> AsyncIterator[Yard]:
    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    tempo = Tempo(UNBRAKED, count=count)
    async with Client(connection(task), manager="bench", tempo=tempo) as client:
        yard = Yard(task, client, tempo)
        operating = asyncio.create_task(runtime.operate(yard.watches, yard.queue, yard.look))
        try:
            yield yard
        finally:
            operating.cancel()
            await asyncio.gather(operating, return_exceptions=True)


async def run(task: fleet.Task) -> fleet.Figures:
    watch = fleet.Watch()
    requests: collections.Counter[str] = collections.Counter()
    async with working(task, requests) as yard:
        await yard.done.wait()
        figures = watch.figures(task.objects)
        if task.seconds:
            await yard.queue.idle()
            figures |= await _stay(task, yard, requests)
    return figures


async def _stay(
    task: fleet.Task, yard: Yard, requests: "collections.Counter[str]"
) -> fleet.Figures:
    """What a controller costs that has nothing to do."""
    writes = sum(requests.values()) - requests["list"] - requests["watch"]
    before = sum(requests.values()) - requests["watch"]
    await asyncio.sleep(task.seconds)
    return {
        "cached": float(len(yard.objects) + len(yard.children)),
        "writes": float(writes),
        "idle_requests": float(sum(requests.values()) - requests["watch"] - before),
        "idle_memory_mb": fleet.memory("VmRSS"),
    }


if __name__ == "__main__":
    fleet.serve(run)
