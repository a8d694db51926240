"""A store that breaks at the wrong moment costs time, never work: nothing is lost or orphaned."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from fairlead import errors
from fairlead.engine import service, visibility
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import (
    PATIENCE,
    Home,
    Setup,
    effects,
    engine,
    handlers,
    name,
    serves,
    state,
    tell,
    until,
)
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering, gone, once


def asks(writes: protocol.Writes) -> bool:
    return bool(writes.effects)


def settles(writes: protocol.Writes) -> bool:
    return bool(writes.settled)


def postpones(writes: protocol.Writes) -> bool:
    return bool(writes.postponed)


async def carried(running: service.Engine, stream: str = "fan/a") -> bool:
    return bool((await state(running, stream))["carried"])


async def all_done(running: service.Engine) -> bool:
    return not await effects(running)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_answer_is_kept_while_the_store_is_away_and_the_effect_not_done_again(
    store: protocol.Store, wall: HandWoundClock, moment: str
) -> None:
    outside, tampering = OutsideWorld(), Tampering()
    setattr(tampering, moment, once("write", gone(), settles))
    cast = Setup(handlers(outside.carry))

    async with engine(TamperedStore(store, tampering), wall, cast).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: all_done(running))
        assert await carried(running)

    # Once it has ended, for what was written can be read before the writer hears of the trouble.
    assert running.counts.troubles == 1
    assert outside.asked == ["x"]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_failure_is_noted_although_the_store_was_away(
    store: protocol.Store, wall: HandWoundClock, moment: str
) -> None:
    outside, tampering = OutsideWorld([OSError("no road")]), Tampering()
    setattr(tampering, moment, once("write", gone(), postpones))
    cast = Setup(handlers(outside.carry))

    async with engine(TamperedStore(store, tampering), wall, cast).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: carried(running), wall)

    assert outside.asked == ["x", "x"]


@pytest.mark.parametrize("error", [protocol.Lost("raced"), errors.Conflict("raced", hint="")])
async def test_a_failure_that_could_not_be_noted_is_noted_later(
    store: protocol.Store, wall: HandWoundClock, error: Exception
) -> None:
    """Forgetting it would leave the effect held by a worker that knows nothing of it."""
    outside, tampering = OutsideWorld([OSError("no road")]), Tampering()
    tampering.before = once("write", error, postpones)
    cast = Setup(handlers(outside.carry))

    async with engine(TamperedStore(store, tampering), wall, cast).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: carried(running), wall)

    assert outside.asked == ["x", "x"]


async def test_effects_of_a_commit_of_unknown_fate_are_freed_with_the_old_fence(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside, tampering = OutsideWorld(), Tampering(after=once("write", gone(), asks))
    cast = Setup(handlers(outside.carry))

    async with engine(TamperedStore(store, tampering), wall, cast).running() as running:
        with pytest.raises(errors.Unavailable):
            await tell(running, "fan/a", machines.Load(("x",)), "load")
        # No time passes: the lease does not lapse, the old fence is given back.
        await until(lambda: carried(running))
        again = await tell(running, "fan/a", machines.Load(("x",)), "load")

    assert (again.first, again.last, again.duplicate) == (1, 1, True)
    assert outside.asked == ["x"]


@pytest.mark.parametrize("error", [gone(), protocol.Lost("deadlock")])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_effects_of_a_claim_of_unknown_fate_are_not_orphaned(
    home: Home, wall: HandWoundClock, moment: str, error: Exception
) -> None:
    """Committed, then the line broke: held under our fence, and we never heard of them."""
    outside, tampering = OutsideWorld(), Tampering()
    setattr(tampering, moment, once("claim_effects", error))
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(("x",)))
    store = TamperedStore(home.store(), tampering)

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await until(lambda: carried(running))

    assert outside.asked == ["x"]
    assert tampering.calls["claim_effects"] == 2


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_timers_of_a_claim_of_unknown_fate_are_not_orphaned(
    store: protocol.Store, wall: HandWoundClock, moment: str
) -> None:
    tampering = Tampering()
    setattr(tampering, moment, once("claim_timers", gone()))

    async with engine(TamperedStore(store, tampering), wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(wall.now() + timedelta(seconds=1)))

        async def rang() -> bool:
            return bool((await state(running, "bell/a"))["rings"] == 1)

        await until(rang, wall)


@pytest.mark.parametrize("error", [gone(), protocol.Lost("deadlock")])
@pytest.mark.parametrize("call", ["renew_worker", "dead_owners", "next_effect", "next_timer"])
async def test_no_loop_ends_because_one_call_failed(
    sqlite_home: Home, wall: HandWoundClock, call: str, error: Exception
) -> None:
    outside, tampering = OutsideWorld(), Tampering(before=once(call, error))
    store = TamperedStore(sqlite_home.store(), tampering)

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:

        async def failed() -> bool:
            await effects(running)
            return tampering.calls[call] > 0

        await until(failed, wall)
        seen = tampering.calls[call]

        async def asked_again() -> bool:
            await effects(running)
            return tampering.calls[call] > seen

        await until(asked_again, wall)
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: carried(running), wall)


async def test_rows_that_appear_under_an_ended_fence_are_still_freed(
    home: Home, wall: HandWoundClock
) -> None:
    """The server may finish a commit after our line broke and the fence was given back."""
    outside = OutsideWorld()
    async with engine(home.store(), wall).running() as first:
        await tell(first, "fan/b", machines.Load(()))
        ((fence,),) = await first.read(lambda s: s.rows("lapsed_workers", now=2**60, ago=0))
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(("x",)))
        claim: dict[str, Any] = {"fence": fence, "serves": serves(), "now": 2**60, "limit": 9}
        await submitter.write(lambda s: s.rows("claim_effects", **claim))

    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        await until(lambda: carried(running), wall)

    assert outside.asked == ["x"]


async def test_a_store_that_is_away_refuses_submissions_and_takes_them_when_it_is_back(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    tampering = Tampering()

    async with engine(TamperedStore(store, tampering), wall).running() as running:
        tampering.cut = True
        with pytest.raises(errors.Unavailable):
            await tell(running, "counter/a", machines.Add(1), "one")
        with pytest.raises(errors.Unavailable):
            await running.read(lambda s: visibility.stream(s, name("counter/a")))
        tampering.cut = False

        receipt = await tell(running, "counter/a", machines.Add(1), "one")
        assert (await state(running, "counter/a")) == {"total": 1}

    assert receipt.events == 1


async def test_nobody_hears_of_a_session_that_ended_while_it_was_idle(
    home: Home, wall: HandWoundClock
) -> None:
    line = Tampering()
    async with engine(TamperedStore(home.store(), line), wall).running() as running:
        await tell(running, "counter/a", machines.Add(1))
        opened = line.calls["open"]

        line.before = once("load", gone())
        again = await tell(running, "counter/a", machines.Add(1))

        assert (again.first, line.calls["open"]) == (2, opened + 1)


async def test_nobody_hears_of_a_reading_session_that_ended_while_it_was_idle(
    home: Home, wall: HandWoundClock
) -> None:
    line = Tampering()
    async with engine(TamperedStore(home.store(), line), wall).running() as running:
        for _ in range(20):
            await running.read(lambda session: session.rows("count_rows"))

        line.before = once("count_rows", gone())
        rows = await running.read(lambda session: session.rows("count_rows"))

    assert rows


async def test_work_is_answered_although_no_session_can_be_opened(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    """Left without an answer, the keeper would wait for ever and never renew its lease again."""
    outside, tampering = OutsideWorld(), Tampering()
    cast = Setup(handlers(outside.carry))

    async with engine(TamperedStore(store, tampering), wall, cast).running() as running:
        tampering.cut = True
        for _ in range(3):
            with pytest.raises(errors.Unavailable):
                await asyncio.wait_for(running.write(lambda s: s.rows("count_rows")), PATIENCE)
        wall.advance(timedelta(minutes=5))
        tampering.cut = False
        await tell(running, "fan/a", machines.Load(("x",)))

        await until(lambda: carried(running), wall)


async def test_a_worker_that_leaves_ends_its_handlers_first_and_gives_all_back(
    home: Home, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()

    assert outside.cancelled == ["x"]
    assert outside.under_way.total() == 0
    async with engine(home.store(), wall, Setup(perform=False)).running() as looking:
        (effect,) = await effects(looking)
    assert (effect.held, effect.attempts) == (False, 0)


async def test_an_answer_committed_while_leaving_starts_nothing_new(
    home: Home, wall: HandWoundClock
) -> None:
    """Its effects would be performed here, and by the next worker at the same time."""
    outside, leaving = OutsideWorld(), asyncio.Event()
    gates: list[Any] = []

    async def carry(effect: machines.Carry, context: Any) -> object:
        gates.append(effect.piece)
        leaving.set()
        await asyncio.sleep(0)
        return machines.Load((effect.piece + "'",))

    async with engine(home.store(), wall, Setup(handlers(carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await leaving.wait()
    performed = len(gates)
    for _ in range(20):
        await asyncio.sleep(0)

    assert len(gates) == performed
    assert home.sql("SELECT count(*) FROM outbox WHERE owner IS NOT NULL") == [(0,)]
    assert outside.asked == []


async def test_a_submission_to_an_engine_that_has_stopped_is_refused_not_forgotten(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "counter/a", machines.Add(1))

    with pytest.raises(errors.Unavailable, match="the engine has stopped"):
        await tell(running, "counter/a", machines.Add(1), "late")
    with pytest.raises(errors.Unavailable, match="the engine has stopped"):
        await asyncio.wait_for(running.write(lambda s: s.rows("count_rows")), PATIENCE)


async def test_cancelled_work_is_not_run_and_costs_no_session(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    tampering, ran = Tampering(), []

    async with engine(
        TamperedStore(store, tampering), wall, Setup(perform=False)
    ).running() as running:
        await running.write(lambda s: s.rows("count_rows"))
        opened = tampering.calls["open"]
        blocked = asyncio.Event()
        loop = asyncio.get_running_loop()

        def block(_: protocol.Session) -> None:
            asyncio.run_coroutine_threadsafe(blocked.wait(), loop).result(PATIENCE)

        first = asyncio.create_task(running.write(block))
        second = asyncio.create_task(running.write(lambda _: ran.append("ran")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        blocked.set()
        await first
        await running.write(lambda s: s.rows("count_rows"))

        assert tampering.calls["open"] == opened

    assert ran == []
