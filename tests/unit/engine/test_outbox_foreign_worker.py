"""A worker that does not know a machine, or an effect's shape, leaves it to those who do."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from fairlead.engine import machine as machines
from fairlead.engine import messages, outbox, service, visibility
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg, Order
from fairlead.engine.store import protocol
from tests.engines import PATIENCE

DEPOT = messages.stream_name("depot", "north")
BOTH = (depot.DEPOT, trip.TRIP)
NEWER = replace(trip.TRIP, versions={DriveLeg: 2}, upcasters={("DriveLeg", 1): lambda old: old})
QUICK = service.Tuning(poll=timedelta(milliseconds=20))


async def _drive(leg: DriveLeg, _: outbox.EffectContext) -> Arrive:
    return Arrive(leg.leg)


HANDLERS: outbox.Handlers = {DriveLeg: outbox.Handler(_drive)}


@pytest.mark.parametrize("old", [(depot.DEPOT,), BOTH], ids=["no such machine", "newer version"])
async def test_an_effect_that_an_old_worker_cannot_read_is_left_untouched(
    store: protocol.Store, old: tuple[machines.AnyMachine, ...]
) -> None:
    new = (depot.DEPOT, NEWER)
    async with service.Engine(service.Parts(store, new), perform=False).running() as engine:
        await engine.submit(DEPOT, Order("north", 1, legs=1), messages.command_id("order"))

    async with service.Engine(service.Parts(store, old, HANDLERS, tuning=QUICK)).running() as rest:
        # It polls every 20 ms: time enough to touch what it should not.
        await rest.wait(asyncio.Event(), timedelta(milliseconds=200))
        (found,) = await rest.read(visibility.effects)

    assert (found.held, found.attempts, found.dead_at, found.error) == (False, 0, None, None)
    async with service.Engine(service.Parts(store, new, HANDLERS, tuning=QUICK)).running() as able:
        with able.watch() as signal:
            async with asyncio.timeout(PATIENCE):
                while (await able.read(lambda s: visibility.stream(s, DEPOT))).ended_at is None:
                    await able.wait(signal, timedelta(seconds=1))
