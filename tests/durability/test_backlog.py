"""More commands than a lease can wait for: the worker keeps it, and does nothing twice."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from fairlead.engine import clock, leases, messages, service
from fairlead.engine.store import protocol
from tests import machines
from tests.engines import Home, handlers, name, state, tell, until
from tests.outside_world import OutsideWorld

LEASE = timedelta(seconds=3)
COMMANDS = 80_000


def worker(store: protocol.Store, outside: OutsideWorld) -> service.Engine:
    tuning = service.Tuning(lease=LEASE, poll=timedelta(milliseconds=50))
    known, performed = machines.ALL, handlers(outside.carry)
    return service.Engine(service.Parts(store, known, performed, (), clock.SystemClock(), tuning))


async def queued(running: service.Engine) -> list[asyncio.Task[messages.Receipt]]:
    """All of them wait; others get the loop now and then, as between requests of a server."""
    commands = []
    for n in range(COMMANDS):
        submission = running.submit(
            name(f"counter/{n % 1000}"), machines.Add(1), messages.command_id(f"{n}")
        )
        commands.append(asyncio.create_task(submission))
        if n % 1000 == 0:
            await asyncio.sleep(0)
    return commands


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
        commands = await queued(running)
        await asyncio.gather(*commands[: COMMANDS // 2])
        outside.gate.set()
        await asyncio.gather(*commands)

        async def carried() -> bool:
            return len((await state(running, "fan/a"))["carried"]) == len(pieces)

        await until(carried)
        assert running.counts.lease_losses == 0

    assert Counter(outside.asked + other.asked) == Counter(pieces)
    assert home.sql("SELECT count(*) FROM events") == [(COMMANDS + len(pieces) + 1,)]
