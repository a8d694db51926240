"""From ports to handlers: how each effect of a rollout is performed, whatever the adapters are."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from fairlead import errors
from fairlead.areas.rollouts import ports
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan import spec
from fairlead.checks import measure
from fairlead.checks.registry import Registry
from fairlead.checks.subject import News, Side, Subject, Version
from fairlead.engine import outbox

Perform = Callable[[Any, outbox.EffectContext], Awaitable[object | None]]


@dataclass(frozen=True, slots=True)
class RolloutPorts:
    """All ports of a rollout, and the clock by which observations are dated."""

    platform: ports.Platform
    router: ports.Router
    owner: ports.Owner
    checks: Registry
    now: Callable[[], datetime]
    counter: ports.Counter | None = None


def handlers(world: RolloutPorts) -> outbox.Handlers:
    """How each effect is performed, for the engine."""
    # Writes are asked again by the machine when it looks; so they need not be tried for hours.
    write = timedelta(seconds=30)
    made = {
        messages.EnsureVersion: outbox.Handler(_Writes(world).ensure, write, attempts=8),
        messages.SetRoute: outbox.Handler(_Writes(world).route, write, attempts=8),
        messages.RemoveCanary: outbox.Handler(_Writes(world).remove, write, attempts=8),
        messages.ReleaseResources: outbox.Handler(_Writes(world).let_go, write, attempts=20),
        messages.Observe: outbox.Handler(_Observations(world).observe, attempts=3),
        messages.Measure: outbox.Handler(_Observations(world).measure, attempts=1),
        messages.Notify: outbox.Handler(_Tells(world).notify, attempts=5),
        messages.PublishStatus: outbox.Handler(_Tells(world).publish, attempts=20),
        messages.ResetOverride: outbox.Handler(_Tells(world).reset_override, attempts=20),
    }
    return {
        effect: replace(handler, perform=_for_its_own(handler.perform))
        for effect, handler in made.items()
    }


def _for_its_own(perform: Perform) -> Perform:
    """A stream asks for its own rollout only, whatever name stands in the effect."""

    async def performed(effect: Any, context: outbox.EffectContext) -> object | None:
        if effect.name != coordination.key_of(context.stream):
            raise errors.Rejected(
                f"{context.stream} asks for another rollout: {effect.name[:80]}",
                hint="discard the effect (fairlead outbox discard)",
            )
        return await perform(effect, context)

    return performed


async def observed(world: RolloutPorts, name: str) -> Observation:
    """Everything there is to see; dated before looking, so that it is never newer than it says."""
    at = world.now()
    pods = await world.platform.pods(name)
    shown = await world.router.shown(name)
    return Observation(at, pods.primary, pods.canary, shown, pods.baseline)


@dataclass(frozen=True, slots=True)
class _Writes:
    world: RolloutPorts

    async def ensure(self, effect: messages.EnsureVersion, _: outbox.EffectContext) -> None:
        await self.world.platform.ensure(effect)

    async def route(self, effect: messages.SetRoute, _: outbox.EffectContext) -> None:
        await self.world.router.route(effect)

    async def remove(self, effect: messages.RemoveCanary, _: outbox.EffectContext) -> None:
        await self.world.platform.remove_canary(effect)

    async def let_go(self, effect: messages.ReleaseResources, _: outbox.EffectContext) -> None:
        await self.world.router.give_back(effect)
        await self.world.platform.let_go(effect)


@dataclass(frozen=True, slots=True)
class _Observations:
    world: RolloutPorts

    async def observe(self, effect: messages.Observe, _: outbox.EffectContext) -> messages.Observed:
        return messages.Observed(await observed(self.world, effect.name))

    async def measure(self, effect: messages.Measure, _: outbox.EffectContext) -> messages.Judged:
        about, counter = _subject(effect), self.world.counter
        asked = measure.Round(self.world.checks, about, self.world.now())
        findings = await asked.findings(effect.checks)
        traffic = counter.traffic(about) if counter is not None else ()
        return messages.Judged(effect.ticket, findings, traffic)


def _subject(effect: messages.Measure) -> Subject:
    return Subject(
        name=effect.name,
        ticket=effect.ticket,
        primary=_version(effect.primary),
        canary=_version(effect.canary),
        weight=effect.weight,
        since=effect.since,
        control=Side(effect.control.value),
        hold=effect.hold,
        steps=effect.steps,
    )


def _version(version: spec.Version) -> Version:
    return Version(version.revision, str(version))


@dataclass(frozen=True, slots=True)
class _Tells:
    world: RolloutPorts

    async def notify(self, effect: messages.Notify, _: outbox.EffectContext) -> None:
        news = News(effect.name, effect.kind, effect.text, effect.at)
        await self.world.checks.notify(news)

    async def publish(self, effect: messages.PublishStatus, _: outbox.EffectContext) -> None:
        await self.world.owner.publish(effect)

    async def reset_override(self, effect: messages.ResetOverride, _: outbox.EffectContext) -> None:
        await self.world.owner.reset_override(effect.name)
