"""Work that keeps coming for as long as a fault lasts, and how long nothing was done meanwhile."""

import asyncio
import contextlib
import dataclasses
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlead import errors
from fairlead.engine import service
from fairlead.engine.store import protocol
from tests.durability import story, worker

WORKERS = 3
_TICK = 0.05


@dataclass(slots=True)
class Progress:
    """When the outside last heard of us, watched from outside of all workers."""

    book: Path
    longest: float = 0.0
    _size: int = 0
    _since: float = field(default_factory=time.monotonic)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def restart(self) -> None:
        self.longest, self._since = 0.0, time.monotonic()

    async def next(self) -> None:
        """Until more was done than now."""
        self._moved.clear()
        async with asyncio.timeout(story.PATIENCE):
            await self._moved.wait()

    async def watch(self) -> None:
        while True:
            now = time.monotonic()
            size = self.book.stat().st_size if self.book.exists() else 0
            self.longest = max(self.longest, now - self._since)
            if size != self._size:
                self._size, self._since = size, now
                self._moved.set()
            await asyncio.sleep(_TICK)


@dataclass(slots=True)
class Load:
    """Orders that follow one another, and what they add up to."""

    running: service.Engine
    size: story.Size
    """Of one order."""

    pause_seconds: float
    ordered: int = 0

    async def keep_coming(self) -> None:
        await story.order_bell(self.running, self.size)
        while True:
            size = dataclasses.replace(self.size, depots=self.ordered + 1)
            # Counted before it is asked for: one whose answer is still out must be done as well.
            self.ordered += 1
            await story.order_depot(self.running, size, self.ordered - 1)
            await asyncio.sleep(self.pause_seconds)

    @property
    def total(self) -> story.Size:
        return dataclasses.replace(self.size, depots=self.ordered)

    async def finish(self, coming: asyncio.Task[None]) -> None:
        """Take the last order in, whose answer may still be out, then wait until all is done."""
        coming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await coming
        await story.order_bell(self.running, self.total)
        if self.ordered:
            await story.order_depot(self.running, self.total, self.ordered - 1)
        await story.over(self.running, self.total)


@contextlib.contextmanager
def workers(story_setup: story.StorySetup, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Live through all of it: one that ended by itself did not follow."""
    with contextlib.ExitStack() as hired:
        started = [
            hired.enter_context(worker.worker(story_setup, folder / f"worker-{number}.log"))
            for number in range(WORKERS)
        ]
        yield started
        assert [process.poll() for process in started] == [None] * len(started)


@contextlib.asynccontextmanager
async def running_load(
    story_setup: story.StorySetup, pause_seconds: float
) -> AsyncIterator[tuple[Load, Progress]]:
    """Orders through an engine that performs nothing; all done when the block is left."""
    progress = Progress(story_setup.rollout)
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        load = Load(door, story_setup.size, pause_seconds)
        coming = asyncio.create_task(load.keep_coming())
        watching = asyncio.create_task(progress.watch())
        try:
            yield load, progress
            await load.finish(coming)
        finally:
            coming.cancel()
            watching.cancel()


async def at_work(
    door: service.Engine,
    workers: Sequence[subprocess.Popen[bytes]],
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """One that finds no database at its start ends, as it should: let each of these find it."""
    async with asyncio.timeout(story.PATIENCE):
        while not await _are_at_work(door, {f":{process.pid}" for process in workers}):
            meanwhile()
            await asyncio.sleep(_TICK)


async def _are_at_work(door: service.Engine, pids: set[str]) -> bool:
    try:
        return await door.read(lambda session: _have_leases(session, pids))
    except errors.Unavailable:
        return False


def _have_leases(session: protocol.Session, pids: set[str]) -> bool:
    names = [row[1] for row in session.rows("live_workers", now=0)]
    return pids <= {f":{name.rpartition(':')[2]}" for name in names}
