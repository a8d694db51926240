"""Runs operators of the sample kind for tests: in this process, with clients of their own."""

import asyncio
import contextlib
import dataclasses
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.leader import Candidacy
from fairlead.adapters.kubernetes.limits import Limits
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.adapters.kubernetes.operator import Operator, Orders, Working
from fairlead.adapters.kubernetes.queue import Pace
from fairlead.adapters.kubernetes.transport import Answered, Tempo
from tests.operator.flotilla import KIND, Plan, carried, wanted

READS = ("get", "list", "watch")


@dataclasses.dataclass
class Fleet:
    """One running operator, and the count of its requests."""

    operator: Operator
    task: "asyncio.Task[None]"
    requests: Counter[str]

    @property
    def writes(self) -> int:
        return sum(count for verb, count in self.requests.items() if verb not in READS)

    @property
    def flotillas(self) -> list[Object]:
        return list(self.operator.stations[0].held.objects.all())

    def look_at_all(self) -> None:
        """Ask for one more look at every object."""
        queue = self.operator.stations[0].queue
        assert queue is not None
        for key in self.operator.stations[0].held.objects.known():
            queue.add(key)

    def is_done(self) -> bool:
        """By the caches alone: every flotilla has its ships, and says so of this generation."""
        return all(self._is_ready(one) for one in self.flotillas)

    async def until(self, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        """Every change of a cache is a reason to look."""
        changed = asyncio.Event()
        station = self.operator.stations[0]
        for cache in (station.held.objects, *station.held.children.values()):
            cache.on_change(lambda _: changed.set())
        async with asyncio.timeout(seconds):
            while not holds():
                changed.clear()
                await changed.wait()

    async def until_done(self, seconds: float = 60.0) -> None:
        await self.operator.leading.wait()
        await self.until(self.is_done, seconds)
        await self.settled()

    async def settled(self) -> None:
        """Until nothing waits in the queue and every answer of an effect is in the store."""
        queue = self.operator.stations[0].queue
        engine = self.operator.engine
        assert queue is not None
        assert engine is not None
        with engine.watch() as signal:
            async with asyncio.timeout(30):
                while True:
                    await queue.idle()
                    if not engine.in_flight:
                        return
                    # An effect without an answer settles in silence, so not by the signal alone.
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(signal.wait(), 0.05)
                    signal.clear()

    def _is_ready(self, obj: Object) -> bool:
        meta, status = obj["metadata"], obj.get("status") or {}
        spec = obj["spec"]
        plan = Plan(meta["generation"], spec["ships"], spec["cargo"])
        children = self.operator.stations[0].children(meta["uid"])
        return (
            carried(children) == carried(wanted(KIND.subject(obj), plan))
            and status.get("phase") == "Ready"
            and status.get("generation") == meta["generation"]
        )


@contextlib.asynccontextmanager
async def working(
    connection: Connection,
    namespace: str,
    kept: Path | Working,
    candidacy: Candidacy | None = None,
    **more: Any,
) -> AsyncIterator[Fleet]:
    """An operator at work on one namespace, with its store in a folder or as it is given.

    `more` is what its orders say besides: a shard, a desk.
    """
    requests: Counter[str] = Counter()

    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    bounds = Limits(rate=10_000, burst=10_000, page=3, first_delay=0.01, longest_delay=0.1)
    # Waits between tries are a twentieth of the real ones: a test has less patience.
    clock = Clock(sleep=lambda seconds: asyncio.sleep(seconds / 20))
    tempo = Tempo(bounds, clock, chance=random.Random(0).random, count=count)
    if candidacy is not None or "desk" in more:
        tempo = dataclasses.replace(tempo, clock=Clock())
    pace = Pace(workers=4, first_delay=0.02, longest_delay=0.2)
    orders = Orders([KIND], namespace, candidacy=candidacy, pace=pace, tempo=tempo, **more)
    engine = engines(kept) if isinstance(kept, Path) else kept
    operator = Operator(connection, orders, engine)
    task = asyncio.create_task(operator.run())
    try:
        yield Fleet(operator, task, requests)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def engines(folder: Path) -> Working:
    """The engines that bootstrap makes, on a store in this folder."""
    return bootstrap.engines(quick(folder), bootstrap.Cast(kinds=[KIND]))


def quick(folder: Path, lease_seconds: float = 15.0) -> settings_.Settings:
    return settings_.Settings(
        store=settings_.StoreSettings(state_dir=folder),
        engine=settings_.EngineSettings(
            lease_seconds=lease_seconds, poll_seconds=0.1, drain_seconds=1.0
        ),
    )


def lease(namespace: str, identity: str, **times: float) -> Candidacy:
    return Candidacy(Key(namespace, "operators"), identity, **times)
