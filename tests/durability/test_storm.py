"""A storm: three workers over a thousand streams, one killed every second."""

import asyncio
import contextlib
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.engine import service
from tests.durability import checks, load, outside, story, worker

SIZE = story.Size(depots=10, trips=99, at_once=25, strikes=40)
LEG_SECONDS = 0.2
# Long enough that a busy machine does not take the living for dead.
LEASE_SECONDS = 2.0
DEADLINE = 600.0
"""Ends a test that hangs."""
WORKERS = 3


@dataclass(slots=True)
class WorkerPool:
    """Workers that are killed one by one, and replaced."""

    story_setup: story.StorySetup
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    kills: int = 0
    gave_up: int = 0

    def hire(self) -> None:
        # Every other worker seems to live elsewhere, so that leases must tell of its death.
        options = ["--far"] if len(list(self.folder.glob("worker-*"))) % 2 else []
        log = self.folder / f"worker-{time.monotonic_ns()}.log"
        self.workers.append(worker.start(self.story_setup, log, options))

    def strike(self) -> None:
        victim = self.workers.pop(random.randrange(len(self.workers)))
        if victim.poll() is None:
            victim.kill()
            self.kills += 1
        else:
            self._give_up(victim)
        victim.wait()
        self.hire()

    def hire_again(self) -> None:
        """In place of those that found no database at their start, as a supervisor does."""
        for gone in [each for each in self.workers if each.poll() is not None]:
            self.workers.remove(gone)
            self._give_up(gone)
            self.hire()

    def _give_up(self, gone: subprocess.Popen[bytes]) -> None:
        # One that found no database at its start has ended by itself, as it should.
        assert gone.returncode == errors.Unavailable.exit_code
        self.gave_up += 1

    def dismiss(self) -> None:
        for each in self.workers:
            each.kill()
            each.wait()


@contextlib.contextmanager
def pool(story_setup: story.StorySetup, folder: Path) -> Iterator[WorkerPool]:
    hired = WorkerPool(story_setup, folder)
    try:
        for _ in range(WORKERS):
            hired.hire()
        yield hired
    finally:
        hired.dismiss()


async def weather(
    story_setup: story.StorySetup, folder: Path, blows: list[Callable[[], None]]
) -> dict[str, object]:
    """Order everything, let the storm rage until the last stream has ended, then look."""
    total = len(list(story_setup.size.effects()))
    begun = time.monotonic()
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        await story.order(door, story_setup.size)
        with pool(story_setup, folder) as hired:
            raging = asyncio.create_task(_rage(hired, door, blows, total))
            try:
                await _finished(door, story_setup.size, raging)
            finally:
                raging.cancel()
    seconds = time.monotonic() - begun
    again = checks.check(story_setup)
    assert not blows, "the story ended before the last restart"
    return {
        "seconds": round(seconds, 1),
        "kills": hired.kills,
        "gave_up": hired.gave_up,
        "performed_again": again,
        "events_per_second": round(story_setup.size.events / seconds),
    }


async def _finished(door: service.Engine, size: story.Size, raging: asyncio.Task[None]) -> None:
    telling = asyncio.create_task(story.over(door, size, DEADLINE))
    done, _ = await asyncio.wait([telling, raging], return_when=asyncio.FIRST_COMPLETED)
    telling.cancel()
    for each in done:
        each.result()
    assert telling in done


async def _rage(
    hired: WorkerPool, door: service.Engine, blows: list[Callable[[], None]], total: int
) -> None:
    """A kill a second; where starting takes longer, once all are at work."""
    world, planned = outside.Outside(hired.story_setup.rollout), len(blows)
    while True:
        await asyncio.sleep(1.0)
        await load.at_work(door, hired.workers, hired.hire_again)
        hired.strike()
        due = (planned - len(blows) + 1) * total / (planned + 1)
        if blows and world.count() >= due:
            await asyncio.to_thread(blows.pop(0))


def story_setup_of(database: str, folder: Path) -> story.StorySetup:
    story_setup = story.StorySetup(database, folder / "rollout", SIZE, LEG_SECONDS, LEASE_SECONDS)
    story_setup.store().migrate()
    return story_setup


@pytest.mark.slow
async def test_postgres_restarted_twice_in_a_storm_loses_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with PostgresServer() as server:
        story_setup = story_setup_of(server.create_database("storm"), tmp_path)
        blows = [lambda: server.restart("fast"), lambda: server.restart("immediate")]

        seen = await weather(story_setup, tmp_path, blows)

    record_property("storm", seen)
    assert int(str(seen["kills"])) >= 5


@pytest.mark.slow
async def test_sqlite_shared_by_workers_in_a_storm_loses_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    story_setup = story_setup_of(str(tmp_path / "storm.db"), tmp_path)

    seen = await weather(story_setup, tmp_path, [])

    record_property("storm", seen)
    assert int(str(seen["kills"])) >= 5
