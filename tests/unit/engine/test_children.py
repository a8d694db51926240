"""Who is cancelled cancels what it started, over all levels, whenever the machine dies."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.postgres.server.running import Databases
from fairlead.engine import batch, children, clock, machine, messages, outbox, service, visibility
from fairlead.engine.children import Children
from fairlead.engine.messages import Cancel, ChildEnded, Send, StreamName, command_id
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg
from fairlead.engine.store import postgres, protocol, sqlite
from fairlead.engine.testing import HandWoundClock, Play, crash_at_every_commit
from tests import networks
from tests.engines import LEASE, Setup, engine, events, state, tell

A, B = StreamName("trip/a-1"), StreamName("trip/b-1")
FAMILY = (networks.MACHINE, depot.DEPOT, trip.TRIP)
DEPOTS, TRIPS = 2, 3


def test_children_are_known_from_their_start_to_their_end() -> None:
    both = Children().started(A, B).started(A)

    assert both.running == (A, B)
    assert A in both
    assert both.ended(A).running == (B,)
    assert both.ended(StreamName("trip/c-1")) == both
    assert not both.ended(A).ended(B)


def test_all_that_run_are_cancelled_and_only_they() -> None:
    family = Children().started(A, B)

    assert family.cancel("no fuel") == (Send(A, Cancel("no fuel")), Send(B, Cancel("no fuel")))
    assert family.ended(A).cancel("no fuel") == (Send(B, Cancel("no fuel")),)
    assert Children().cancel("no fuel") == ()


def test_a_child_tells_its_parent_if_it_has_one() -> None:
    told = children.report("depot/a", A, succeeded=False, reason="no fuel")

    ended = ChildEnded(A, succeeded=False, reason="no fuel")
    assert told == (Send(StreamName("depot/a"), ended),)
    assert children.report("", A, succeeded=True) == ()


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ({"trip": networks.Open}, "a child must know Cancel: trip, which depot starts"),
        ({"depot": Cancel}, "a parent must know Cancel and ChildEnded: depot"),
        ({"network": Cancel}, "a parent must know Cancel and ChildEnded: network"),
    ],
)
def test_a_family_that_cannot_be_cancelled_is_refused_at_the_start(
    commands: dict[str, type], told: str
) -> None:
    def with_commands(each: machine.AnyMachine) -> machine.AnyMachine:
        changed = commands.get(each.name, each.vocabulary.commands)
        return replace(each, vocabulary=replace(each.vocabulary, commands=changed))

    with pytest.raises(ValueError, match=told):
        batch.MachineRegistry(machine.Machines([with_commands(each) for each in FAMILY]))


async def test_a_cancel_ends_three_levels_in_one_transaction(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    # Nobody drives, so that every trip is on its way.
    async with engine(store, wall, Setup(known=FAMILY, perform=False)).running() as running:
        await tell(running, "network/n", networks.Open(DEPOTS, TRIPS, legs=5))
        commits = running.counts.commits
        await tell(running, "network/n", Cancel("no fuel"))

        assert running.counts.commits == commits + 1
        assert await state(running, "network/n") == {"opened": DEPOTS, "failed": DEPOTS}
        assert await events(running, "trip/d0-1") == ["Departed", "Stopped"]
        with pytest.raises(errors.NotFound):
            await state(running, "trip/d0-3")
        again = await tell(running, "network/n", Cancel("still no fuel"))

    assert again.events == 0


async def test_a_child_that_ended_meanwhile_is_not_cancelled(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(known=FAMILY, perform=False)).running() as running:
        await tell(running, "network/n", networks.Open(DEPOTS, 2, legs=1))
        for number in (1, 2):
            await tell(running, f"trip/d0-{number}", Arrive(1))
        await tell(running, "trip/d1-1", Arrive(1))
        await tell(running, "network/n", Cancel("no fuel"))

        assert await events(running, "depot/d0") == [
            *("Ordered", "Sent", "Sent", "Returned", "Returned", "Closed")
        ]
        assert await events(running, "trip/d1-1") == ["Departed", "LegDriven", "Arrived"]
        assert await events(running, "trip/d1-2") == ["Departed", "Stopped"]
        assert await state(running, "network/n") == {"opened": DEPOTS, "failed": 1}


async def test_a_cancel_before_the_first_command_stops_nothing(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(known=FAMILY, perform=False)).running() as running:
        early = await tell(running, "network/n", Cancel("too early"))
        await tell(running, "network/n", networks.Open(1, 1, legs=1))

        assert early.events == 0
        assert await events(running, "trip/d0-1") == ["Departed"]


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], protocol.Store]:
    """A new store at every call: one for each place where the story is cut."""
    numbers = itertools.count()
    if request.param == "sqlite":
        return lambda: sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db")
    databases: Databases = request.getfixturevalue("postgres_server")

    def make() -> protocol.Store:
        name = f"fairlead_cancel_{next(numbers)}_{id(numbers)}"
        request.addfinalizer(lambda: databases.drop_database(name))
        return postgres.PostgresStore(databases.create_database(name))

    return make


async def test_the_cascade_survives_a_crash_at_every_commit(
    fresh_store: Callable[[], protocol.Store],
) -> None:
    async def drive(effect: DriveLeg, _: outbox.EffectContext) -> Arrive:
        return Arrive(effect.leg)

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        handlers: outbox.Handlers = {DriveLeg: outbox.Handler(drive)}
        tuning = service.Tuning(lease=LEASE)
        return service.Engine(service.Parts(store, FAMILY, handlers, wall=wall, tuning=tuning))

    async def act(running: service.Engine) -> None:
        start = networks.Open(DEPOTS, TRIPS, legs=1000)
        await running.submit(networks.NETWORK, start, command_id("open"))
        await running.submit(networks.NETWORK, Cancel("no fuel"), command_id("cancel"))

    async def over(running: service.Engine) -> bool:
        unsettled = await running.read(visibility.effects)
        every = await running.read(lambda s: visibility.streams(s, visibility.StreamFilter()))
        return bool(every) and not unsettled and all(view.ended_at for view in every)

    async def all_stopped_once(running: service.Engine) -> None:
        every = await running.read(lambda s: visibility.streams(s, visibility.StreamFilter()))
        found = {view.name: view.state for view in every}
        # Two of three trips of each depot were on the road; the third never set out.
        trips = [messages.stream_name("trip", f"d{d}-{t}") for d in range(2) for t in (1, 2)]
        assert {found.pop(name) for name in trips} == {"Stopped"}
        assert found == {"depot/d0": "Done", "depot/d1": "Done", "network/n": "Closed"}
        for name in ("depot/d0", "depot/d1"):
            told = await events(running, name)
            assert told == [
                *("Ordered", "Sent", "Sent", "Cancelled", "Returned", "Returned", "Closed")
            ]

    play = Play(fresh_store, build, act, over, lease=LEASE)
    cuts = await crash_at_every_commit(play, all_stopped_once)

    assert cuts >= 2
