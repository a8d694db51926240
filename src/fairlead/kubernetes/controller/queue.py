"""Which key is reconciled next: each once, never twice at a time, every namespace in its turn.

`Backlog` is the pure core: it is told the time and answers at once. `Queue` gives it workers.
A key stands for the whole object, so a hundred changes while it waits are one reconcile.
"""

import asyncio
import dataclasses
import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from fairlead.errors import FairleadError
from fairlead.kubernetes.api_errors import Busy
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.objects import Key

log = structlog.get_logger(__name__)

Work = Callable[[Key], Awaitable[float | None]]
"""Reconciles one key; answers the seconds after which to requeue it, if it asks for that."""


@dataclasses.dataclass(frozen=True, slots=True)
class QueueOptions:
    """How hard the queue works."""

    workers: int = 8
    first_delay: float = 0.5
    """Seconds before a failed key is reconciled again; doubles with each failure."""
    longest_delay: float = 300.0
    work_seconds: float = 120.0
    """Seconds after which one reconcile is given up."""
    rest: float = 0.0
    """Seconds that a key rests after a reconcile: changes that come together are one reconcile."""


class Backlog:
    """Keys that wait, keys that are worked on, and keys whose time is yet to come."""

    def __init__(self, queue_options: QueueOptions) -> None:
        self._options = queue_options
        self._lanes: OrderedDict[str, deque[Key]] = OrderedDict()
        self._waiting: set[Key] = set()
        self._working: set[Key] = set()
        self._changed: set[Key] = set()
        self._later: list[tuple[float, Key]] = []
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._rested: OrderedDict[Key, float] = OrderedDict()
        self._resting: set[Key] = set()

    def __len__(self) -> int:
        """Keys that changed and were not taken yet, those being worked on or resting too."""
        return len(self._waiting) + len(self._changed) + len(self._resting)

    @property
    def working(self) -> int:
        return len(self._working)

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    def add(self, key: Key, now: float) -> None:
        """Reconcile the key as soon as it has rested and its turn comes."""
        if key in self._working:
            # Its worker may have read the object before this change: reconcile again after it.
            self._changed.add(key)
        elif self._rested.get(key, now) > now:
            self._resting.add(key)
            self.add_at(key, self._rested[key])
        elif key not in self._waiting:
            self._resting.discard(key)
            self._waiting.add(key)
            self._lanes.setdefault(key.namespace, deque()).append(key)

    def add_at(self, key: Key, when: float) -> None:
        """Reconcile it at a time; of several times the earliest counts."""
        if self._due.get(key, when + 1) > when:
            self._due[key] = when
            heapq.heappush(self._later, (when, key))

    def take(self, now: float) -> Key | None:
        """The next key, which is being worked on from now until `done`."""
        self._ripen(now)
        if not self._lanes:
            return None
        namespace, lane = self._lanes.popitem(last=False)
        key = lane.popleft()
        if lane:
            # To the end of the round: a namespace with many keys does not hold up the others.
            self._lanes[namespace] = lane
        self._waiting.discard(key)
        self._working.add(key)
        return key

    def done(self, key: Key, now: float) -> None:
        self._working.discard(key)
        self._rest(key, now)
        if key in self._changed:
            self._changed.discard(key)
            self.add(key, now)

    def _rest(self, key: Key, now: float) -> None:
        if not self._options.rest:
            return
        self._rested[key] = now + self._options.rest
        self._rested.move_to_end(key)
        # In the order of their times: those at the front have rested enough.
        while next(iter(self._rested.values())) <= now:
            self._rested.popitem(last=False)

    def failed(self, key: Key, now: float, chance: float, at_least: float = 0.0) -> float:
        """Count a failure and requeue; answers how much later."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        longest = min(
            self._options.longest_delay, self._options.first_delay * 2.0 ** min(count, 30)
        )
        wait = max(at_least, longest * (0.5 + chance / 2))
        self.add_at(key, now + wait)
        return wait

    def forget(self, key: Key) -> None:
        """The key succeeded: its next failure is a first one."""
        self._failures.pop(key, None)

    def next_due(self) -> float | None:
        """When the earliest of the later keys ripens."""
        while self._later and self._due.get(self._later[0][1]) != self._later[0][0]:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def _ripen(self, now: float) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, key = heapq.heappop(self._later)
            del self._due[key]
            self.add(key, now)


class Queue:
    """A backlog with a bounded number of workers."""

    def __init__(
        self,
        queue_options: QueueOptions | None = None,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._options = queue_options or QueueOptions()
        self._clock = clock or Clock()
        self._chance = chance
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self.backlog = Backlog(self._options)

    def add(self, key: Key) -> None:
        self._idle.clear()
        self.backlog.add(key, self._clock.monotonic())
        self._wake.set()

    def add_after(self, key: Key, seconds: float) -> None:
        self.backlog.add_at(key, self._clock.monotonic() + seconds)
        self._wake.set()

    def close(self) -> None:
        """Take nothing more; `run` returns when the last worker is done."""
        self._closing = True
        self._wake.set()

    async def idle(self) -> None:
        """Until nothing waits and nobody works; keys whose time is yet to come do not count."""
        await self._idle.wait()

    async def run(self, work: Work) -> None:
        """Work until closed or cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while not self._closing:
                # Cleared before reading: what is added from here on wakes us again.
                self._wake.clear()
                while self.backlog.working < self._options.workers:
                    key = self.backlog.take(self._clock.monotonic())
                    if key is None:
                        break
                    self._idle.clear()
                    tasks.create_task(self._reconcile_key(key, work))
                await self._until_woken()

    async def _until_woken(self) -> None:
        due = self.backlog.next_due()
        if due is None:
            # Nearly always: no task for a wait that only has one reason to end.
            await self._wake.wait()
            return
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._wake.wait())}
        if self.backlog.working < self._options.workers:
            left = max(0.0, due - self._clock.monotonic())
            waits.add(asyncio.ensure_future(self._clock.sleep(left)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _reconcile_key(self, key: Key, work: Work) -> None:
        """One reconcile; whatever it ends with, the key is free again and other keys go on."""
        try:
            async with asyncio.timeout(self._options.work_seconds):
                again = await work(key)
        except FairleadError as error:
            at_least = error.retry_after if isinstance(error, Busy) else None
            self._failed(key, f"{error}", at_least or 0.0)
        except Exception as error:
            # One bad object must not end the work on all the others.
            log.exception("kubernetes.queue.crashed", key=str(key))
            self._failed(key, f"{type(error).__name__}", 0.0)
        else:
            self.backlog.forget(key)
            if again is not None:
                self.add_after(key, again)
        finally:
            self.backlog.done(key, self._clock.monotonic())
            if not len(self.backlog) and not self.backlog.working:
                self._idle.set()
            self._wake.set()

    def _failed(self, key: Key, error: str, at_least: float) -> None:
        wait = self.backlog.failed(key, self._clock.monotonic(), self._chance(), at_least)
        count = self.backlog.failures(key)
        log.warning(
            "kubernetes.queue.failed",
            key=str(key),
            error=error,
            failures=count,
            wait=round(wait, 2),
        )
