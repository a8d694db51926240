"""A crash before or after any commit loses nothing: the story always ends the same."""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.clients.postgres.server.running import Databases
from fairlead.engine import clock, messages, outbox, service, visibility
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg, Order
from fairlead.engine.store import postgres, protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.engines import LEASE

TRIPS, LEGS = 2, 3
STREAMS = ("depot/a", *(f"trip/a-{number}" for number in range(1, TRIPS + 1)))
DEPOT_EVENTS = ["Ordered", *["Sent"] * TRIPS, *["Returned"] * TRIPS, "Closed"]
TRIP_EVENTS = ["Departed", *["LegDriven"] * LEGS, "Arrived"]


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], protocol.Store]:
    """A new store at every call: one for each place where the story is cut."""
    numbers = itertools.count()
    if request.param == "sqlite":
        return lambda: sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db")
    databases: Databases = request.getfixturevalue("postgres_server")

    def make() -> protocol.Store:
        name = f"fairlead_crash_{next(numbers)}_{id(numbers)}"
        request.addfinalizer(lambda: databases.drop_database(name))
        return postgres.PostgresStore(databases.create_database(name))

    return make


class Outside:
    """Counts how often each idempotency key is seen."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    async def drive(self, effect: DriveLeg, context: outbox.EffectContext) -> Arrive:
        self.seen[context.idempotency_key] += 1
        return Arrive(effect.leg)


async def order(engine: service.Engine) -> None:
    await engine.submit(
        messages.stream_name("depot", "a"),
        Order("a", TRIPS, LEGS, at_once=1),
        messages.command_id("the order"),
    )


async def settled(engine: service.Engine) -> bool:
    every = await engine.read(lambda s: visibility.streams(s, visibility.StreamFilter()))
    return len(every) == len(STREAMS) and all(view.ended_at for view in every)


async def as_told(engine: service.Engine) -> None:
    for stream in STREAMS:
        name = messages.parse_stream(stream)
        events = await engine.read(lambda s, name=name: visibility.events(s, name))  # type: ignore[misc]  # mypy does not infer a default
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        types = [event.type for event in events]
        assert sorted(types) == sorted(DEPOT_EVENTS if stream == "depot/a" else TRIP_EVENTS)
    assert await engine.read(visibility.effects) == []


async def test_the_samples_survive_a_crash_at_every_commit(
    fresh_store: Callable[[], protocol.Store],
) -> None:
    outsides: list[Outside] = []

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        outsides.append(Outside())
        handlers: outbox.Handlers = {DriveLeg: outbox.Handler(outsides[-1].drive)}
        parts = service.Parts(
            store,
            (depot.DEPOT, trip.TRIP),
            handlers,
            wall=wall,
            tuning=service.Tuning(lease=LEASE),
        )
        return service.Engine(parts)

    cuts = await crash_at_every_commit(
        Play(fresh_store, build, order, settled, lease=LEASE), as_told
    )

    # The order, each leg's answer, and the lease are commits of their own.
    assert cuts >= 1 + TRIPS * LEGS
    done = [Counter(before.seen) + after.seen for before, after in itertools.pairwise(outsides)][
        ::2
    ]
    assert all(len(seen) == TRIPS * LEGS for seen in done)
    assert max(count for seen in done for count in seen.values()) <= 2
