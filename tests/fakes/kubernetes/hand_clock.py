"""Clocks for tests: one that waits to be wound, one that jumps over every wait."""

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from fairlead.kubernetes.client.clock import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)


class HandClock:
    """Time stands still until `advance`; sleepers wake in order."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.seconds, now=self.now, sleep=self.sleep)

    @property
    def sleeping(self) -> int:
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass, giving each sleeper its turn at its own moment."""
        await settle()
        end = self.seconds + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self.seconds, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await settle()
        self.seconds = end


class RushingClock(HandClock):
    """Every sleep is over at once, and is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def ticking(clock: HandClock, sleepers: Callable[[], int]) -> AsyncIterator[None]:
    """Winds the clock on its own, but only while so many sleep: who works is waited for.

    A slow machine then takes longer, and sees the same story: no time passes during a request.
    """

    async def wind() -> None:
        while True:
            await asyncio.sleep(0.001)
            if clock.sleeping >= sleepers():
                await clock.advance(0.25)

    task = asyncio.create_task(wind())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(20):
        await asyncio.sleep(0)
