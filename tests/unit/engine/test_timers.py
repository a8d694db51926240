"""Waiting is a row: timers fire once, in time, and only while they are wanted."""

import functools
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fairlead import errors
from fairlead.engine import clock, service, visibility
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import Home, Setup, engine, events, name, state, tell, until
from tests.tampered import TamperedStore, Tampering, gone, once

SECOND = timedelta(seconds=1)


async def rings(running: service.Engine, stream: str = "bell/a") -> int:
    return int((await state(running, stream))["rings"])


async def rang(running: service.Engine, times: int, wall: HandWoundClock | None = None) -> None:
    async def so_often() -> bool:
        return await rings(running) >= times

    await until(so_often, wall)


async def test_a_timer_fires_when_it_is_due_and_not_before(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + 10 * SECOND))
        wall.advance(9 * SECOND)
        assert await rings(running) == 0
        wall.advance(SECOND)
        await rang(running, 1)

        assert await events(running, "bell/a") == ["AlarmSet", "Rang"]


async def test_a_timer_set_here_wakes_the_worker_before_its_next_poll(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await rings_after(running, START + timedelta(hours=1))
        await tell(running, "bell/b", machines.SetAlarm(START + timedelta(milliseconds=300)))
        wall.advance(timedelta(milliseconds=300))

        async def rang_b() -> bool:
            return await rings(running, "bell/b") == 1

        await until(rang_b)
        assert await rings(running) == 0


async def rings_after(running: service.Engine, due: datetime) -> None:
    await tell(running, "bell/a", machines.SetAlarm(due))


async def test_a_machine_sees_a_time_not_before_the_one_it_asked_for(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    due = START + timedelta(seconds=1, microseconds=700)

    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(due))
        await rang(running, 1, wall)

    assert wall.now() >= due


async def test_a_timer_may_set_itself_again_in_its_own_firing(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND, snoozes=2))
        for times in (1, 2, 3):
            await rang(running, times, wall)

        assert await running.read(lambda s: s.rows("next_timer")) == [(None,)]
        assert await rings(running) == 3


async def test_a_timer_of_the_same_name_is_replaced(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + 2 * SECOND))
        await tell(running, "bell/a", machines.SetAlarm(START + 6 * SECOND))
        wall.advance(5 * SECOND)
        await running.write(lambda s: s.rows("count_rows"))
        assert await rings(running) == 0
        wall.advance(SECOND)
        await rang(running, 1)


async def test_a_cancelled_timer_does_not_fire(store: protocol.Store, wall: HandWoundClock) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND))
        await tell(running, "bell/a", machines.Silence())
        await tell(running, "bell/a", machines.Silence("never set"))
        await tell(running, "bell/b", machines.SetAlarm(START + 2 * SECOND))
        wall.advance(2 * SECOND)

        async def rang_b() -> bool:
            return await rings(running, "bell/b") == 1

        await until(rang_b)
        assert await rings(running) == 0


@pytest.mark.parametrize("meanwhile", ["silenced", "replaced"])
async def test_a_timer_changed_between_claim_and_firing_does_not_fire(
    home: Home, wall: HandWoundClock, meanwhile: str
) -> None:
    """Claimed here, then changed by another process, then delivered here: it must be stale."""
    rival = engine(home.store(), wall, Setup(perform=False))
    later = machines.SetAlarm(START + timedelta(days=1))
    change = machines.Silence() if meanwhile == "silenced" else later

    async with rival.running(), engine(home.store(), wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND))
        fires = running._timers._deliver
        claimed: list[tuple[object, ...]] = []
        running._timers._deliver = claimed.append  # type: ignore[method-assign,assignment]  # holds it back
        wall.advance(SECOND)

        async def was_claimed() -> bool:
            await rings(running)
            return bool(claimed)

        await until(was_claimed)
        await tell(rival, "bell/a", change)
        fires(claimed[0])
        await running.write(lambda s: s.rows("count_rows"))

        assert await rings(running) == 0
        ((_, _, _, waiting),) = await running.read(lambda s: s.rows("count_rows"))
    assert waiting == (1 if meanwhile == "replaced" else 0)


async def test_the_timers_of_a_stream_that_ends_go_with_it(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND))
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND, name="other"))
        await tell(running, "bell/a", machines.Close())
        ((_, _, _, timers),) = await running.read(lambda s: s.rows("count_rows"))

    assert timers == 0


async def test_a_timer_that_its_machine_refuses_comes_again_later_and_harms_no_other(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND, stubborn=True))
        await tell(running, "bell/b", machines.SetAlarm(START + SECOND))
        wall.advance(SECOND)

        async def postponed() -> bool:
            ((due,),) = await running.read(lambda s: s.rows("next_timer"))
            return due is not None and due > clock.to_millis(START + SECOND)

        async def rang_b() -> bool:
            return await rings(running, "bell/b") == 1

        await until(rang_b)
        await until(postponed)
        assert await rings(running) == 0


async def test_a_refused_timer_is_not_forgotten_when_the_store_breaks_meanwhile(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    """It could not be given back: without a new fence it would be held for ever."""
    tampering = Tampering(before=once("postpone_timer", gone()))

    async with engine(TamperedStore(store, tampering), wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND, stubborn=True))

        async def delivered_twice() -> bool:
            await rings(running)
            return tampering.calls["postpone_timer"] >= 2

        await until(delivered_twice, wall)


async def test_timers_set_by_a_process_that_does_not_work_are_fired_by_one_that_does(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "bell/a", machines.SetAlarm(START + SECOND))

    async with engine(home.store(), wall).running() as running:
        await rang(running, 1, wall)


async def dead(running: service.Engine) -> list[visibility.TimerView]:
    return await running.read(lambda s: visibility.timers(s, dead=True))


async def test_a_timer_that_its_machine_refuses_too_often_lies_dead_with_its_error(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND, stubborn=True))
        home.sql("UPDATE timers SET attempts = 11")
        wall.advance(SECOND)
        await until(lambda: dead(running))
        (timer,) = await dead(running)

        assert (timer.stream, timer.name, timer.command) == ("bell/a", "bell", "Ring")
        assert (timer.attempts, timer.held) == (12, False)
        assert timer.error == "Rejected: will not ring: stubborn"
        assert await running.read(lambda s: s.rows("next_timer")) == [(None,)]


async def test_a_person_retries_or_discards_a_dead_timer(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        for each in ("bell/a", "bell/b"):
            await tell(running, each, machines.SetAlarm(START + SECOND))
            await running.write(functools.partial(bury, stream=each))
        wall.advance(SECOND)

        await running.retry_timer(name("bell/a"), "bell")
        await rang(running, 1)
        await running.discard_timer(name("bell/b"), "bell")

        assert await running.read(visibility.timers) == []
        assert await rings(running, "bell/b") == 0
        for change in (running.retry_timer, running.discard_timer):
            with pytest.raises(errors.NotFound, match="no dead timer of bell/b: bell"):
                await change(name("bell/b"), "bell")


def bury(session: protocol.Session, stream: str) -> None:
    number = session.rows("get_stream", name=stream)[0][0]
    values = {"due": 1, "dead": 1, "error": "no", "attempts": 1}
    session.rows("postpone_timer", stream=number, name="bell", seq=1, **values)


async def test_a_dead_timer_that_is_set_again_lives(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        await tell(running, "bell/a", machines.SetAlarm(START + SECOND))
        await running.write(functools.partial(bury, stream="bell/a"))
        await tell(running, "bell/a", machines.SetAlarm(START + 2 * SECOND))

        await rang(running, 1, wall)


async def test_a_timer_whose_upcaster_breaks_is_dead_and_harms_no_other(
    home: Home, wall: HandWoundClock
) -> None:
    def choke(_: dict[str, object]) -> dict[str, object]:
        raise RecursionError("too deep")

    choking = replace(machines.BELL, versions={machines.Ring: 2}, upcasters={("Ring", 1): choke})
    known = [choking if each is machines.BELL else each for each in machines.ALL]
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "bell/a", machines.SetAlarm(START + SECOND))

    async with engine(home.store(), wall, Setup(known=known)).running() as running:
        await tell(running, "bell/b", machines.SetAlarm(START + SECOND))

        async def rang_b() -> bool:
            return await rings(running, "bell/b") == 1

        await until(rang_b, wall)
        await until(lambda: dead(running), wall)
        (timer,) = await dead(running)

    assert (timer.stream, timer.attempts) == ("bell/a", 0)
    assert "too deep" in (timer.error or "")
