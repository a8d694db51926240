"""What a worker must not do: die one after the other, work on in silence, ask a hundred times."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from fairlead import errors
from fairlead.engine import batch, codec, machine
from fairlead.engine import messages as engine_messages
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Order
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import LEASE, PATIENCE, Home, Setup, dead, engine, handlers, tell, until
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering


async def test_an_effect_that_killed_its_workers_is_buried_unperformed(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(("x",)))
    home.sql("UPDATE outbox SET attempts = 12")
    outside = OutsideWorld()

    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        await until(lambda: dead(running), wall)
        (effect,) = await dead(running)

    assert effect.error == "Rejected: given up after 12 attempts"
    assert outside.asked == []


async def test_a_worker_cut_off_past_its_lease_stops_before_it_is_told(
    home: Home, wall: HandWoundClock
) -> None:
    outside, line = OutsideWorld(), Tampering()
    outside.gate.clear()
    store = TamperedStore(home.store(), line)

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        line.cut = True
        wall.advance(LEASE * 2)
        await until(lambda: asyncio.sleep(0, bool(outside.cancelled)), wall)

        assert line.cut

    assert outside.cancelled == ["x"]


async def test_an_engine_that_loses_a_loop_ends_loudly(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    made = engine(store, wall)

    async def broken() -> None:
        raise KeyError("a bug of ours")

    made._timers.run = broken  # type: ignore[method-assign]  # the fault we look at

    with pytest.raises(RuntimeError, match="a loop of the engine broke") as told:
        async with made.running():
            await asyncio.sleep(30)

    assert isinstance(told.value.__cause__, KeyError)


def test_all_that_a_decision_sends_to_is_asked_for_at_once() -> None:
    made = batch.Batch(
        batch.MachineRegistry(machine.Machines([depot.DEPOT, trip.TRIP])),
        batch.Identity(START),
        protocol.Loaded((), ()),
        lambda count: range(1, count + 1),
    )
    made.know(["depot/a"], ())
    order = engine_messages.Submission(
        engine_messages.StreamName("depot/a"),
        Order("a", trips=5, at_once=5),
        engine_messages.CommandId("order"),
    )

    with pytest.raises(batch.Unloaded) as asked:
        made.take(order)

    assert asked.value.streams == [f"trip/a-{number}" for number in range(1, 6)]


def test_two_machines_of_one_name_are_refused() -> None:
    twin = replace(trip.TRIP, name="depot")

    with pytest.raises(ValueError, match="two machines of one name: depot"):
        machine.Machines([depot.DEPOT, twin])


@dataclass(frozen=True, slots=True)
class Renamed:
    leg: int


def test_a_type_without_its_upcasters_is_refused_at_the_start() -> None:
    vocabulary = replace(trip.TRIP.vocabulary, effects=Renamed)
    grown = replace(trip.TRIP, vocabulary=vocabulary, versions={Renamed: 3})

    with pytest.raises(ValueError, match="no upcaster: trip effect Renamed from version 1"):
        codec.Codec(grown)


async def test_the_same_command_after_an_upgrade_is_the_same_command(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall).running() as before:
        first = await tell(before, "counter/a", machines.Add(1), "once")
    grown = replace(
        machines.COUNTER,
        versions={machines.Add: 2},
        upcasters={("Add", 1): dict},
    )

    async with engine(home.store(), wall, Setup(known=(grown,))).running() as after:
        again = await tell(after, "counter/a", machines.Add(1), "once")

        with pytest.raises(errors.Conflict):
            await tell(after, "counter/a", machines.Add(2), "once")

    assert (again, again.duplicate) == (first, True)


async def test_a_worker_ends_when_the_store_is_migrated_to_what_it_does_not_know(
    home: Home, wall: HandWoundClock
) -> None:
    async def work() -> None:
        async with engine(home.store(), wall).running(), asyncio.timeout(PATIENCE):
            home.sql("INSERT INTO migrations (name) VALUES ('9999_later')")
            while True:
                wall.advance(timedelta(minutes=1))
                await asyncio.sleep(0.05)

    with pytest.raises(errors.Conflict, match="newer than this program: 9999_later"):
        await work()
