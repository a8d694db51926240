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
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import Answered, ClientOptions
from fairlead.kubernetes.controller.leader import Candidacy
from fairlead.kubernetes.controller.queue import QueueOptions
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.operator.operator import Operator, OperatorOptions, Working
from tests.operator.sample_kind import KIND, Plan, carried, wanted

READS = ("get", "list", "watch")


@dataclasses.dataclass
class RunningOperator:
    """One running operator, and the count of its requests."""

    operator: Operator
    task: "asyncio.Task[None]"
    requests: Counter[str]

    @property
    def writes(self) -> int:
        return sum(count for verb, count in self.requests.items() if verb not in READS)

    @property
    def bundles(self) -> list[Object]:
        return list(self.operator.controllers[0].held.objects.all())

    def reconcile_all(self) -> None:
        """Ask for one more look at every object."""
        queue = self.operator.controllers[0].queue
        assert queue is not None
        for key in self.operator.controllers[0].held.objects.known():
            queue.add(key)

    def is_done(self) -> bool:
        """By the caches alone: every bundle has its gadgets, and says so of this generation."""
        return all(self._is_ready(one) for one in self.bundles)

    async def until(self, holds: Callable[[], bool], seconds: float = 120.0) -> None:
        """Every change of a cache is a reason to look."""
        changed = asyncio.Event()
        controller = self.operator.controllers[0]
        for cache in (controller.held.objects, *controller.held.children.values()):
            cache.on_change(lambda _: changed.set())
        async with asyncio.timeout(seconds):
            while not holds():
                changed.clear()
                await changed.wait()

    async def until_done(self, seconds: float = 120.0) -> None:
        await self.operator.leading.wait()
        await self.until(self.is_done, seconds)
        await self.settled()

    async def settled(self) -> None:
        """Until nothing waits in the queue and every answer of an effect is in the store."""
        queue = self.operator.controllers[0].queue
        engine = self.operator.engine
        assert queue is not None
        assert engine is not None
        with engine.watch() as signal:
            async with asyncio.timeout(120):
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
        plan = Plan(meta["generation"], spec["gadgets"], spec["cargo"])
        children = self.operator.controllers[0].children(meta["uid"])
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
) -> AsyncIterator[RunningOperator]:
    """An operator at work on one namespace, with its store in a folder or as it is given.

    `more` is what its orders say besides: a shard, an admission server.
    """
    requests: Counter[str] = Counter()

    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    bounds = Limits(rate=10_000, burst=10_000, page=3, first_delay=0.01, longest_delay=0.1)
    # Waits between tries are a twentieth of the real ones: a test has less patience.
    clock = Clock(sleep=lambda seconds: asyncio.sleep(seconds / 20))
    options = ClientOptions(bounds, clock, chance=random.Random(0).random, count=count)
    if candidacy is not None or "admission_server" in more:
        options = dataclasses.replace(options, clock=Clock())
    pace = QueueOptions(workers=4, first_delay=0.02, longest_delay=0.2)
    orders = OperatorOptions(
        more.pop("kinds", [KIND]),
        namespace,
        candidacy=candidacy,
        queue_options=pace,
        options=options,
        **more,
    )
    engine = engines(kept) if isinstance(kept, Path) else kept
    operator = Operator(connection, orders, engine)
    task = asyncio.create_task(operator.run())
    try:
        yield RunningOperator(operator, task, requests)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def engines(folder: Path) -> Working:
    """The engines that bootstrap makes, on a store in this folder."""
    return wiring.engines(quick(folder), bootstrap.Installation(kinds=[KIND]))


def quick(folder: Path, lease_seconds: float = 15.0) -> settings_.Settings:
    return settings_.Settings(
        store=settings_.StoreSettings(state_dir=folder),
        engine=settings_.EngineSettings(
            lease_seconds=lease_seconds, poll_seconds=0.1, drain_seconds=1.0
        ),
    )


def lease(namespace: str, identity: str, **times: float) -> Candidacy:
    return Candidacy(Key(namespace, "operators"), identity, **times)
