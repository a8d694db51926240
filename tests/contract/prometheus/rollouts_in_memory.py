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

from fairlead import bootstrap
from fairlead.domain.rollouts import bonds, effects, messages, shapes, states
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts.group import GROUP
from fairlead.domain.rollouts.limiter import LIMITER
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Names, Slots
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.rollouts.spec import Spec
from fairlead.engine import library, service
from fairlead.engine.messages import command_id
from fairlead.engine.store import sqlite
from fairlead.engine.testing import HandWoundClock
from fairlead.settings import MeasureSettings
from tests.fakes.rollouts import Ground
from tests.unit.domain.rollouts.world import version

PATIENCE_SECONDS = 60.0


class Grounds:
    """A ground for each rollout."""

    def __init__(self) -> None:
        self.of: dict[str, Ground] = collections.defaultdict(Ground)

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        await self.of[wanted.name].ensure(wanted)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        await self.of[wanted.name].remove_canary(wanted)

    async def let_go(self, gone: messages.LetGo) -> None:
        await self.of[gone.name].let_go(gone)

    async def pods(self, name: str) -> Slots:
        return await self.of[name].pods(name)

    async def route(self, wanted: messages.SetRoute) -> None:
        await self.of[wanted.name].route(wanted)

    async def shown(self, name: str) -> Shown | None:
        return await self.of[name].shown(name)

    async def give_back(self, gone: messages.LetGo) -> None:
        await self.of[gone.name].give_back(gone)

    async def publish(self, status: messages.PublishStatus) -> None: ...

    async def reset_override(self, name: str) -> None: ...


@dataclass
class Harbor:
    """What a test sees of it."""

    engine: service.Engine
    grounds: Grounds
    wall: HandWoundClock
    spec: Spec = field(default_factory=Spec)

    async def want(self, revision: str, name: str = "shop") -> None:
        wanted = messages.Want(name, self.spec, version(revision), 2)
        await self.engine.submit(
            bonds.rollout_stream(name), wanted, command_id(f"{name} {revision}")
        )

    async def state(self, name: str = "shop") -> Any:
        stream = bonds.rollout_stream(name)
        seen = await self.engine.read(lambda session: library.stream(session, stream))
        return msgspec.convert(seen.data, shapes.STATES[seen.state])

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
            while (state := await self.state()).book.paused is None:
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
        ground, outcome = self.grounds.of[name], state.book.outcome
        primary = ground.slots[Slot.PRIMARY]
        assert primary is not None
        stable = "v2" if outcome.ending is told.Ending.PROMOTED else "v1"
        assert primary.version.revision == state.book.stable.revision == stable
        assert (ground.shares[-1], ground.slots[Slot.CANARY]) == (0, None)
        return outcome.ending.value, outcome.why


@contextlib.asynccontextmanager
async def harbor(
    folder: Path,
    spec: Spec,
    url: str,
    arguments: Mapping[str, Mapping[str, str]] | None = None,
    **more: Any,
) -> AsyncIterator[Harbor]:
    """Version 1 is live; `arguments` are those of queries, by revision; `more` are settings."""
    wall = HandWoundClock(dt.datetime.now(dt.UTC))
    given = arguments or {}

    def naming(about: messages.Measure, slot: Slot) -> Names:
        revision = (about.primary if slot is Slot.PRIMARY else about.canary).revision
        return Names("envoy", {"cluster": revision, **given.get(revision, {})})

    # Ticks are real time, and the rollout's minutes are not.
    usual = {"prometheus_seconds": 1.0, "prometheus_tick_seconds": 0.01, "hooks_seconds": 1.0}
    chosen = MeasureSettings(prometheus_url=url, **(usual | more))
    async with bootstrap.measures(chosen, naming, wall.now) as (metrics, gates):
        grounds = Grounds()
        world = effects.World(grounds, grounds, metrics, gates, grounds, wall.now)
        # Nobody else wants the work, and a wound clock must not make us lose it.
        tuning = service.Tuning(lease=dt.timedelta(hours=1))
        parts = service.Parts(
            sqlite.SqliteStore(folder / "harbor.db"),
            (ROLLOUT, LIMITER, GROUP),
            effects.handlers(world),
            wall=wall,
            tuning=tuning,
        )
        parts.store.migrate()
        async with service.Engine(parts).running() as engine:
            made = Harbor(engine, grounds, wall, spec)
            await made.live("v1")
            yield made
