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
from tests.durability import bell, checks, load, outside, story, worker
from tests.durability.conftest import NewStorySetup

QUEUES = ("local@a", "kubernetes@b", "kubernetes@c")
TRIPS, STRIKES = 98, 10
LEGS = int(os.environ.get("FAIRLEAD_TEST_QUEUE_LEGS", "3"))
"""More of them let the storm rage for longer."""

STREAMS = len(QUEUES) * (1 + TRIPS + 1)
KILLS = 5
"""At the least: these add a bell each, so that there is work for them to interrupt."""

DEADLINE = 600.0
"""Ends a test that hangs."""


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

    def strike(self, queue: str) -> None:
        victim = self.workers[queue]
        victim.kill()
        victim.wait()
        self.kills += 1
        self.hire(queue)

    def check(self) -> None:
        ended = {queue: each.returncode for queue, each in self.workers.items() if each.poll()}
        assert not ended, "they ended by themselves"

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
        depot = messages.stream_name("depot", f"d{n}")
        trips = Order(f"d{n}", TRIPS, LEGS, at_once=25)
        await running.submit(depot, trips, messages.command_id(f"trips {n}"), queue=queue)
        await ring(running, f"t{n}", queue)


async def ring(running: service.Engine, name: str, queue: str) -> None:
    tower, wound = messages.stream_name("bell", name), bell.Wind(STRIKES)
    await running.submit(tower, wound, messages.command_id(f"bell {name}"), queue=queue)


async def rage(hired: Servers, running: service.Engine) -> dict[str, str]:
    """A kill a second, until nothing is left to do; the bells that were added, with their queues.

    Where starting takes longer, a kill comes as soon as all are at work: killed on their way there,
    by the clock alone, on a busy machine they would never do anything.
    """
    added: dict[str, str] = {}
    async with asyncio.timeout(DEADLINE):
        while hired.kills < KILLS or await busy(running):
            await asyncio.sleep(1.0)
            await load.at_work(running, [*hired.workers.values()], hired.check)
            queue = random.choice(QUEUES)
            if hired.kills < KILLS:
                added[f"k{hired.kills}"] = queue
                await ring(running, f"k{hired.kills}", queue)
            hired.strike(queue)
    return added


async def busy(running: service.Engine) -> bool:
    return await running.read(lambda s: s.rows("count_rows")) != [(0, 0, 0, 0)]


def expected(added: dict[str, str]) -> dict[str, str]:
    """Everything that the outside is asked for, with the queue whose worker must ask."""
    found: dict[str, str] = {}
    towers = {f"t{n}": queue for n, queue in enumerate(QUEUES)} | added
    for name, queue in towers.items():
        found |= {f"bell/{name} Sound {strike + 1}": queue for strike in range(STRIKES)}
    for n, queue in enumerate(QUEUES):
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
            added = await rage(hired, running)
        streams = await running.read(
            lambda s: visibility.streams(s, visibility.StreamFilter(limit=10_000))
        )
        for each in streams:
            await running.read(functools.partial(checks.check_events, name=each.name))

    performed = outside.Outside(story_setup.rollout).requests()
    by_queue = {request.what.partition(" ")[::2] for request in performed}
    assert by_queue == {(queue, what) for what, queue in expected(added).items()}
    keys = {request.what: request.key for request in performed}
    assert len({(request.what, request.key) for request in performed}) == len(keys)
    assert len(streams) == STREAMS + len(added)
    assert [one.name for one in streams if one.ended_at is None] == []
    assert hired.kills >= KILLS
    again = len(performed) - len(keys)
    seen = {"kills": hired.kills, "again": again, "seconds": round(time.monotonic() - begun, 1)}
    record_property("storm", seen)
