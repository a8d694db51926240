"""Handlers and rows that fail in unusual ways: their effect is told of, and others go on."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fairlead.engine import outbox
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import Home, Setup, dead, effects, engine, handlers, state, tell, until
from tests.outside_world import OutsideWorld


class Unusual(BaseException):
    """What no handler should raise."""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (asyncio.CancelledError("pool closed"), "CancelledError: pool closed"),
        (Unusual("odd"), "Unusual: odd"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
async def test_whatever_ends_a_handler_is_a_failure_of_its_effect(
    store: protocol.Store, wall: HandWoundClock, fault: BaseException, told: str
) -> None:
    async def carry(effect: machines.Carry, _: outbox.EffectContext) -> object:
        if effect.piece == "x":
            raise fault
        return machines.Unload(effect.piece)

    async with engine(store, wall, Setup(handlers(carry, attempts=2))).running() as running:
        await tell(running, "fan/a", machines.Load(("x", "y")))
        await until(lambda: dead(running), wall)
        (effect,) = await dead(running)

        assert (effect.error, effect.attempts, effect.held) == (told, 2, False)
        assert (await state(running, "fan/a"))["carried"] == ["y"]
        assert running.in_flight == 0


async def test_a_handler_that_cancels_its_own_task_has_failed(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async def carry(_effect: machines.Carry, _: outbox.EffectContext) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return None

    async with engine(store, wall, Setup(handlers(carry, attempts=1))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running), wall)

        assert running.in_flight == 0


async def test_a_task_that_somebody_cancels_before_it_starts_leaves_no_hold_behind(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        accept = running._outbox.accept

        def accept_and_cancel(asked: Any) -> None:
            running._outbox.accept = accept  # type: ignore[method-assign]  # only the first
            accept(asked)
            performing = running._outbox._running[asked.hold]
            assert performing is not None
            performing[0].cancel()

        running._outbox.accept = accept_and_cancel  # type: ignore[method-assign]  # an intruder
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: asyncio.sleep(0, outside.asked == ["x"]), wall)

    assert [context.attempt for context in outside.contexts] == [2]


async def test_a_worker_that_leaves_charges_no_attempt_for_what_it_stopped(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()

    async with engine(store, wall, Setup(perform=False)).running() as later:
        (effect,) = await effects(later)
    assert (effect.held, effect.attempts, effect.error) == (False, 0, None)


class Mute(Exception):
    """An error that cannot tell itself."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def upcaster(fault: BaseException) -> Any:
    def lift(_: dict[str, Any]) -> dict[str, Any]:
        raise fault

    return lift


@pytest.mark.parametrize(
    "fault",
    [RecursionError("too deep"), AssertionError("odd"), Mute()],
    ids=lambda f: type(f).__name__,
)
async def test_a_row_that_an_upcaster_chokes_on_is_dead_and_the_others_are_performed(
    home: Home, wall: HandWoundClock, fault: Exception
) -> None:
    choking = replace(
        machines.FAN,
        versions={machines.Carry: 2},
        upcasters={("Carry", 1): upcaster(fault)},
    )
    known = [choking if each is machines.FAN else each for each in machines.ALL]
    outside = OutsideWorld()
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(("old",)))
        await tell(submitter, "lane/b", machines.Load(("fine",)))

    cast = Setup(handlers(outside.carry), known=known)
    async with engine(home.store(), wall, cast).running() as running:
        await until(lambda: dead(running), wall)
        await until(lambda: asyncio.sleep(0, outside.asked == ["fine"]), wall)
        (effect,) = await dead(running)

    assert (effect.stream, effect.attempts) == ("fan/a", 0)
    assert type(fault).__name__ in (effect.error or "")
