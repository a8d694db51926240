"""Our controller runtime, without the engine: watches, caches, queue, apply and status.

With `seconds` it stays after the work and tells what it asked of the API server meanwhile.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from bench.contestants import boats
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

BOATS = Resource("tests.fairlead.dev", "v1", "boats", "Boat")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
# Our own brake (500 requests a second) is off: the peers have none, and the limit neither.
UNBRAKED = Limits(rate=1e6, burst=1_000_000)


class Yard:
    """One controller over one namespace."""

    def __init__(self, task: boats.Task, client: Client, tempo: Tempo) -> None:
        self._task = task
        self._client = client
        self.watches = Watches(client, tempo)
        chosen = Selection(task.namespace)
        self.boats = self.watches.of(BOATS, chosen)
        self.parts = self.watches.of(CONFIG_MAPS, chosen)
        self.queue = Queue(Pace(workers=task.workers))
        self.done = asyncio.Event()
        self._applier = Applier(client, self.boats)
        self._ready: set[Key] = set()
        self.boats.on_change(self.queue.add)
        self.parts.on_child_change("Boat", self.queue.add)

    async def look(self, key: Key) -> float | None:
        boat = self.boats.get(key)
        if boat is None or objects.is_deleting(boat):
            return None
        wanted = [boats.child(boat, part) for part in boats.PARTS[: self._task.parts]]
        for part in wanted:
            await self._applier.ensure(self.parts, part, boat)
        await self._applier.prune(self.parts, boat, [objects.key_of(part) for part in wanted])
        phase = {"phase": boats.phase(len(wanted))}
        await status.write(self._client, self.boats, boat, phase)
        self._ready.add(key)
        if len(self._ready) == self._task.boats:
            self.done.set()
        return None


def connection(task: boats.Task) -> Connection:
    identity = Fixed(Identity(token=task.token))
    return Connection(task.server, identity, ca=Path(task.authority).read_bytes())


@contextlib.asynccontextmanager
async def working(task: boats.Task, requests: "collections.Counter[str]") -> AsyncIterator[Yard]:
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


async def run(task: boats.Task) -> boats.Figures:
    watch = boats.Watch()
    requests: collections.Counter[str] = collections.Counter()
    async with working(task, requests) as yard:
        await yard.done.wait()
        figures = watch.figures(task.boats)
        if task.seconds:
            await yard.queue.idle()
            figures |= await _stay(task, yard, requests)
    return figures


async def _stay(
    task: boats.Task, yard: Yard, requests: "collections.Counter[str]"
) -> boats.Figures:
    """What a controller costs that has nothing to do."""
    writes = sum(requests.values()) - requests["list"] - requests["watch"]
    before = sum(requests.values()) - requests["watch"]
    await asyncio.sleep(task.seconds)
    return {
        "cached": float(len(yard.boats) + len(yard.parts)),
        "writes": float(writes),
        "idle_requests": float(sum(requests.values()) - requests["watch"] - before),
        "idle_memory_mb": boats.memory("VmRSS"),
    }


if __name__ == "__main__":
    boats.serve(run)
