"""Rollouts at work on a real engine, each on a ground of its own that tells at once what it shows.

`tests/fakes/rollouts.py` has the ground; here are several of them by name, the handlers that
report each write as an observation, and numbers that follow the ground's weights.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fairlead import bootstrap, catalog
from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts import detail, handlers, projection, requests
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.areas.rollouts.traffic_stats import TRAFFIC_STATS, Point
from fairlead.checks.spec import Check
from fairlead.checks.subject import Subject
from fairlead.engine import messages as words
from fairlead.engine import outbox, service
from fairlead.values import Percent
from fairlead.web.services import Services
from tests.fakes.checks import registry
from tests.fakes.rollouts import FakePlatform

PATIENCE_SECONDS = 60.0
ERRORS = Check(
    "error rate", query="errors of {{target}}", high=1, limits=Limits(interval=dt.timedelta(1))
)
ASKED = Strategy(steps=(Pace(Percent(10), approve=True), Pace(Percent(50), approve=True)))
SPEC = Spec(ASKED, (ERRORS,))
"""Each step waits for a person, so a test decides how far it goes."""


def version(name: str) -> Version:
    return Version(f"shop-{name}", f"template {name}", "", name)


class Fleet:
    """Platform, router, metrics, gates and owner of any number of rollouts."""

    def __init__(self, errors: dict[str, float] | None = None) -> None:
        self.errors = errors or {}
        self.grounds: dict[str, FakePlatform] = {}
        self.counted: dict[str, tuple[SlotTraffic, ...]] = {}
        """What each round of checks of a rollout finds counted."""

    def of(self, name: str) -> FakePlatform:
        return self.grounds.setdefault(name, FakePlatform(self.errors))

    def weight(self, name: str) -> int:
        """The canary's weight that the proxies show."""
        held = self.of(name).set
        return int(held.route.weight) if held else 0

    def traffic(self, about: Subject) -> tuple[SlotTraffic, ...]:
        return self.counted.get(about.name, ())

    def cast(self, numbers: "Counted | None" = None) -> bootstrap.Installation:
        port: Any = _ByName(self)
        world = handlers.RolloutPorts(
            *(port, port, port, registry(port), lambda: dt.datetime.now(dt.UTC)),
            counter=self,
        )
        return bootstrap.Installation(
            machines=(ROLLOUT, LIMITER, GROUP),
            handlers=_told_at_once(world),
            views=(projection.ROLLOUTS,),
            services=Services({TRAFFIC_STATS: numbers} if numbers else None),
            areas=catalog.AREAS,
        )


class Counted:
    """Numbers that a test writes down; it follows `Numbers`."""

    def __init__(self) -> None:
        self.points: dict[str, list[Point]] = {}

    def recent(self, rollout: str) -> Sequence[Point]:
        return tuple(self.points.get(rollout, ()))

    def add(self, rollout: str, *points: Point) -> None:
        self.points.setdefault(rollout, []).extend(points)


def point(at: dt.datetime, slot: Slot, weight: int, failed: int = 0) -> Point:
    revision = "shop-v1" if slot is Slot.PRIMARY else "shop-v2"
    return Point(at, slot, revision, weight, 200, failed, 12.0, 40.0)


async def want(
    engine: service.Engine, name: str, version_name: str, spec: Spec = SPEC, queue: str = ""
) -> words.Receipt:
    wanted = messages.Request(name, spec, version(version_name), 3)
    id_ = words.command_id(f"want {version_name} of {name}")
    return await engine.submit(coordination.rollout_stream(name), wanted, id_, queue=queue)


async def until(
    engine: service.Engine, name: str, holds: Callable[[detail.Detail], bool]
) -> detail.Detail:
    """The rollout once this is true of it."""
    with engine.watch() as signal:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                seen: detail.Detail = await engine.read(
                    lambda s: requests.read(s, name, dt.datetime.now(dt.UTC))
                )
                if holds(seen):
                    return seen
                await engine.wait(signal, dt.timedelta(seconds=0.2))


async def live(engine: service.Engine, name: str, spec: Spec = SPEC) -> detail.Detail:
    """Version 1 carries everything."""
    await want(engine, name, "v1", spec)
    return await until(engine, name, lambda seen: seen.rollout.phase == "Stable")


async def halfway(engine: service.Engine, name: str, spec: Spec = SPEC) -> detail.Detail:
    """Version 2 has 10 % and waits for a person."""
    await live(engine, name, spec)
    await want(engine, name, "v2", spec)
    return await until(engine, name, lambda seen: seen.rollout.phase == "AwaitingApproval")


class _ByName:
    """Each call goes to the ground of the rollout it names."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def __getattr__(self, method: str) -> Callable[..., Any]:
        async def call(first: Any, *others: Any) -> Any:
            subject = others[-1] if others else first
            name = subject if isinstance(subject, str) else subject.name
            return await getattr(self._fleet.of(name), method)(first, *others)

        return call


def _told_at_once(world: handlers.RolloutPorts) -> outbox.Handlers:
    writes = (messages.EnsureVersion, messages.SetRoute, messages.RemoveCanary)
    made = handlers.handlers(world)
    return {
        effect: _observed(handler, world) if effect in writes else handler
        for effect, handler in made.items()
    }


def _observed(handler: outbox.Handler, world: handlers.RolloutPorts) -> outbox.Handler:
    async def perform(effect: Any, context: outbox.EffectContext) -> messages.Observed:
        await handler.perform(effect, context)
        return messages.Observed(await handlers.observed(world, effect.name))

    return replace(handler, perform=perform)
