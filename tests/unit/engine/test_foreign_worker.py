"""A worker that does not know a machine leaves its effects to those who do."""

import asyncio
from datetime import timedelta
from pathlib import Path

from fairlead._sample import depot, trip
from fairlead._sample.messages import Arrive, DriveLeg, Order
from fairlead.engine import library, messages, outbox, service
from fairlead.engine.store import sqlite

DEPOT = messages.stream_name("depot", "north")
BOTH = (depot.DEPOT, trip.TRIP)
QUICK = service.Tuning(poll=timedelta(milliseconds=20))


async def test_an_effect_of_an_unknown_machine_is_put_back_alive(tmp_path: Path) -> None:
    store = sqlite.SqliteStore(tmp_path / "fairlead.db")
    store.migrate()
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with service.Engine(service.Parts(store, BOTH), perform=False).running() as engine:
        await engine.submit(DEPOT, Order("north", 1, legs=1), messages.command_id("order"))

    async with service.Engine(service.Parts(store, (depot.DEPOT,), tuning=QUICK)).running() as old:
        # Nothing is told when an effect is put back, so it is looked for.
        async with asyncio.timeout(30):
            while not (found := await old.read(library.effects))[0].error:
                await old.wait(asyncio.Event(), timedelta(milliseconds=20))

    assert (found[0].dead_at, found[0].attempts) == (None, 0)
    assert "no such machine: trip" in (found[0].error or "")
    parts = service.Parts(store, BOTH, {DriveLeg: outbox.Handler(_drive)}, tuning=QUICK)
    async with service.Engine(parts).running() as new:
        with new.watch() as signal:
            async with asyncio.timeout(30):
                while (await new.read(lambda s: library.stream(s, DEPOT))).ended_at is None:
                    await new.wait(signal, timedelta(seconds=1))
    assert faults == []


async def _drive(leg: DriveLeg, _: outbox.Context) -> Arrive:
    return Arrive(leg.leg)
