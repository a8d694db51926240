"""An engine's figures as Prometheus reads them."""

import asyncio
from datetime import timedelta

import prometheus_client
from prometheus_client import parser, registry

from fairlead.engine import collector, service
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import LEASE, Setup, dead, effects, engine, handlers, tell, until
from tests.outside_world import OutsideWorld

Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]
KIND = (("effect", "Carry"), ("machine", "fan"), ("queue_kind", ""))


async def scraped(running: service.Engine) -> Figures:
    known, figures = registry.CollectorRegistry(), collector.EngineCollector(running)
    known.register(figures)
    await figures.refresh()
    text = prometheus_client.generate_latest(known).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_effects_are_timed_and_their_failures_counted_by_kind(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([OSError("no road")])

    async with engine(store, wall, Setup(handlers(outside.carry, attempts=1))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: dead(running))
        await tell(running, "fan/b", machines.Load(("y",)))
        await until(lambda: asyncio.sleep(0, running.in_flight == 0))
        figures = await scraped(running)

    assert figures["fairlead_effect_failures_total", KIND] == 1
    assert figures["fairlead_effect_duration_seconds_count", KIND] == 2
    assert figures["fairlead_dead_letters", ()] == 1
    commits = figures["fairlead_commits_total", ()]
    assert figures["fairlead_commit_duration_seconds_count", ()] == commits > 0


async def test_figures_tell_who_holds_what_and_how_old_the_oldest_is(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    outside = OutsideWorld()
    outside.gate.clear()

    async with engine(store, wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x", "y")))
        await tell(running, "bell/a", machines.SetAlarm(START + timedelta(hours=1)))
        await until(lambda: asyncio.sleep(0, len(outside.asked) == 2))
        wall.advance(timedelta(seconds=3))
        figures = await scraped(running)
        ((_, worker, *_),) = await running.read(lambda s: s.rows("live_workers", now=0))

    assert figures["fairlead_effects_held", (("effect", "Carry"), ("queue_kind", ""))] == 2
    assert figures["fairlead_worker_effects", (("worker", worker),)] == 2
    assert figures["fairlead_outbox_oldest_seconds", ()] == 3
    assert figures["fairlead_timers_oldest_seconds", ()] == 0
    assert ("fairlead_inbox_depth", ()) in figures
    assert figures["fairlead_dead_timers", ()] == 0


async def test_a_lost_lease_is_counted_once(store: protocol.Store, wall: HandWoundClock) -> None:
    async with engine(store, wall).running() as running:
        await effects(running)
        wall.advance(2 * LEASE)

        async def lost() -> bool:
            return (await scraped(running))["fairlead_lease_losses_total", ()] > 0

        await until(lost, wall)
        for _ in range(5):
            await effects(running)

        assert (await scraped(running))["fairlead_lease_losses_total", ()] == 1


async def test_what_the_store_holds_is_asked_for_at_most_every_ten_seconds(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall).running() as running:
        figures = collector.EngineCollector(running)
        await figures.refresh()
        first = figures._kept
        await tell(running, "fan/a", machines.Load(("x",)))
        await figures.refresh()

    assert figures._kept is first
