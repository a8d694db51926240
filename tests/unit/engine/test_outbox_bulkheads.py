"""Whatever hangs, other kinds and other streams are performed."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from fairlead.engine import machine, outbox, service
from fairlead.engine.messages import Decision, Withdraw
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests.engines import Home, Setup, dead, effects, engine, events, tell, until


@dataclass(frozen=True, slots=True)
class Idle:
    """State: nothing to remember."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Command: ask for so many effects of a kind."""

    slow: int = 0
    quick: int = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """Command: withdraw one slow effect, or all of them; then ask for others."""

    number: int | None = None
    slow: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """Event: something was asked for or withdrawn."""


@dataclass(frozen=True, slots=True)
class Slow:
    """Effect: takes as long as it takes."""

    number: int


@dataclass(frozen=True, slots=True)
class Quick:
    """Effect: done at once."""

    number: int


def _decide(_state: Idle, command: Ask | Recall, _now: datetime) -> Decision:
    slow = tuple(Slow(number) for number in range(command.slow))
    if isinstance(command, Ask):
        return Decision((Asked(),), (*slow, *(Quick(number) for number in range(command.quick))))
    which = Slow if command.number is None else Slow(command.number)
    return Decision((Asked(),), slow, withdraws=(Withdraw(which),))


def _machine(name: str, *, in_order: bool = False) -> machine.AnyMachine:
    return machine.Machine(
        name=name,
        initial=Idle(),
        decide=_decide,
        evolve=lambda state, _: state,
        effects_in_order=in_order,
        vocabulary=machine.Vocabulary(Idle, Ask | Recall, Asked, Slow | Quick),
    )


KNOWN = (_machine("yard"), _machine("lane", in_order=True))


class Yard:
    """Performs both kinds; slow ones wait for the gate."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.slow: list[tuple[str, int]] = []
        self.quick: list[str] = []
        self.fault: Exception | None = None

    async def do_slow(self, effect: Slow, context: outbox.EffectContext) -> None:
        self.slow.append((context.stream, effect.number))
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault

    async def do_quick(self, _effect: Quick, context: outbox.EffectContext) -> None:
        self.quick.append(context.stream)

    def cast(self, in_flight: int = 16, **how: Any) -> Setup:
        handlers: outbox.Handlers = {
            Slow: outbox.Handler(self.do_slow, **how),
            Quick: outbox.Handler(self.do_quick),
        }
        return Setup(handlers, known=KNOWN, in_flight=in_flight)


async def so(check: Any, wall: HandWoundClock | None = None) -> None:
    await until(lambda: asyncio.sleep(0, check()), wall)


async def gone(running: service.Engine) -> bool:
    return not await effects(running)


async def test_two_thousand_hanging_effects_of_one_kind_do_not_delay_another(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()

    async with engine(store, wall, yard.cast(1024)).running() as running:
        for number in range(8):
            await tell(running, f"yard/slow-{number}", Ask(slow=256))
        await so(lambda: len(yard.slow) == 768)
        await tell(running, "yard/quick", Ask(quick=1))
        # The clock stands still: nothing is polled, nothing times out.
        await so(lambda: yard.quick == ["yard/quick"])

        assert len(yard.slow) == 768
        assert running.in_flight < 1024


async def test_what_finds_no_place_is_left_in_the_store_and_not_in_memory(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()

    async with engine(store, wall, yard.cast(16)).running() as running:
        await tell(running, "yard/a", Ask(slow=50))
        # A claim that runs beside the birth may take on too many for a moment; they go back.
        await so(lambda: len(yard.slow) == running.in_flight == 6, wall)
        assert len([each for each in await effects(running) if each.held]) == 6

        yard.gate.set()
        await until(lambda: gone(running), wall)

    assert sorted(number for _, number in yard.slow) == list(range(50))


@pytest.mark.parametrize("submitter", ["this process", "another process"])
async def test_one_stream_with_thousands_of_effects_does_not_starve_others_of_their_kind(
    home: Home, wall: HandWoundClock, submitter: str
) -> None:
    yard = Yard()
    other = engine(home.store(), wall, Setup(known=KNOWN, perform=False))

    async with other.running(), engine(home.store(), wall, yard.cast(64)).running() as running:
        via = running if submitter == "this process" else other
        await tell(via, "yard/hot", Ask(slow=3000))
        await so(lambda: len(yard.slow) == 24, wall)
        await tell(via, "yard/cool", Ask(slow=1))

        await so(lambda: ("yard/cool", 0) in yard.slow, wall)
        assert len(yard.slow) == 25


async def test_a_handler_with_a_limit_performs_no_more_at_once(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()

    async with engine(store, wall, yard.cast(64, limit=2)).running() as running:
        await tell(running, "yard/a", Ask(slow=9))
        await tell(running, "yard/b", Ask(slow=9, quick=1))
        await so(lambda: len(yard.slow) == 2 and yard.quick == ["yard/b"], wall)
        for _ in range(5):
            await effects(running)

        assert len(yard.slow) == 2
        yard.gate.set()
        await until(lambda: gone(running), wall)
    assert len(yard.slow) == 18


async def test_a_withdrawn_effect_that_nobody_has_started_is_never_performed(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()

    async with engine(store, wall, yard.cast(4, limit=1)).running() as running:
        await tell(running, "yard/a", Ask(slow=9))
        await so(lambda: len(yard.slow) == 1, wall)
        (begun,) = yard.slow
        await tell(running, "yard/a", Recall())
        yard.gate.set()
        await until(lambda: gone(running), wall)

    assert yard.slow == [begun]


async def test_one_effect_is_withdrawn_by_its_value_and_its_lane_goes_on(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()

    async with engine(store, wall, yard.cast()).running() as running:
        await tell(running, "lane/a", Ask(slow=4))
        await so(lambda: len(yard.slow) == 1, wall)
        for number in (1, 2):
            await tell(running, "lane/a", Recall(number))
        yard.gate.set()
        await until(lambda: gone(running), wall)

    assert [number for _, number in yard.slow] == [0, 3]


async def test_what_was_taken_on_without_a_place_goes_back_unharmed(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    """A batch is decided before the one ahead of it has its places."""
    yard = Yard()

    async with engine(store, wall, yard.cast(4, limit=2)).running() as running:
        rooms = running._outbox.rooms
        running._runner.hooks.room = lambda: dict.fromkeys(rooms(), 9)
        await tell(running, "yard/a", Ask(slow=4))
        await so(lambda: running.in_flight == 1)
        left = await effects(running)
        await tell(running, "yard/a", Recall())
        yard.gate.set()
        await until(lambda: gone(running), wall)

    assert [(each.held, each.attempts, each.error) for each in left] == [
        (True, 0, None),
        *[(False, 0, None)] * 3,
    ]
    assert yard.slow == [("yard/a", 0)]


async def test_what_was_asked_for_and_withdrawn_in_one_batch_leaves_no_row(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()

    async with engine(store, wall, yard.cast()).running() as running:
        await asyncio.gather(
            *(tell(running, "yard/a", command) for command in (Ask(slow=2), Recall(slow=1)))
        )
        await so(lambda: len(yard.slow) >= 1, wall)
        left = [each for each in await effects(running) if each.key.seq == 2]
        yard.gate.set()
        await until(lambda: gone(running), wall)

    assert len(left) == 1
    assert len(yard.slow) <= 3


async def test_a_withdrawn_effect_that_fails_is_not_tried_again(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    yard = Yard()
    yard.fault = OSError("no road")

    async with engine(store, wall, yard.cast()).running() as running:
        await tell(running, "yard/a", Ask(slow=1))
        await so(lambda: len(yard.slow) == 1)
        await tell(running, "yard/a", Recall())
        yard.gate.set()
        await until(lambda: gone(running), wall)

        assert await dead(running) == []
        assert await events(running, "yard/a") == ["Asked", "Asked"]
    assert len(yard.slow) == 1
