"""Rollouts on the real engine, on ground in memory, judged by whoever answers at an address.

The clock is wound by hand from now on, so that minutes of a rollout take seconds; the Prometheus
that is asked lives in real time and knows nothing of it.
"""

import asyncio
import collections
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from fairlead.areas.rollouts import handlers
from fairlead.areas.rollouts.domain import coordination, events, messages, states, status_codec
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.ports import Slots
from fairlead.checks import wiring
from fairlead.checks.registry import Registry
from fairlead.checks.subject import Names, Side, Subject
from fairlead.clients.prometheus import ENVOY
from fairlead.engine import service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import sqlite
from fairlead.engine.testing import HandWoundClock
from fairlead.settings import MeasureSettings
from tests.fakes.rollouts import FakePlatform
from tests.unit.areas.rollouts.domain.world import version

PATIENCE_SECONDS = 60.0


class FakePlatforms:
    """A ground for each rollout."""

    def __init__(self) -> None:
        self.of: dict[str, FakePlatform] = collections.defaultdict(FakePlatform)

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        await self.of[wanted.name].ensure(wanted)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        await self.of[wanted.name].remove_canary(wanted)

    async def let_go(self, gone: messages.ReleaseResources) -> None:
        await self.of[gone.name].let_go(gone)

    async def pods(self, name: str) -> Slots:
        return await self.of[name].pods(name)

    async def route(self, wanted: messages.SetRoute) -> None:
        await self.of[wanted.name].route(wanted)

    async def shown(self, name: str) -> ObservedRoute | None:
        return await self.of[name].shown(name)

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        await self.of[gone.name].give_back(gone)

    async def publish(self, status: messages.PublishStatus) -> None: ...

    async def reset_override(self, name: str) -> None: ...


@dataclass
class InMemoryRollouts:
    """What a test sees of it."""

    engine: service.Engine
    platforms: FakePlatforms
    wall: HandWoundClock
    spec: Spec = field(default_factory=Spec)

    async def want(self, revision: str, name: str = "shop") -> None:
        wanted = messages.Request(name, self.spec, version(revision), 2)
        await self.engine.submit(
            coordination.rollout_stream(name), wanted, command_id(f"{name} {revision}")
        )

    async def state(self, name: str = "shop") -> Any:
        stream = coordination.rollout_stream(name)
        seen = await self.engine.read(lambda session: visibility.stream(session, stream))
        return msgspec.convert(seen.data, status_codec.STATES[seen.state])

    async def live(self, revision: str, name: str = "shop") -> None:
        await self.want(revision, name)
        await self.until(states.Idle, name)

    async def until(self, kind: type, name: str = "shop") -> Any:
        """Wind the clock until the rollout is in such a state."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not isinstance(state := await self.state(name), kind):
                await self.wind()
        return state

    async def until_paused(self) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (state := await self.state()).rollout.paused is None:
                await self.wind()
        return state

    async def wind(self) -> None:
        self.wall.advance(dt.timedelta(milliseconds=100))
        # Threads and the outside work in real time.
        await asyncio.sleep(0.005)

    async def ended(self, name: str = "shop") -> tuple[str, str]:
        """How the run of version 2 ended, and why; traffic is on what is stable."""
        await self.want("v2", name)
        state = await self.until(states.Idle, name)
        platform, outcome = self.platforms.of[name], state.rollout.outcome
        primary = platform.slots[Slot.PRIMARY]
        assert primary is not None
        stable = "v2" if outcome.ending is events.Ending.PROMOTED else "v1"
        assert primary.version.revision == state.rollout.stable.revision == stable
        assert (platform.weights[-1], platform.slots[Slot.CANARY]) == (0, None)
        return outcome.ending.value, outcome.why


@contextlib.asynccontextmanager
async def in_memory(
    folder: Path,
    spec: Spec,
    url: str,
    arguments: Mapping[str, Mapping[str, str]] | None = None,
    **more: Any,
) -> AsyncIterator[InMemoryRollouts]:
    """Version 1 is live; `arguments` are those of queries, by revision; `more` are settings."""
    wall = HandWoundClock(dt.datetime.now(dt.UTC))
    given = arguments or {}

    def naming(about: Subject, side: Side) -> Names:
        revision = about.version(side).revision
        return Names(ENVOY, {"cluster": revision, **given.get(revision, {})})

    # Ticks are real time, and the rollout's minutes are not.
    usual = {"prometheus_seconds": 1.0, "prometheus_tick_seconds": 0.01, "hooks_seconds": 1.0}
    chosen = MeasureSettings(prometheus_url=url, **(usual | more))
    checks = Registry()
    async with wiring.opened(chosen, checks, naming, wall.now):
        platforms = FakePlatforms()
        world = handlers.RolloutPorts(platforms, platforms, platforms, checks, wall.now)
        # Nobody else wants the work, and a wound clock must not make us lose it.
        tuning = service.Tuning(lease=dt.timedelta(hours=1))
        parts = service.Parts(
            sqlite.SqliteStore(folder / "fairlead.db"),
            (ROLLOUT, LIMITER, GROUP),
            handlers.handlers(world),
            wall=wall,
            tuning=tuning,
        )
        parts.store.migrate()
        async with service.Engine(parts).running() as engine:
            made = InMemoryRollouts(engine, platforms, wall, spec)
            await made.live("v1")
            yield made
