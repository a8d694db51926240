"""The whole operator: reconcilers, engine on SQLite (fsync on), effects. This is what a user runs.

Every object is a machine: two commands, two events, four effects, all of it kept on disk.
With `seconds` it stays after the work and tells what it asked of the API server meanwhile.
"""

import asyncio
import collections
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from bench.contestants import fleet, fleet_runtime
from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.client.transport import Answered, ClientOptions
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.operator.operator import Operator, OperatorOptions
from tests.operator.sample_kind import KIND

_SETTLE_SECONDS = 0.1


class Ready:
    """Counts the objects that say they are ready, as the caches hear of it."""

    def __init__(self, cache: Cache, wanted: int) -> None:
        self._cache = cache
        self._wanted = wanted
        self._ready: set[Key] = set()
        self.done = asyncio.Event()
        cache.on_change(self._see)

    def _see(self, key: Key) -> None:
        found = self._cache.get(key)
        if found is not None and (found.get("status") or {}).get("phase") == fleet.READY:
            self._ready.add(key)
            if len(self._ready) == self._wanted:
                self.done.set()


@contextlib.asynccontextmanager
async def working(
    task: fleet.Task, requests: "collections.Counter[str]", folder: Path
) -> AsyncIterator[tuple[Operator, Ready]]:
    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    options = ClientOptions(fleet_runtime.UNBRAKED, count=count)
    orders = OperatorOptions([KIND], task.namespace, options=options)
    chosen = settings_.Settings(store=settings_.StoreSettings(state_dir=folder))
    engines = wiring.engines(chosen, bootstrap.Installation(kinds=[KIND]))
    operator = Operator(fleet_runtime.connection(task), orders, engines)
    ready = Ready(operator.controllers[0].held.objects, task.objects)
    operating = asyncio.create_task(operator.run())
    try:
        yield operator, ready
    finally:
        operating.cancel()
        await asyncio.gather(operating, return_exceptions=True)


async def run(task: fleet.Task) -> fleet.Measurements:
    requests: collections.Counter[str] = collections.Counter()
    wiring.collect_rarely()
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        watch = fleet.Watch()
        async with working(task, requests, Path(folder)) as (operator, ready):
            await ready.done.wait()
            measurements = watch.measurements(task.objects)
            if task.seconds:
                await _settled(operator)
                measurements |= await _stay(task, operator, requests)
    return measurements


async def _settled(operator: Operator) -> None:
    # Where everything was done before, the caches know it before we lead.
    await operator.leading.wait()
    queue, engine = operator.controllers[0].queue, operator.engine
    assert queue is not None
    assert engine is not None
    await queue.idle()
    while engine.in_flight:
        await asyncio.sleep(_SETTLE_SECONDS)
        await queue.idle()


async def _stay(
    task: fleet.Task, operator: Operator, requests: "collections.Counter[str]"
) -> fleet.Measurements:
    """What an operator costs that has nothing to do."""
    writes = sum(requests.values()) - requests["list"] - requests["watch"]
    before = sum(requests.values()) - requests["watch"]
    await asyncio.sleep(task.seconds)
    held = operator.controllers[0].held
    return {
        "cached": float(len(held.objects) + sum(map(len, held.children.values()))),
        "writes": float(writes),
        "idle_requests": float(sum(requests.values()) - requests["watch"] - before),
        "idle_memory_mb": fleet.memory("VmRSS"),
    }


if __name__ == "__main__":
    fleet.serve(run)
