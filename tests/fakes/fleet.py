"""Rollouts at work on a real engine, each on a ground of its own that tells at once what it shows.

`tests/fakes/rollouts.py` has the ground; here are several of them by name, the handlers that
report each write as an observation, and numbers that follow the ground's weights.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fairlead import bootstrap
from fairlead.domain.analysis.limits import Limits
from fairlead.domain.rollouts import bonds, detail, effects, messages, rows
from fairlead.domain.rollouts.group import GROUP
from fairlead.domain.rollouts.limiter import LIMITER
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.numbers import Point
from fairlead.domain.rollouts.spec import Check, Spec, Version
from fairlead.domain.rollouts.strategy import Pace, Strategy
from fairlead.domain.values import Percent
from fairlead.engine import messages as words
from fairlead.engine import outbox, service
from fairlead.intents import requests as door
from tests.fakes.rollouts import Ground

PATIENCE_SECONDS = 20.0
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
        self.grounds: dict[str, Ground] = {}

    def of(self, name: str) -> Ground:
        return self.grounds.setdefault(name, Ground(self.errors))

    def share(self, name: str) -> int:
        """The canary's share that the proxies show."""
        held = self.of(name).set
        return int(held.route.share) if held else 0

    def cast(self, numbers: "Counted | None" = None) -> bootstrap.Cast:
        port: Any = _ByName(self)
        world = effects.World(port, port, port, port, port, lambda: dt.datetime.now(dt.UTC))
        return bootstrap.Cast(
            machines=(ROLLOUT, LIMITER, GROUP),
            handlers=_told_at_once(world),
            views=(rows.ROLLOUTS,),
            numbers=numbers,
        )


class Counted:
    """Numbers that a test writes down; it follows `Numbers`."""

    def __init__(self) -> None:
        self.points: dict[str, list[Point]] = {}

    def recent(self, rollout: str) -> Sequence[Point]:
        return tuple(self.points.get(rollout, ()))

    def add(self, rollout: str, *points: Point) -> None:
        self.points.setdefault(rollout, []).extend(points)


def point(at: dt.datetime, slot: Slot, share: int, failed: int = 0) -> Point:
    revision = "shop-v1" if slot is Slot.PRIMARY else "shop-v2"
    return Point(at, slot, revision, share, 200, failed, 12.0, 40.0)


async def want(
    engine: service.Engine, name: str, version_name: str, spec: Spec = SPEC
) -> words.Receipt:
    wanted = messages.Want(name, spec, version(version_name), 3)
    id_ = words.command_id(f"want {version_name} of {name}")
    return await engine.submit(bonds.rollout_stream(name), wanted, id_)


async def until(
    engine: service.Engine, name: str, holds: Callable[[detail.Detail], bool]
) -> detail.Detail:
    """The rollout once this is true of it."""
    with engine.watch() as signal:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                seen: detail.Detail = await engine.read(
                    lambda s: door.look(s, name, dt.datetime.now(dt.UTC))
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


def _told_at_once(world: effects.World) -> outbox.Handlers:
    writes = (messages.EnsureVersion, messages.SetRoute, messages.RemoveCanary)
    made = effects.handlers(world)
    return {
        effect: _observed(handler, world) if effect in writes else handler
        for effect, handler in made.items()
    }


def _observed(handler: outbox.Handler, world: effects.World) -> outbox.Handler:
    async def perform(effect: Any, context: outbox.Context) -> messages.Observed:
        await handler.perform(effect, context)
        return messages.Observed(await effects.sight(world, effect.name))

    return replace(handler, perform=perform)
