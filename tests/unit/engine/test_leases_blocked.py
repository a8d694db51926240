"""Whatever holds up the store: a lease is kept if it can be, and work stops in time if not."""

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.engine import clock, leases, service
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import PATIENCE, Home, Setup, engine, handlers, name, state, tell, until
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering, gone, once

SHORT = timedelta(seconds=2)
# Kept by a machine that stands still for two seconds, too.
LONGER = timedelta(seconds=6)


@pytest.fixture(autouse=True)
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of one process are no neighbours here: only leases count."""
    names = iter(range(100))
    monkeypatch.setattr(leases, "worker_name", lambda: f"machine {next(names)}/x:1")


def worker(
    store: protocol.Store, outside: OutsideWorld, lease: timedelta = SHORT
) -> service.Engine:
    """With the store's own clock and a short lease."""
    tuning = service.Tuning(lease=lease, poll=timedelta(milliseconds=50))
    cast = Setup(handlers(outside.carry))
    parts = service.Parts(
        store, cast.known, cast.handlers, (), clock.SystemClock(), tuning, queues={}
    )
    return service.Engine(parts)


@contextlib.contextmanager
def locked(home: Home, statement: str) -> Iterator[None]:
    """By a session that is none of ours; SQLite locks the whole file."""
    if home.kind == "sqlite":
        connection = sqlite3.connect(home.address, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
        connection.close()
        return
    with psycopg.connect(home.address) as other:
        other.execute(statement.encode())
        yield


async def test_a_loop_that_stands_still_for_longer_than_a_lease_costs_no_lease(
    home: Home, rival: protocol.Session
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()
    async with worker(home.store(), outside, LONGER).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        before = rival.rows("live_workers", now=None)
        time.sleep(LONGER.total_seconds() * 1.5)  # noqa: ASYNC251 - what is tested
        after = rival.rows("live_workers", now=None)
        await asyncio.sleep(0.1)

        assert [row[0] for row in before] == [row[0] for row in after]
        assert running.counts.lease_losses == 0
        assert outside.cancelled == []
        outside.gate.set()


async def test_work_stops_when_the_lease_cannot_be_renewed_and_is_done_by_one_at_a_time(
    home: Home,
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()
    async with worker(home.store(), outside).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        with locked(home, "SELECT 1 FROM workers FOR UPDATE"):
            # Before anybody lets go of the lock.
            await until(lambda: asyncio.sleep(0.01, "x" in outside.cancelled))
            await asyncio.sleep(1.5)
        outside.gate.set()

        async def carried() -> bool:
            with contextlib.suppress(errors.Unavailable):
                return bool((await state(running, "fan/a"))["carried"])
            return False

        await until(carried)

    assert outside.most_of_one == 1
    assert running.counts.events == 2


async def test_a_disk_that_takes_a_third_of_a_lease_for_a_commit_costs_no_lease(
    home: Home,
) -> None:
    """The renewal is written, and its answer comes when the loop has given up waiting."""
    renewals: list[float] = []

    def drag(call: str, _: Any) -> None:
        if call == "renew_worker":
            time.sleep(0.3 * LONGER.total_seconds())
            renewals.append(time.monotonic())

    outside, line = OutsideWorld(), Tampering(after=drag)
    outside.gate.clear()
    async with worker(TamperedStore(home.store(), line), outside, LONGER).running() as busy:
        await tell(busy, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        await until(lambda: asyncio.sleep(0.01, len(renewals) >= 4))

        assert busy.counts.lease_losses == 0
        assert outside.cancelled == []
        outside.gate.set()


async def test_a_worker_that_starts_while_others_keep_the_store_busy_waits_for_it(
    home: Home,
) -> None:
    outside, line = OutsideWorld(), Tampering(before=once("register_worker", gone()))
    async with worker(TamperedStore(home.store(), line), outside).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()

    assert line.calls["register_worker"] == 2


async def test_a_locked_stream_costs_no_lease(postgres_home: Home) -> None:
    """The writer waits for the row, past the lease; the renewal does not wait for the writer."""
    outside, other = OutsideWorld(), OutsideWorld()
    outside.gate.clear()
    async with (
        worker(postgres_home.store(), outside, LONGER).running() as running,
        worker(postgres_home.store(), other, LONGER).running(),
    ):
        await tell(running, "fan/a", machines.Load(("x",)))
        await outside.arrival.wait()
        with locked(postgres_home, "SELECT 1 FROM streams FOR UPDATE"):
            outside.gate.set()
            await asyncio.sleep(1.5 * LONGER.total_seconds())

        async def carried() -> bool:
            return bool((await state(running, "fan/a"))["carried"])

        await until(carried)

    assert outside.asked + other.asked == ["x"]


async def test_a_queue_of_commands_longer_than_the_lease_costs_no_lease(
    home: Home,
) -> None:
    slow = threading.Event()

    def drag(call: str, _: Any) -> None:
        if call == "write" and slow.is_set():
            time.sleep(0.5)

    outside, other = OutsideWorld(), OutsideWorld()
    outside.gate.clear()
    line = Tampering(before=drag)
    async with (
        worker(TamperedStore(home.store(), line), outside, LONGER).running() as running,
        worker(home.store(), other, LONGER).running(),
    ):
        pieces = tuple(f"p{number}" for number in range(20))
        await tell(running, "fan/a", machines.Load(pieces))
        slow.set()
        began = time.monotonic()
        commands = [
            asyncio.create_task(
                running.submit(name(f"counter/{n}"), machines.Add(1), f"{n}")  # type: ignore[arg-type]  # an id as good as any
            )
            for n in range(5000)
        ]
        await asyncio.sleep(1.6 * LONGER.total_seconds())
        outside.gate.set()
        await asyncio.gather(*commands)
        took = time.monotonic() - began

        async def carried() -> bool:
            return len((await state(running, "fan/a"))["carried"]) == 20

        await until(carried)

    assert took > 1.6 * LONGER.total_seconds()
    assert Counter(outside.asked + other.asked) == Counter(pieces)


async def test_what_is_held_under_a_fence_that_was_forgotten_comes_free(
    home: Home, wall: HandWoundClock
) -> None:
    """A commit of a worker that slept for an hour, or that the server finished so late."""
    outside = OutsideWorld()
    async with engine(home.store(), wall, Setup(perform=False)).running() as submitter:
        await tell(submitter, "fan/a", machines.Load(("x",)))
        await tell(submitter, "bell/a", machines.SetAlarm(wall.now()))
    home.sql("UPDATE outbox SET owner = 77")
    home.sql("UPDATE timers SET owner = 77")

    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:

        async def done() -> bool:
            carried = (await state(running, "fan/a"))["carried"]
            return bool(carried and (await state(running, "bell/a"))["rings"])

        await until(done, wall)

    assert outside.asked == ["x"]


async def test_a_worker_that_slept_past_its_lease_does_not_start_what_it_then_commits(
    home: Home, wall: HandWoundClock
) -> None:
    """It is held under a fence that others took over; they free and perform it."""
    outside, other = OutsideWorld(), OutsideWorld()
    asleep, awake = threading.Event(), threading.Event()

    def sleep(call: str, subject: Any) -> None:
        if call == "write" and subject.effects:
            asleep.set()
            assert awake.wait(PATIENCE)

    line = Tampering(before=sleep)
    sleeper = engine(TamperedStore(home.store(), line), wall, Setup(handlers(outside.carry)))
    async with sleeper.running() as running:
        asked = asyncio.create_task(tell(running, "fan/a", machines.Load(("x",))))
        await asyncio.to_thread(asleep.wait, PATIENCE)
        # All of it in one step of the loop: as for a process that was stopped.
        wall.advance(timedelta(hours=2))
        home_fence = running._keeper._fence
        awake.set()
        await asked
        async with engine(home.store(), wall, Setup(handlers(other.carry))).running():

            async def carried() -> bool:
                return bool((await state(running, "fan/a"))["carried"])

            await until(carried, wall)

    assert home_fence is not None
    assert outside.asked + other.asked == ["x"]


async def test_what_a_commit_of_unknown_fate_wrote_does_not_wait_for_others(
    home: Home, wall: HandWoundClock
) -> None:
    """Work under the old fence goes on for an hour; what nobody knows of is found and freed."""
    outside = OutsideWorld()
    outside.gate.clear()
    line = Tampering()

    async def carry(effect: machines.Carry, context: Any) -> object:
        if effect.piece == "slow":
            return await outside.carry(effect, context)
        return machines.Unload(effect.piece)

    async with engine(
        TamperedStore(home.store(), line), wall, Setup(handlers(carry))
    ).running() as running:
        await tell(running, "fan/slow", machines.Load(("slow",)))
        await outside.arrival.wait()
        line.after = once("write", gone(), lambda writes: bool(writes.effects))
        with pytest.raises(errors.Unavailable):
            await tell(running, "fan/a", machines.Load(("x",)), "load")

        async def carried() -> bool:
            return bool((await state(running, "fan/a"))["carried"])

        # No time passes, and the slow one is still under way.
        await until(carried)
        assert outside.under_way.total() == 1
        assert outside.cancelled == []
        outside.gate.set()

        async def ended() -> bool:
            return bool((await state(running, "fan/slow"))["carried"])

        await until(ended)

    assert outside.asked == ["slow"]


async def test_nothing_is_freed_where_nothing_is_held_by_the_dead(
    home: Home, wall: HandWoundClock
) -> None:
    """For an hour after a restart there is a lapsed worker; that alone is no work."""
    async with engine(home.store(), wall).running() as before:
        await tell(before, "counter/a", machines.Add(1))
    line = Tampering()

    async with engine(TamperedStore(home.store(), line), wall).running() as running:
        async with asyncio.timeout(PATIENCE):
            while line.calls["dead_owners"] < 4:
                wall.advance(timedelta(seconds=1))
                await running.write(lambda s: s.rows("count_rows"))

    assert line.calls["free_effects"] == 0
