"""More commands than a lease can wait for: the worker keeps it, and does nothing twice."""

import asyncio
import time
from collections import Counter
from datetime import timedelta

import pytest

from fairlead.engine import clock, leases, messages, service
from fairlead.engine.store import protocol
from tests import machines
from tests.engines import Home, handlers, name, state, tell, until
from tests.outside_world import OutsideWorld

# Long enough for a machine whose disk or processor belongs to others for seconds; the backlog
# outlasts it all the same.
LEASE = timedelta(seconds=10)
COMMANDS = 80_000


def worker(store: protocol.Store, outside: OutsideWorld) -> service.Engine:
    tuning = service.Tuning(lease=LEASE, poll=timedelta(milliseconds=50))
    # What waits here for half of a backlog must not end by a time of its own, on any machine.
    known, performed = machines.ALL, handlers(outside.carry, timeout=timedelta(minutes=10))
    return service.Engine(service.Parts(store, known, performed, (), clock.SystemClock(), tuning))


async def queued(running: service.Engine, turn: int) -> list[asyncio.Task[messages.Receipt]]:
    """All of them wait; others get the loop now and then, as between requests of a server."""
    commands = []
    for n in range(COMMANDS):
        submission = running.submit(
            name(f"counter/{n % 1000}"), machines.Add(1), messages.command_id(f"{turn}/{n}")
        )
        commands.append(asyncio.create_task(submission))
        if n % 1000 == 0:
            await asyncio.sleep(0)
    return commands


async def backlog(running: service.Engine, halfway: asyncio.Event) -> int:
    """One and a half leases without a moment in which nothing waits; how many were sent."""
    begun, turns = time.monotonic(), 0
    waiting: list[asyncio.Task[messages.Receipt]] = []
    while not turns or time.monotonic() < begun + 1.5 * LEASE.total_seconds():
        waiting += await queued(running, turns)
        turns += 1
        await asyncio.gather(*waiting[: COMMANDS // 2])
        halfway.set()
        waiting = waiting[COMMANDS // 2 :]
    await asyncio.gather(*waiting)
    return turns * COMMANDS


@pytest.mark.slow
async def test_eighty_thousand_queued_commands_cost_no_lease_and_double_no_effect(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers of one process are no neighbours here: only leases count.
    names = iter(range(100))
    monkeypatch.setattr(leases, "worker_name", lambda: f"machine {next(names)}/x:1")
    outside, other = OutsideWorld(), OutsideWorld()
    outside.gate.clear()
    async with (
        worker(home.store(), outside).running() as running,
        worker(home.store(), other).running(),
    ):
        pieces = tuple(f"p{number}" for number in range(50))
        await tell(running, "fan/a", machines.Load(pieces))
        sent = await backlog(running, outside.gate)

        async def carried() -> bool:
            return len((await state(running, "fan/a"))["carried"]) == len(pieces)

        await until(carried)
        assert running.counts.lease_losses == 0

    assert Counter(outside.asked + other.asked) == Counter(pieces)
    assert home.sql("SELECT count(*) FROM events") == [(sent + len(pieces) + 1,)]
