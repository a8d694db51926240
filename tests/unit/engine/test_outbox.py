"""Effects reach the world at least once, in order where asked, patiently, and never silently."""

import asyncio
from datetime import timedelta

import pytest

from fairlead import errors
from fairlead.engine import clock, messages, outbox, service
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import Setup, dead, effects, engine, events, handlers, state, tell, until
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering


async def ended(running: service.Engine, stream: str) -> bool:
    return not (await state(running, stream))["waiting"]


async def test_an_effect_is_performed_and_its_answer_settles_it(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x", "y")))
        await until(lambda: ended(running, "fan/a"))

        assert await effects(running) == []
        assert sorted(await events(running, "fan/a")) == ["Loaded", "Unloaded", "Unloaded"]

    assert sorted(outside.asked) == ["x", "y"]


async def test_an_effect_that_needs_no_answer_is_settled_without_an_event(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    done = asyncio.Event()

    async def carry(effect: machines.Carry, _: outbox.EffectContext) -> None:
        done.set()

    async with engine(store, wall, Setup(handlers(carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await done.wait()

        async def settled() -> bool:
            return not await effects(running)

        await until(settled)
        assert await events(running, "fan/a") == ["Loaded"]


async def test_a_failed_effect_is_tried_again_under_the_same_idempotency_key(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([OSError("no road"), OSError("still none")])

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: ended(running, "fan/a"), wall)

    assert [context.attempt for context in outside.contexts] == [1, 2, 3]
    assert len({context.idempotency_key for context in outside.contexts}) == 1


async def test_idempotency_keys_differ_between_effects_and_stores(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x", "y")))
        await tell(running, "fan/b", machines.Load(("x",)))
        await until(lambda: ended(running, "fan/a"))
        await until(lambda: ended(running, "fan/b"))
        ((store_id,),) = await running.read(lambda s: s.rows("get_fact", name="store_id"))

    keys = {context.idempotency_key for context in outside.contexts}
    assert len(keys) == 3
    assert all(key.startswith(f"{store_id}-") for key in keys)


async def test_each_failure_waits_twice_as_long_up_to_a_cap_and_never_in_step(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([OSError("no road")] * 6)
    patience = {"first_delay": timedelta(seconds=1), "longest_delay": timedelta(seconds=6)}
    delays: list[float] = []

    async with engine(store, wall, Setup(handlers(outside.carry, **patience))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        for attempt in range(1, 7):

            async def failed(attempt: int = attempt) -> bool:
                (effect,) = await effects(running)
                return effect.attempts == attempt

            await until(failed)
            (effect,) = await effects(running)
            delays.append((effect.due_at - wall.now()).total_seconds())
            wall.advance(effect.due_at - wall.now() + timedelta(milliseconds=1))

    longest = [1, 2, 4, 6, 6, 6]
    assert all(
        most / 2 - 0.001 <= delay <= most for delay, most in zip(delays, longest, strict=True)
    )
    assert len({round(delay / most, 3) for delay, most in zip(delays, longest, strict=True)}) > 1


async def test_after_the_last_attempt_an_effect_lies_dead_with_its_error(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([OSError(f"no road {number}") for number in range(9)])

    async with engine(store, wall, Setup(handlers(outside.carry, attempts=3))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running), wall)
        wall.advance(timedelta(days=1))
        (effect,) = await dead(running)

    assert effect.error == "OSError: no road 2"
    assert (effect.attempts, effect.held, len(outside.asked)) == (3, False, 3)


async def test_what_is_rejected_is_not_tried_again(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([errors.Rejected("no such place: x", hint="look at a map")])

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running))
        (effect,) = await dead(running)

    assert effect.error == "Rejected: no such place: x"
    assert len(outside.asked) == 1


async def test_a_person_retries_a_dead_effect(store: protocol.Store, wall: HandWoundClock) -> None:
    outside = OutsideWorld([errors.Rejected("closed", hint="open it")])

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running))
        (effect,) = await dead(running)

        await running.retry(effect.key)
        await until(lambda: ended(running, "fan/a"))

        with pytest.raises(errors.NotFound, match=f"no dead effect: {effect.id}"):
            await running.retry(effect.key)


async def test_a_person_discards_a_dead_effect_and_its_lane_goes_on(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([errors.Rejected("closed", hint="open it")])

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "lane/a", machines.Load(("x", "y")))
        await until(lambda: dead(running))
        (effect,) = await dead(running)
        assert outside.asked == ["x"]

        await running.discard(effect.key)

        async def carried() -> bool:
            return bool((await state(running, "lane/a"))["carried"] == ["y"])

        await until(carried)
        with pytest.raises(errors.NotFound):
            await running.discard(effect.key)


async def test_a_living_effect_can_be_neither_retried_nor_discarded(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        (effect,) = await effects(running)

        for change in (running.retry, running.discard):
            with pytest.raises(errors.NotFound):
                await change(effect.key)


async def test_effects_keep_their_order_within_a_lane_and_not_across(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "lane/a", machines.Load(("a1", "a2", "a3")))
        await tell(running, "lane/b", machines.Load(("b1", "b2")))
        await tell(running, "lane/a", machines.Load(("a4",)))
        await until(lambda: asyncio.sleep(0, len(outside.asked) == 2))
        assert sorted(outside.asked) == ["a1", "b1"]
        outside.gate.set()
        await until(lambda: ended(running, "lane/a"))
        await until(lambda: ended(running, "lane/b"))

    assert [piece for piece in outside.asked if piece[0] == "a"] == ["a1", "a2", "a3", "a4"]
    assert [piece for piece in outside.asked if piece[0] == "b"] == ["b1", "b2"]


async def test_a_lane_keeps_its_order_through_failures(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([OSError("no road")] * 2)

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "lane/a", machines.Load(("1", "2", "3")))
        await until(lambda: ended(running, "lane/a"), wall)

    assert outside.asked == ["1", "1", "1", "2", "3"]


async def test_a_blocked_lane_costs_nothing_while_it_waits(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    """A due effect behind a held one must not make the worker ask again and again."""
    outside, tampering = OutsideWorld(), Tampering()
    outside.gate.clear()
    watched = TamperedStore(store, tampering)

    async with engine(watched, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "lane/a", machines.Load(("x", "y")))
        await outside.arrival.wait()
        await effects(running)
        before = tampering.calls["next_effect"]
        for _ in range(30):
            await effects(running)

        assert tampering.calls["next_effect"] - before < 10


async def test_no_more_effects_are_under_way_than_allowed_even_from_one_decision(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()
    pieces = tuple(f"p{number}" for number in range(20))

    async with engine(
        store, wall, Setup(handlers(outside.carry), in_flight=3)
    ).running() as running:
        await tell(running, "fan/a", machines.Load(pieces[:10]))
        await tell(running, "fan/b", machines.Load(pieces[10:]))
        for _ in range(10):
            await effects(running)
        assert outside.most == 3
        outside.gate.set()
        await until(lambda: ended(running, "fan/a"))
        await until(lambda: ended(running, "fan/b"))

    assert sorted(outside.asked) == sorted(pieces)
    assert outside.most == 3


async def test_a_handler_that_hangs_is_given_up_in_time(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()
    hasty = handlers(outside.carry, timeout=timedelta(milliseconds=20), attempts=1)

    async with engine(store, wall, Setup(hasty)).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running))
        (effect,) = await dead(running)

    assert effect.error == "timed out"
    assert outside.cancelled == ["x"]


async def test_an_effect_that_nobody_performs_waits_unharmed(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    async with engine(store, wall).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        wall.advance(timedelta(hours=1))
        (effect,) = await effects(running)

    assert (effect.held, effect.attempts, effect.dead_at, effect.error) == (False, 0, None, None)
    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await until(lambda: ended(running, "fan/a"), wall)


@pytest.mark.parametrize(("piece", "attempts"), [("refused", 1), ("broken", 3)])
async def test_an_answer_that_the_machine_does_not_take_leads_to_a_dead_effect(
    store: protocol.Store, wall: HandWoundClock, piece: str, attempts: int
) -> None:
    outside = OutsideWorld()

    async with engine(store, wall, Setup(handlers(outside.carry, attempts=3))).running() as running:
        await tell(running, "fan/a", machines.Load((piece,)))
        await until(lambda: dead(running), wall)
        (effect,) = await dead(running)

        assert await events(running, "fan/a") == ["Loaded"]

    assert effect.attempts == len(outside.asked) == attempts


async def test_an_answer_that_is_no_command_leads_to_a_dead_effect(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async def carry(effect: machines.Carry, _: outbox.EffectContext) -> object:
        return "done!"

    async with engine(store, wall, Setup(handlers(carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running))
        (effect,) = await dead(running)

    assert effect.error == "Rejected: not a fan command: str"


@pytest.mark.parametrize("words", ["a lone half: \udc80", "nothing: \x00", "long: " + "x" * 9000])
async def test_no_error_text_keeps_an_effect_from_being_tried_again(
    store: protocol.Store, wall: HandWoundClock, words: str
) -> None:
    outside = OutsideWorld([OSError(words)])

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: ended(running, "fan/a"), wall)

    assert len(outside.asked) == 2


async def test_due_times_follow_the_wall(store: protocol.Store, wall: HandWoundClock) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        (effect,) = await effects(running)

    assert clock.to_millis(effect.due_at) == clock.to_millis(START)
    assert effect.key == messages.EffectKey(effect.key.stream, 1, 0)
