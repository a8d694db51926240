"""Who is at work: leases lapse, work is taken over, and no effect has two holders."""

import asyncio
from datetime import timedelta

from fairlead.engine import clock, service
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import LEASE, Cast, Home, effects, engine, events, handlers, state, tell, until
from tests.road import Road
from tests.tampered import TamperedStore, Tampering


async def carried(running: service.Engine, stream: str, pieces: int = 1) -> bool:
    return len((await state(running, stream))["carried"]) == pieces


async def live(running: service.Engine, wall: HandWoundClock) -> list[int]:
    now = clock.to_millis(wall.now())
    return [row[0] for row in await running.read(lambda s: s.rows("live_workers", now=now))]


async def pass_time(running: service.Engine, wall: HandWoundClock, by: timedelta) -> None:
    """In steps that a living worker keeps up with."""
    for _ in range(int(by / timedelta(seconds=2))):
        wall.advance(timedelta(seconds=2))
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

    async with engine(home.store(), wall, Cast(perform=False)).running() as looking:
        assert await live(looking, wall) == []


async def test_an_engine_that_performs_nothing_takes_no_lease(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Cast(perform=False)).running() as running:
        assert await live(running, wall) == []


async def test_the_work_of_a_silent_worker_is_taken_over_and_done_once_more(
    home: Home, wall: HandWoundClock
) -> None:
    first_road, second_road, line = Road(), Road(), Tampering()
    first_road.gate.clear()
    silent = engine(TamperedStore(home.store(), line), wall, Cast(handlers(first_road.carry)))
    other = engine(home.store(), wall, Cast(handlers(second_road.carry)))

    async with other.running():
        async with silent.running():
            await tell(silent, "fan/a", machines.Load(("x",)))
            await first_road.arrival.wait()
            line.cut = True
            await pass_time(other, wall, LEASE - timedelta(seconds=3))
            assert second_road.asked == []

            await pass_time(other, wall, timedelta(seconds=12))
            await until(lambda: carried(other, "fan/a"), wall)
            assert second_road.contexts[0].attempt == 2

            line.cut = False
            first_road.gate.set()
            await until(lambda: asyncio.sleep(0, silent.in_flight == 0), wall)
        assert await events(other, "fan/a") == ["Loaded", "Unloaded"]

    keys = [road.contexts[0].idempotency_key for road in (first_road, second_road)]
    assert keys[0] == keys[1]


async def test_a_worker_that_finds_its_lease_lapsed_drops_what_it_did(
    home: Home, wall: HandWoundClock
) -> None:
    road, line = Road(), Tampering()
    road.gate.clear()
    store = TamperedStore(home.store(), line)

    async with engine(store, wall, Cast(handlers(road.carry))).running() as running:
        (before,) = await live(running, wall)
        await tell(running, "fan/a", machines.Load(("x",)))
        await road.arrival.wait()
        line.cut = True
        wall.advance(LEASE * 2)
        line.cut = False

        async def started_over() -> bool:
            return bool(await live(running, wall)) and len(road.asked) == 2

        await until(started_over, wall)
        road.gate.set()
        await until(lambda: carried(running, "fan/a"), wall)
        (after,) = await live(running, wall)

    assert road.cancelled == ["x"]
    assert after > before


async def test_without_a_certain_lease_new_effects_are_left_for_others(
    home: Home, wall: HandWoundClock
) -> None:
    road, line = Road(), Tampering()
    store = TamperedStore(home.store(), line)

    async with engine(store, wall, Cast(handlers(road.carry))).running() as running:
        running._keeper._wake = asyncio.Event()
        running._keeper._until = START
        await tell(running, "fan/a", machines.Load(("x",)))
        (effect,) = await effects(running)

    assert not effect.held
    assert road.asked == []


async def test_two_workers_share_the_work_and_never_hold_the_same_effect(
    home: Home, wall: HandWoundClock
) -> None:
    road = Road()
    pieces = tuple(f"p{number}" for number in range(40))
    cast = Cast(handlers(road.carry), in_flight=5)
    async with engine(home.store(), wall, Cast(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(pieces))
        await tell(submitter, "lane/a", machines.Load(pieces[:8]))

    async with (
        engine(home.store(), wall, cast).running() as one,
        engine(home.store(), wall, cast).running() as two,
    ):
        await until(lambda: carried(one, "fan/a", 40), wall)
        await until(lambda: carried(two, "lane/a", 8), wall)

    assert sorted(road.asked) == sorted((*pieces, *pieces[:8]))
    assert road.most_of_one == 1


async def test_a_lapsed_lease_is_forgotten_after_an_hour(home: Home, wall: HandWoundClock) -> None:
    async with engine(home.store(), wall).running() as running:
        lately = clock.to_millis(START) - 1000
        await running.write(lambda s: s.rows("register_worker", name="long gone", until=5))
        await running.write(lambda s: s.rows("register_worker", name="just gone", until=lately))
        await pass_time(running, wall, LEASE)
        rows = await running.read(lambda s: s.rows("lapsed_workers", now=2**60))

    assert len(rows) == 2  # the one of a second ago, and our own
