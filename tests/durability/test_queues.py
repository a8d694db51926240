"""Three processes, three queues, one store, a kill every second: each does its own, all of it.

Timers fire on any of the three, so a bell's strike is mostly decided by a process that must
leave its effect to another.
"""

import asyncio
import contextlib
import functools
import os
import random
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fairlead.engine import messages, service, visibility
from fairlead.engine.sample.messages import Order
from tests.durability import bell, checks, outside, story, worker
from tests.durability.conftest import NewStorySetup

QUEUES = ("local@a", "kubernetes@b", "kubernetes@c")
TRIPS, STRIKES = 98, 10
LEGS = int(os.environ.get("FAIRLEAD_TEST_QUEUE_LEGS", "3"))
"""More of them let the storm rage for longer."""

STREAMS = len(QUEUES) * (1 + TRIPS + 1)
DEADLINE = 120.0 + 10 * LEGS


@dataclass(slots=True)
class Servers:
    """One worker a queue; whoever is killed is replaced by one of the same queue."""

    story_setup: story.StorySetup
    folder: Path
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    kills: int = 0

    def hire(self, queue: str) -> None:
        log = self.folder / f"worker-{time.monotonic_ns()}.log"
        # Every other one seems to live elsewhere, so that its lease must tell of its death.
        options = ["--far"] if self.kills % 2 else []
        self.workers[queue] = worker.start(replace(self.story_setup, queue=queue), log, options)

    def strike(self) -> None:
        queue = random.choice(QUEUES)
        victim = self.workers[queue]
        assert victim.poll() is None, "it ended by itself"
        victim.kill()
        victim.wait()
        self.kills += 1
        self.hire(queue)

    def dismiss(self) -> None:
        for each in self.workers.values():
            each.kill()
            each.wait()


@contextlib.contextmanager
def servers(story_setup: story.StorySetup, folder: Path) -> Iterator[Servers]:
    hired = Servers(story_setup, folder)
    try:
        for queue in QUEUES:
            hired.hire(queue)
        yield hired
    finally:
        hired.dismiss()


@contextlib.asynccontextmanager
async def door(story_setup: story.StorySetup) -> AsyncIterator[service.Engine]:
    """A process that only takes orders, and serves no queue."""
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as running:
        yield running


async def order(running: service.Engine) -> None:
    for n, queue in enumerate(QUEUES):
        depot, tower = messages.stream_name("depot", f"d{n}"), messages.stream_name("bell", f"t{n}")
        trips = Order(f"d{n}", TRIPS, LEGS, at_once=25)
        await running.submit(depot, trips, messages.command_id(f"trips {n}"), queue=queue)
        wound = bell.Wind(STRIKES)
        await running.submit(tower, wound, messages.command_id(f"bell {n}"), queue=queue)


async def rage(hired: Servers, running: service.Engine) -> None:
    """A kill a second, until nothing is left to do."""
    async with asyncio.timeout(DEADLINE):
        while await running.read(lambda s: s.rows("count_rows")) != [(0, 0, 0, 0)]:
            await asyncio.sleep(1.0)
            hired.strike()


def expected() -> dict[str, str]:
    """Everything that the outside is asked for, with the queue whose worker must ask."""
    found: dict[str, str] = {}
    for n, queue in enumerate(QUEUES):
        found |= {f"bell/t{n} Sound {strike + 1}": queue for strike in range(STRIKES)}
        for trip in range(TRIPS):
            found |= {f"trip/d{n}-{trip + 1} DriveLeg {leg + 1}": queue for leg in range(LEGS)}
    return found


@pytest.mark.slow
async def test_in_a_storm_each_effect_is_performed_by_who_serves_its_queue(
    new_story_setup: NewStorySetup, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    story_setup = replace(new_story_setup("queues"), leg_seconds=0.2, lease_seconds=2.0)
    begun = time.monotonic()

    async with door(story_setup) as running:
        await order(running)
        with servers(story_setup, tmp_path) as hired:
            await rage(hired, running)
        streams = await running.read(
            lambda s: visibility.streams(s, visibility.StreamFilter(limit=10_000))
        )
        for each in streams:
            await running.read(functools.partial(checks.check_events, name=each.name))

    performed = outside.Outside(story_setup.rollout).requests()
    by_queue = {request.what.partition(" ")[::2] for request in performed}
    assert by_queue == {(queue, what) for what, queue in expected().items()}
    keys = {request.what: request.key for request in performed}
    assert len({(request.what, request.key) for request in performed}) == len(keys)
    assert (len(streams), [one.name for one in streams if one.ended_at is None]) == (STREAMS, [])
    assert hired.kills >= 5
    again = len(performed) - len(keys)
    seen = {"kills": hired.kills, "again": again, "seconds": round(time.monotonic() - begun, 1)}
    record_property("storm", seen)
