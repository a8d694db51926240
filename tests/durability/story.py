"""The story that must come out whole wherever it is cut: depots with trips, and a bell.

Run by actor.py (which kills itself at a chosen commit), by worker.py (which is killed from
outside) and in the tests' own process (behind a proxy that cuts connections).
"""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from fairlead import errors
from fairlead.engine import messages, outbox, projections, service, visibility
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg, Order
from fairlead.engine.store import postgres, protocol, sqlite
from tests.durability import bell, outside

MACHINES = (depot.DEPOT, trip.TRIP, bell.BELL)
NEXT_MACHINES = (depot.DEPOT, trip.TRIP, bell.NEXT_BELL)
# Short, for others to take over soon; but a worker stops when it lapses, so a busy machine must
# keep up with it.
LEASE = timedelta(seconds=1.2)
POLL = timedelta(seconds=0.1)
PATIENCE = 120.0
"""Ends a test that hangs; nothing is said about how long anything takes."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is to tell."""

    depots: int = 1
    trips: int = 3
    legs: int = 10
    at_once: int = 2
    strikes: int = 3

    @property
    def streams(self) -> int:
        return self.depots * (1 + self.trips) + 1

    @property
    def events(self) -> int:
        depots = self.depots * (2 * self.trips + 2)
        return depots + self.depots * self.trips * (self.legs + 2) + self.strikes + 1

    def effects(self) -> Iterator[str]:
        """Everything that the outside must have been asked for."""
        for number in range(self.strikes):
            yield f"bell/tower Sound {number + 1}"
        for name in self.names():
            for number in range(self.trips):
                for leg in range(self.legs):
                    yield f"trip/{name}-{number + 1} DriveLeg {leg + 1}"

    def names(self) -> list[str]:
        return [f"d{number}" for number in range(self.depots)]


@dataclass(frozen=True, slots=True)
class StorySetup:
    """Where a story is told: its store, its outside, and how long a leg takes."""

    database: str
    rollout: Path
    size: Size = Size()
    leg_seconds: float = 0.0
    lease_seconds: float = LEASE.total_seconds()
    queue: str = ""
    """Which one is served here; the outside is then told of it too."""

    next_program: bool = False
    """Run the next version, which asks for an effect that this one does not know."""

    def store(self) -> protocol.Store:
        if self.database.startswith("postgresql://"):
            return postgres.PostgresStore(self.database)
        return sqlite.SqliteStore(Path(self.database))


def engine(
    story_setup: StorySetup, store: protocol.Store, *, perform: bool = True
) -> service.Engine:
    world = outside.Outside(story_setup.rollout)

    async def drive(effect: DriveLeg, context: outbox.EffectContext) -> Arrive:
        await asyncio.sleep(random.uniform(0, 2 * story_setup.leg_seconds))
        _tell(world, story_setup.queue, f"DriveLeg {effect.leg}", context)
        return Arrive(effect.leg)

    async def sound(effect: bell.Sound | bell.Chime, context: outbox.EffectContext) -> None:
        _tell(world, story_setup.queue, f"Sound {effect.number}", context)

    bells = (bell.Sound, bell.Chime) if story_setup.next_program else (bell.Sound,)
    handlers: outbox.Handlers = {
        DriveLeg: outbox.Handler(drive),
        **{kind: outbox.Handler(sound) for kind in bells},
    }
    return service.Engine(
        service.Parts(
            store,
            NEXT_MACHINES if story_setup.next_program else MACHINES,
            queues={story_setup.queue: handlers},
            views=(COUNTED,),
            tuning=service.Tuning(lease=timedelta(seconds=story_setup.lease_seconds), poll=POLL),
        ),
        perform=perform,
    )


async def order(running: service.Engine, size: Size) -> None:
    """Ask for the whole story; the same ids each time, as a door that asks again would."""
    for number in range(size.depots):
        await order_depot(running, size, number)
    await order_bell(running, size)


async def order_depot(running: service.Engine, size: Size, number: int) -> None:
    name = size.names()[number]
    order = Order(name, size.trips, size.legs, size.at_once)
    await _submit(running, messages.stream_name("depot", name), order)


async def order_bell(running: service.Engine, size: Size) -> None:
    wind = bell.Wind(size.strikes)
    await _submit(running, messages.stream_name("bell", "tower"), wind)


async def over(running: service.Engine, size: Size, patience: float = PATIENCE) -> None:
    """Until every stream has ended and nothing waits to be done."""
    async with asyncio.timeout(patience):
        with running.watch() as signal:
            while not await _is_over(running, size):
                await running.wait(signal, timedelta(seconds=0.05))


async def _is_over(running: service.Engine, size: Size) -> bool:
    try:
        return await running.read(lambda session: is_over(session, size))
    except errors.Unavailable:
        return False


def is_over(session: protocol.Session, size: Size) -> bool:
    if session.rows("count_rows") != [(0, 0, 0, 0)]:
        return False
    rows = projections.rows(session, COUNTED.name, limit=100_000)
    return bool(sum(row["events"] for _, row in rows) >= size.events)


async def _submit(
    running: service.Engine, stream: messages.StreamName, command: object
) -> messages.Receipt:
    """As a good door does: where no answer came, ask again under the same id."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await running.submit(stream, command, messages.command_id(f"do {stream}"))
            except errors.Unavailable:
                await asyncio.sleep(0.05)


def _tell(world: outside.Outside, queue: str, what: str, context: outbox.EffectContext) -> None:
    told = f"{queue} {context.stream} {what}".strip()
    world.request(told, context.idempotency_key, context.attempt)


def _count(row: dict[str, Any] | None, event: visibility.EventView) -> dict[str, Any]:
    # In order and without a gap, or the sum tells.
    last = (row or {"last": 0})["last"]
    return {
        "events": (row or {"events": 0})["events"] + 1,
        "last": event.seq,
        "broken": (row or {"broken": 0})["broken"] + (event.seq != last + 1),
    }


COUNTED = projections.Projection(
    "counted", 1, lambda event: event.stream, projections.one_by_one(_count)
)
