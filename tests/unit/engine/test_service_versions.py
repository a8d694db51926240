"""Two versions of the program on one store: the older does what it can, and harms nothing else."""

import asyncio
import functools
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from fairlead import errors
from fairlead.engine import clock, machine, messages, outbox
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg, Order
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import Home, Setup, effects, engine, handlers, state, tell, until
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering

SECOND = timedelta(seconds=1)
SOON = timedelta(milliseconds=700)
LATE = 200


def newer(old: machine.AnyMachine, *types: type) -> machine.AnyMachine:
    """The same machine, with a second version of some of its types."""
    return replace(
        old,
        versions=dict.fromkeys(types, 2),
        upcasters={(each.__name__, 1): dict for each in types},
    )


@dataclass(frozen=True, slots=True)
class Ship:
    """Effect: carry, of a type that came later."""

    piece: str


def _ship(state: machines.Cargo, command: object, now: datetime) -> messages.Decision:
    decided = machines.FAN.decide(state, command, now)
    pieces = [each.piece for each in decided.effects if isinstance(each, machines.Carry)]
    return replace(decided, effects=tuple(map(Ship, pieces)))


NEW_EFFECT = newer(machines.FAN, machines.Carry)
NEW_STATE = newer(machines.FAN, machines.Cargo)
NEW_BELL = newer(machines.BELL, machines.Ring)
NEW_BELL_STATE = newer(machines.BELL, machines.Bell)
NEW_TYPE = replace(
    machines.FAN,
    decide=_ship,
    vocabulary=replace(machines.FAN.vocabulary, effects=machines.Carry | Ship),
)


@pytest.mark.parametrize(
    "made", [NEW_EFFECT, NEW_STATE, NEW_TYPE], ids=["version", "state", "type"]
)
async def test_an_effect_that_only_a_newer_program_can_see_through_is_left_untouched(
    home: Home, wall: HandWoundClock, made: machine.AnyMachine
) -> None:
    async with engine(home.store(), wall, Setup(known=(made,), perform=False)).running() as door:
        await tell(door, "fan/new", machines.Load(("x",)))
    before = home.sql("SELECT * FROM outbox")
    old, new = OutsideWorld(), OutsideWorld()

    async with engine(home.store(), wall, Setup(handlers(old.carry))).running() as running:
        await tell(running, "fan/old", machines.Load(("y",)))
        wall.advance(10 * SECOND)
        await until(lambda: over(home, "fan/old"), wall)

    assert (old.asked, home.sql("SELECT * FROM outbox")) == (["y"], before)
    performed = {**handlers(new.carry), Ship: handlers(new.carry)[machines.Carry]}
    async with engine(home.store(), wall, Setup(performed, known=(made,))).running():
        await until(lambda: over(home, "fan/new"))
    assert new.asked == ["x"]


async def over(home: Home, stream: str) -> bool:
    ended = home.sql(f"SELECT ended_at FROM streams WHERE name = '{stream}'")  # noqa: S608 - our own words
    return ended[0][0] is not None


async def rings(home: Home) -> int:
    found = home.sql("SELECT count(*) FROM events WHERE type = 'Rang'")
    return int(found[0][0])


@pytest.mark.parametrize("made", [NEW_BELL, NEW_BELL_STATE], ids=["command", "state"])
async def test_timers_that_an_old_worker_cannot_read_are_neither_delayed_nor_in_its_way(
    home: Home, wall: HandWoundClock, made: machine.AnyMachine
) -> None:
    async with engine(home.store(), wall, Setup(known=(made,), perform=False)).running() as door:
        alarm = machines.SetAlarm(START + SECOND)
        await asyncio.gather(*(tell(door, f"bell/new-{n}", alarm) for n in range(LATE)))
    before = home.sql("SELECT * FROM timers ORDER BY stream")
    async with engine(home.store(), wall, Setup(perform=False)).running() as door:
        for number in range(1, 6):
            await tell(door, f"bell/old-{number}", machines.SetAlarm(START + number * SOON))
    calls = Tampering()

    async with engine(TamperedStore(home.store(), calls), wall).running():
        for number in range(1, 6):
            # Before its next poll: it has to wake for each, though 200 others are due.
            wall.advance(SOON)
            await until(functools.partial(has_rung, home, number))
        assert calls.calls["next_timer"] < 60

    assert home.sql("SELECT * FROM timers ORDER BY stream") == before
    async with engine(home.store(), wall, Setup(known=(made,))).running():
        await until(lambda: has_rung(home, 5 + LATE))


async def has_rung(home: Home, times: int) -> bool:
    return await rings(home) == times


@pytest.mark.parametrize(
    "change",
    ["state_version = 2", """state = '{"waiting":["x"],"carried":[],"by":"ship"}'"""],
    ids=["version", "field"],
)
async def test_a_stream_that_a_newer_program_wrote_is_not_written_over(
    home: Home, wall: HandWoundClock, change: str
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        # Between the effect and its answer another process takes a command, as a newer version.
        home.sql(f"UPDATE streams SET {change}")  # noqa: S608 - our own words
        before = home.sql("SELECT * FROM streams")
        with pytest.raises(errors.Newer, match="cannot read fan state Cargo"):
            await tell(running, "fan/a", machines.Load(("y",)))
        outside.gate.set()
        await until(lambda: is_free(home))
        (left,) = await effects(running)

    assert home.sql("SELECT * FROM streams") == before
    assert (left.held, left.attempts, left.dead_at) == (False, 0, None)
    assert left.error is not None
    assert left.error.startswith("Newer: cannot read fan state Cargo")


async def test_an_answer_that_is_sent_on_to_a_newer_stream_is_kept_and_not_asked_for_again(
    home: Home, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_BEYOND_SECONDS", 0.01)
    driven, gate = list[int](), asyncio.Event()

    async def drive(effect: DriveLeg, _: outbox.EffectContext) -> Arrive:
        driven.append(effect.leg)
        await gate.wait()
        return Arrive(effect.leg)

    cast = Setup({DriveLeg: outbox.Handler(drive)}, known=(depot.DEPOT, trip.TRIP))
    async with engine(home.store(), wall, cast).running() as running:
        await tell(running, "depot/a", Order("a", 1, legs=1))
        home.sql("UPDATE streams SET state_version = 2 WHERE machine = 'depot'")
        gate.set()
        for _ in range(20):
            await asyncio.sleep(0.01)
            wall.advance(SECOND / 2)
        (held,) = await effects(running)
        assert (held.held, driven) == (True, [1])
        home.sql("UPDATE streams SET state_version = 1 WHERE machine = 'depot'")
        await until(lambda: over(home, "depot/a"), wall)

    assert driven == [1]


async def is_free(home: Home) -> bool:
    return home.sql("SELECT owner FROM outbox") == [(None,)]


async def test_an_effect_or_timer_with_a_field_too_many_waits_for_a_newer_worker(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, Setup(perform=False)).running() as door:
        await tell(door, "fan/a", machines.Load(("x",)))
        await tell(door, "bell/a", machines.SetAlarm(START + SECOND))
    home.sql("""UPDATE outbox SET data = '{"piece":"x","by":"ship"}'""")
    home.sql("""UPDATE timers SET data = '{"name":"bell","stubborn":false,"loud":true}'""")
    outside = OutsideWorld()

    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        for _ in range(20):
            wall.advance(SECOND)
            await running.write(lambda session: session.rows("count_rows"))
        (left,) = await effects(running)

    assert (outside.asked, left.dead_at, left.attempts) == ([], None, 0)
    ((due, owner),) = home.sql("SELECT due_at, owner FROM timers")
    assert owner is None
    assert due <= clock.to_millis(wall.now() + SECOND)


async def test_a_command_that_is_sent_again_after_an_upgrade_is_no_conflict(
    home: Home, wall: HandWoundClock
) -> None:
    @dataclass(frozen=True, slots=True)
    class Add:
        number: int

    old = replace(
        machines.COUNTER,
        decide=lambda *_: messages.Decision((machines.Added(1),)),
        vocabulary=replace(machines.COUNTER.vocabulary, commands=Add),
    )
    async with engine(home.store(), wall, Setup(known=(old,))).running() as before:
        first = await tell(before, "counter/a", Add(1), "once")

    async with engine(home.store(), wall).running() as after:
        again = await tell(after, "counter/a", machines.Add(1), "once")
        with pytest.raises(errors.Conflict):
            await tell(after, "counter/a", machines.Add(1, "said"), "once")

    assert (again, again.duplicate) == (first, True)


async def test_a_command_that_changed_nothing_changes_nothing_when_it_comes_again(
    home: Home, wall: HandWoundClock
) -> None:
    """A duplicate promote that arrives at the next gate must not pass it."""
    async with engine(home.store(), wall).running() as running:
        await tell(running, "fan/a", machines.Unload("x"), "late")
        await tell(running, "fan/a", machines.Load(("x",)))
        again = await tell(running, "fan/a", machines.Unload("x"), "late")
        with pytest.raises(errors.Conflict):
            await tell(running, "fan/b", machines.Unload("x"), "late")
        waiting = (await state(running, "fan/a"))["waiting"]

    assert (again.duplicate, again.events, waiting) == (True, 0, ["x"])
    assert len(home.sql("SELECT * FROM streams")) == 1
