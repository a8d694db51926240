"""From ports to handlers: what is not done yet waits in the outbox, and is asked for again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never

from fairlead import errors
from fairlead.areas.content.domain.population import Population
from fairlead.areas.content.domain.release import messages
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.place import NO_VERSION
from fairlead.areas.content.release import ports
from fairlead.areas.content.release.ports import Progress
from fairlead.checks import measure
from fairlead.checks.registry import Registry
from fairlead.checks.subject import Names, Side, Subject, Version
from fairlead.engine import outbox
from fairlead.values import redacted

_SHARE_SECONDS = 30.0
_DEPLOY_SECONDS = 90.0
_MOST_TOLD = 300
_FOR_EVER = 1_000_000_000
_LONGEST_DELAY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ReleasePorts:
    """All ports of a release, and the clock by which checks are asked."""

    shares: ports.ShareWriter
    deployments: ports.Deployer
    checks: Registry
    now: Callable[[], datetime]


def handlers(world: ReleasePorts) -> outbox.Handlers:
    made: dict[type, tuple[Callable[[ReleasePorts, Any], Awaitable[object]], float]] = {
        messages.SetShare: (_set_share, _SHARE_SECONDS),
        messages.Deploy: (_deploy, _DEPLOY_SECONDS),
        messages.Measure: (_measure, _SHARE_SECONDS),
    }
    return {
        effect: outbox.Handler(
            _own(world, perform),
            # A little more than the call may take, so that its own end is told.
            timedelta(seconds=seconds + 10),
            # The machine has the patience: it withdraws what has taken too long.
            attempts=_FOR_EVER,
            longest_delay=_LONGEST_DELAY,
        )
        for effect, (perform, seconds) in made.items()
    }


def named(about: Subject, side: Side) -> Names:
    """What queries may ask for; who counts archives, and under which names, is the user's."""
    channel = "canary" if side is Side.CANARY else "stable"
    given = {"content": about.name, "version": about.version(side).revision, "channel": channel}
    return Names({}, given)


def _own(
    world: ReleasePorts, perform: Callable[[ReleasePorts, Any], Awaitable[object]]
) -> Callable[[Any, outbox.EffectContext], Awaitable[object | None]]:
    async def performed(effect: Any, context: outbox.EffectContext) -> object:
        if stream(effect.name) != context.stream:
            raise errors.Rejected(
                f"{context.stream} asks for another content: {effect.name[:80]}",
                hint="discard the effect (fairlead outbox discard)",
            )
        return await perform(world, effect)

    return performed


async def _set_share(world: ReleasePorts, effect: messages.SetShare) -> object:
    chosen = Population(effect.salt, effect.share, effect.canary)
    async with _retried(_SHARE_SECONDS):
        await world.shares.set(effect.name, effect.place, chosen)
    return messages.ShareConfirmed(effect.order)


async def _deploy(world: ReleasePorts, effect: messages.Deploy) -> object:
    async with _retried(_DEPLOY_SECONDS):
        found = await world.deployments.deploy(effect.name, effect.place, effect.versions)
    told = redacted(found.reason)[:_MOST_TOLD]
    match found.progress:
        case Progress.READY:
            return messages.DeploymentReady(effect.order)
        case Progress.FAILED:
            return messages.DeploymentFailed(effect.order, told)
        case Progress.WAITING:
            raise errors.Unavailable(f"not ready yet: {told}", hint="it is asked again")
        case unreachable:
            assert_never(unreachable)


async def _measure(world: ReleasePorts, effect: messages.Measure) -> object:
    versions = effect.versions
    canary = versions.stable if versions.canary == NO_VERSION else versions.canary
    about = Subject(
        name=effect.name,
        ticket=effect.ticket,
        primary=Version(versions.stable, versions.stable),
        canary=Version(canary, canary),
        weight=effect.share / 100,
        since=effect.since,
        hold=effect.bake,
        steps=effect.steps,
    )
    asked = measure.Round(world.checks, about, world.now())
    return messages.Judged(effect.ticket, await asked.findings(effect.checks))


@contextlib.asynccontextmanager
async def _retried(seconds: float) -> AsyncIterator[None]:
    """Whatever is wrong there, somebody may mend it: it is asked for again, and never given up."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        hint = "it is asked again"
        raise errors.Unavailable(f"no answer within {seconds:g} s", hint=hint) from error
    except OSError as error:
        told = f"cannot write: {error.strerror or type(error).__name__}"
        raise errors.Unavailable(told, hint="is the disk full?") from error
    except errors.FairleadError as error:
        told = redacted(error.message)[:_MOST_TOLD]
        raise errors.Unavailable(told, hint=error.hint) from error
