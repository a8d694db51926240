"""Who is at work: leases lapse, work is taken over, and no effect has two holders."""

import asyncio
from datetime import timedelta

from fairlead.engine import clock, service
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import (
    LEASE,
    Home,
    Setup,
    effects,
    engine,
    events,
    handlers,
    state,
    tell,
    until,
)
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering


async def carried(running: service.Engine, stream: str, pieces: int = 1) -> bool:
    return len((await state(running, stream))["carried"]) == pieces


async def live(running: service.Engine, wall: HandWoundClock) -> list[int]:
    now = clock.to_millis(wall.now())
    return [row[0] for row in await running.read(lambda s: s.rows("live_workers", now=now))]


async def pass_time(running: service.Engine, wall: HandWoundClock, by: timedelta) -> None:
    """In steps that a living worker keeps up with."""

    async def renewed() -> bool:
        await running.write(lambda s: s.rows("count_rows"))
        until = max(running._keeper._until.values(), default=0.0)
        return until - wall.steady() > LEASE.total_seconds() / 2

    for _ in range(int(by / timedelta(seconds=2))):
        wall.advance(timedelta(seconds=2))
        await until(renewed)
        for _ in range(4):
            await running.write(lambda s: s.rows("count_rows"))
            await asyncio.sleep(0)


async def test_a_worker_keeps_its_lease_as_long_as_it_lives(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        before = await live(running, wall)
        await pass_time(running, wall, LEASE * 4)

        assert await live(running, wall) == before
        assert len(before) == 1


async def test_a_worker_that_leaves_gives_its_lease_back(home: Home, wall: HandWoundClock) -> None:
    async with engine(home.store(), wall).running():
        pass

    async with engine(home.store(), wall, Setup(perform=False)).running() as looking:
        assert await live(looking, wall) == []


async def test_an_engine_that_performs_nothing_takes_no_lease(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        assert await live(running, wall) == []


async def test_the_work_of_a_silent_worker_is_taken_over_and_done_once_more(
    home: Home, wall: HandWoundClock
) -> None:
    first_outside, second_outside, line = OutsideWorld(), OutsideWorld(), Tampering()
    first_outside.gate.clear()
    silent = engine(TamperedStore(home.store(), line), wall, Setup(handlers(first_outside.carry)))
    other = engine(home.store(), wall, Setup(handlers(second_outside.carry)))

    async with other.running():
        async with silent.running():
            await tell(silent, "fan/a", machines.Load(("x",)))
            await first_outside.arrival.wait()
            line.cut = True
            await pass_time(other, wall, LEASE - timedelta(seconds=3))
            assert second_outside.asked == []

            await pass_time(other, wall, timedelta(seconds=12))
            await until(lambda: carried(other, "fan/a"), wall)
            assert second_outside.contexts[0].attempt == 2

            line.cut = False
            first_outside.gate.set()
            await until(lambda: asyncio.sleep(0, silent.in_flight == 0), wall)
        assert await events(other, "fan/a") == ["Loaded", "Unloaded"]

    keys = [outside.contexts[0].idempotency_key for outside in (first_outside, second_outside)]
    assert keys[0] == keys[1]


async def test_a_worker_that_finds_its_lease_lapsed_drops_what_it_did(
    home: Home, wall: HandWoundClock
) -> None:
    outside, line = OutsideWorld(), Tampering()
    outside.gate.clear()
    store = TamperedStore(home.store(), line)

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        (before,) = await live(running, wall)
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        line.cut = True
        wall.advance(LEASE * 2)
        line.cut = False

        async def started_over() -> bool:
            return bool(await live(running, wall)) and len(outside.asked) == 2

        await until(started_over, wall)
        outside.gate.set()
        await until(lambda: carried(running, "fan/a"), wall)
        (after,) = await live(running, wall)

    assert outside.cancelled == ["x"]
    assert after > before


async def test_without_a_certain_lease_new_effects_are_left_for_others(
    home: Home, wall: HandWoundClock
) -> None:
    outside, line = OutsideWorld(), Tampering()
    store = TamperedStore(home.store(), line)

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        running._keeper._until.clear()
        await tell(running, "fan/a", machines.Load(("x",)))
        (effect,) = await effects(running)

    assert not effect.held
    assert outside.asked == []


async def test_two_workers_share_the_work_and_never_hold_the_same_effect(
    home: Home, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    pieces = tuple(f"p{number}" for number in range(40))
    cast = Setup(handlers(outside.carry), in_flight=5)
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(pieces))
        await tell(submitter, "lane/a", machines.Load(pieces[:8]))

    async with (
        engine(home.store(), wall, cast).running() as one,
        engine(home.store(), wall, cast).running() as two,
    ):
        await until(lambda: carried(one, "fan/a", 40), wall)
        await until(lambda: carried(two, "lane/a", 8), wall)

    assert sorted(outside.asked) == sorted((*pieces, *pieces[:8]))
    assert outside.most_of_one == 1


async def test_a_lapsed_lease_is_forgotten_after_an_hour(home: Home, wall: HandWoundClock) -> None:
    async with engine(home.store(), wall).running() as running:
        lately = clock.to_millis(START) - 1000
        await running.write(lambda s: _register(s, "long gone", 5))
        await running.write(lambda s: _register(s, "just gone", lately))
        await pass_time(running, wall, LEASE)
        rows = await running.read(lambda s: s.rows("lapsed_workers", now=2**60, ago=0))

    assert len(rows) == 2  # the one of a second ago, and our own


def _register(session: protocol.Session, name: str, until: int) -> None:
    session.rows("register_worker", name=name, now=0, lease=until, serves="[]")
