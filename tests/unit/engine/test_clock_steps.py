"""Somebody steps this machine's time of day: no lease, effect or timer notices."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo

import pytest

from fairlead.engine import clock, leases, service
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import START
from tests import machines
from tests.engines import Home, Setup, handlers, state, tell, until
from tests.outside_world import OutsideWorld

# A machine that stands still for two seconds keeps it.
LEASE = timedelta(seconds=8)
# Longer than it takes until the next renewal tells the time.
AHEAD = timedelta(seconds=4)
MINUTE = timedelta(seconds=60)
Step = Callable[[timedelta], None]


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Step:
    """Moves the time of day for all that runs in this process."""
    moved = timedelta(0)

    class Stepped:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return datetime.now(zone) + moved

    for module in (clock, sqlite):
        monkeypatch.setattr(module, "datetime", Stepped)

    def by(much: timedelta) -> None:
        nonlocal moved
        moved += much

    return by


@pytest.fixture(autouse=True)
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of one process are no neighbours here: only leases count."""
    names = iter(range(100))
    monkeypatch.setattr(leases, "worker_name", lambda: f"machine {next(names)}/x:1")


def worker(store: protocol.Store, outside: OutsideWorld, *, perform: bool = True) -> service.Engine:
    tuning = service.Tuning(lease=LEASE, poll=timedelta(milliseconds=100))
    cast = Setup(handlers(outside.carry))
    parts = service.Parts(
        store, cast.known, cast.handlers, (), clock.SystemClock(), tuning, queues={}
    )
    return service.Engine(parts, perform=perform)


@pytest.mark.parametrize("by", [MINUTE, -MINUTE], ids=["forward", "back"])
async def test_no_effect_is_doubled_when_the_time_of_day_steps(
    home: Home, step: Step, by: timedelta
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()
    pieces = tuple(f"p{number}" for number in range(10))

    async with contextlib.AsyncExitStack() as workers:
        first = await workers.enter_async_context(worker(home.store(), outside).running())
        await workers.enter_async_context(worker(home.store(), outside).running())
        await tell(first, "fan/a", machines.Load(pieces))
        await until(lambda: asyncio.sleep(0.01, len(outside.asked) == 10))
        step(by)
        # One that starts after the step, too: it sees the leases of the others.
        await workers.enter_async_context(worker(home.store(), outside).running())
        await asyncio.sleep(1.5 * LEASE.total_seconds())
        asked = sorted(outside.asked)
        outside.gate.set()

        async def carried() -> bool:
            return len((await state(first, "fan/a"))["carried"]) == 10

        await until(carried)

    assert asked == sorted(pieces)
    assert sorted(outside.asked) == sorted(pieces)
    assert outside.cancelled == []


@pytest.mark.parametrize("by", [MINUTE, -MINUTE], ids=["forward", "back"])
@pytest.mark.parametrize("perform", [True, False], ids=["worker", "submitter"])
async def test_a_timer_is_as_long_as_it_was_set_when_the_time_of_day_steps(
    home: Home, step: Step, by: timedelta, *, perform: bool
) -> None:
    loop = asyncio.get_running_loop()
    outside = OutsideWorld()
    async with (
        worker(home.store(), outside).running() as firing,
        worker(home.store(), outside, perform=perform).running() as setting,
    ):
        await tell(setting, "counter/a", machines.Add(1))
        began, now = loop.time(), setting._parts.wall.now()
        step(by)
        # Long enough that clocks are set right by the store's in between.
        await tell(setting, "bell/a", machines.SetAlarm(now + AHEAD))

        async def rang() -> bool:
            await asyncio.sleep(0.01)
            return bool((await state(firing, "bell/a"))["rings"])

        await until(rang)
        took = loop.time() - began

    # A step that is noticed makes it a minute more, or none at all; a busy machine adds seconds.
    assert AHEAD.total_seconds() <= took < AHEAD.total_seconds() + MINUTE.total_seconds() / 2


async def test_the_clock_of_a_file_is_set_anew_when_nobody_is_at_work(
    sqlite_home: Home, step: Step
) -> None:
    store = sqlite_home.store()
    async with worker(store, OutsideWorld()).running():
        step(MINUTE)
        during = store.now()
    after = store.now()

    assert abs(clock.time_of_day() - during - MINUTE) < timedelta(seconds=5)
    assert abs(clock.time_of_day() - after) < timedelta(seconds=5)


async def test_a_restart_of_the_machine_ends_all_leases_of_a_file(
    sqlite_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds since the start begin anew, and may never reach what a lease says."""
    store = sqlite_home.store()
    store.now()
    session = store.open()
    session.rows("register_worker", name="before", now=None, lease=10**9, serves="[]")

    monkeypatch.setattr(sqlite, "_boot", lambda: "another")
    now = store.now()
    session.rows("register_worker", name="after", now=None, lease=10**6, serves="[]")

    living = [row[1] for row in session.rows("live_workers", now=clock.to_millis(now))]
    session.close()
    assert living == ["after"]


def test_the_stores_answer_moves_the_clock_no_further_than_is_certain() -> None:
    wall = clock.SystemClock()
    wall.follow(START, wall.steady())
    before = wall.now()

    # Asked two seconds ago: any answer since then agrees with what we have.
    wall.follow(before - timedelta(seconds=1), wall.steady() - 2)

    assert timedelta(0) <= wall.now() - before < timedelta(seconds=1)
