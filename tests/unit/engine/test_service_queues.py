"""A stream's queue: given at birth, inherited, performed by who serves it, moved by a person."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from fairlead import errors
from fairlead.engine import messages, service, visibility
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Order
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import Home, Setup, effects, engine, handlers, name, state, tell, until
from tests.outside_world import OutsideWorld

ONE, TWO = "kubernetes@one", "kubernetes@two"


def serving(outside: OutsideWorld, *queues: str) -> Setup:
    return Setup(queues=dict.fromkeys(queues, handlers(outside.carry)))


async def carried(running: service.Engine, stream: str) -> bool:
    return bool((await state(running, stream))["carried"])


async def queue_of(running: service.Engine, stream: str) -> str:
    view = await running.read(lambda session: visibility.stream(session, name(stream)))
    return view.queue


async def test_each_worker_performs_the_effects_of_its_own_queue(
    home: Home, wall: HandWoundClock
) -> None:
    near, far = OutsideWorld(), OutsideWorld()

    async with (
        engine(home.store(), wall, serving(near, ONE)).running() as one,
        engine(home.store(), wall, serving(far, TWO)).running() as two,
    ):
        # Each is told of the other's work too: who commits need not be who performs.
        await tell(one, "fan/a", machines.Load(("a",)), queue=ONE)
        await tell(one, "fan/b", machines.Load(("b",)), queue=TWO)
        await tell(two, "fan/c", machines.Load(("c",)), queue=ONE)
        for stream in ("fan/a", "fan/b", "fan/c"):
            await until(lambda stream=stream: carried(one, stream), wall)  # type: ignore[misc]  # a default is no type

    assert (sorted(near.asked), far.asked) == (["a", "c"], ["b"])


async def test_one_process_serves_two_clusters_each_by_its_own_handler(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outsides = {ONE: OutsideWorld(), TWO: OutsideWorld()}
    cast = Setup(queues={queue: handlers(outside.carry) for queue, outside in outsides.items()})

    async with engine(store, wall, cast).running() as running:
        await tell(running, "fan/a", machines.Load(("a",)), queue=ONE)
        await tell(running, "fan/b", machines.Load(("b",)), queue=TWO)
        await until(lambda: carried(running, "fan/a"), wall)
        await until(lambda: carried(running, "fan/b"), wall)

    assert [outside.asked for outside in outsides.values()] == [["a"], ["b"]]


async def test_an_effect_is_held_from_birth_only_where_it_can_be_performed(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    gate = asyncio.Event()

    async def wait(*_: object) -> None:
        await gate.wait()

    cast = Setup(queues={ONE: handlers(wait)})
    async with engine(store, wall, cast).running() as running:
        await tell(running, "fan/a", machines.Load(("a",)), queue=ONE)
        await tell(running, "fan/b", machines.Load(("b",)), queue=TWO)
        await tell(running, "fan/c", machines.Load(("c",)))
        found = await effects(running)
        gate.set()

    assert [(one.queue, one.held) for one in found] == [(ONE, True), (TWO, False), ("", False)]


async def test_a_stream_keeps_the_queue_of_the_command_that_made_it(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        await tell(running, "fan/a", machines.Load(("a",)), "same", queue=ONE)
        again = await tell(running, "fan/a", machines.Load(("a",)), "same", queue=TWO)
        await tell(running, "fan/a", machines.Load(("b",)), queue=TWO)

        assert await queue_of(running, "fan/a") == ONE
        assert {one.queue for one in await effects(running)} == {ONE}

    assert again.duplicate, "the queue is no part of what a command says"


async def test_what_machines_send_each_other_is_born_in_the_sender_s_queue(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    known = (depot.DEPOT, trip.TRIP)
    async with engine(store, wall, Setup(known=known, perform=False)).running() as running:
        await tell(running, "depot/a", Order("a", 2), queue=ONE)

        assert await queue_of(running, "trip/a-2") == ONE
        assert {one.queue for one in await effects(running)} == {ONE}


@pytest.mark.parametrize("queue", ["", TWO])
async def test_a_send_may_name_another_queue_or_none(
    store: protocol.Store, wall: HandWoundClock, queue: str
) -> None:
    def decide(*given: object) -> messages.Decision:
        decision = depot.DEPOT.decide(*given)  # type: ignore[arg-type]  # handed on as it came
        return replace(decision, sends=tuple(replace(each, queue=queue) for each in decision.sends))

    known = (replace(depot.DEPOT, decide=decide), trip.TRIP)
    async with engine(store, wall, Setup(known=known, perform=False)).running() as running:
        await tell(running, "depot/a", Order("a", 1), queue=ONE)

        assert await queue_of(running, "depot/a") == ONE
        assert await queue_of(running, "trip/a-1") == queue


async def test_a_timer_fires_on_a_worker_that_serves_nothing(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        alarm = machines.SetAlarm(wall.now() + timedelta(seconds=1))
        await tell(running, "bell/a", alarm, queue=ONE)

        async def rang() -> bool:
            return bool((await state(running, "bell/a"))["rings"])

        await until(rang, wall)


async def test_a_moved_stream_is_served_by_its_new_queue_with_all_it_asked_for(
    home: Home, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    async with engine(home.store(), wall, serving(outside, TWO)).running() as running:
        await tell(running, "fan/a", machines.Load(("a",)), queue=ONE)

        assert await running.move([name("fan/a")], TWO) == (1, 1)
        await until(lambda: carried(running, "fan/a"), wall)
        await tell(running, "fan/a", machines.Load(("b",)))

        async def both() -> bool:
            return sorted(outside.asked) == ["a", "b"]

        await until(both, wall)
        assert await queue_of(running, "fan/a") == TWO


async def test_an_effect_that_fails_after_a_move_is_tried_again_by_the_new_queue(
    home: Home, wall: HandWoundClock
) -> None:
    begun, go, outside = asyncio.Event(), asyncio.Event(), OutsideWorld()

    async def fail(*_: object) -> None:
        begun.set()
        await go.wait()
        raise OSError("the old cluster is gone")

    old = Setup(queues={ONE: handlers(fail)})
    async with (
        engine(home.store(), wall, old).running() as one,
        engine(home.store(), wall, serving(outside, TWO)).running() as two,
    ):
        await tell(one, "fan/a", machines.Load(("a",)), queue=ONE)
        await begun.wait()
        await two.move([name("fan/a")], TWO)
        go.set()
        await until(lambda: carried(two, "fan/a"), wall)

    assert outside.asked == ["a"]


async def test_what_is_no_queue_is_refused(store: protocol.Store, wall: HandWoundClock) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        with pytest.raises(errors.Rejected, match="not a queue: prod"):
            await running.move([name("fan/a")], "prod")
