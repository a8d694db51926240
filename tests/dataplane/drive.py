"""The rollout machine on the real engine, with a yard for its world."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from fairlead import errors
from fairlead.areas.rollouts import handlers
from fairlead.areas.rollouts.domain import coordination, messages, states, status_codec
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.engine import clock, service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import sqlite
from tests.dataplane.platform import DataplanePlatform
from tests.fakes.checks import registry

STREAM = coordination.rollout_stream("shop")
PATIENCE = 90.0
_ids = itertools.count()


@contextlib.asynccontextmanager
async def driven(
    dataplane_platform: DataplanePlatform, folder: Path
) -> AsyncIterator[service.Engine]:
    """The machine on the real engine, told five times a second what is to be seen."""
    wall = clock.SystemClock()
    world = handlers.RolloutPorts(
        dataplane_platform,
        dataplane_platform,
        dataplane_platform,
        registry(dataplane_platform),
        wall.now,
    )
    machines = (ROLLOUT, LIMITER, GROUP)
    store = sqlite.SqliteStore(folder / "fairlead.db")
    parts = service.Parts(store, machines, handlers.handlers(world), wall=wall)
    store.migrate()
    async with service.Engine(parts).running() as engine:

        async def watch() -> None:
            while True:
                await asyncio.sleep(0.2)
                if not isinstance(await state(engine), states.Unknown):
                    seen = messages.Observed(await handlers.observed(world, "shop"))
                    await engine.submit(STREAM, seen, command_id(f"seen {next(_ids)}"))

        task = asyncio.create_task(watch())
        try:
            yield engine
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def state(engine: service.Engine) -> Any:
    try:
        seen = await engine.read(lambda session: visibility.stream(session, STREAM))
    except errors.NotFound:
        return states.Unknown()
    return msgspec.convert(seen.data, status_codec.STATES[seen.state])


async def want(engine: service.Engine, name: str, spec: Spec) -> None:
    wanted = messages.Request("shop", spec, Version(name, f"t-{name}", "", name), 3)
    await engine.submit(STREAM, wanted, command_id(f"want {name} {next(_ids)}"))


async def until_idle(engine: service.Engine, stable: str, ended: str | None = None) -> Any:
    now: Any = None
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                now = await state(engine)
                if isinstance(now, states.Idle) and now.rollout.stable.revision == stable:
                    outcome = now.rollout.outcome
                    if ended is None or (outcome and outcome.target.revision == ended):
                        return now
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"not idle at {stable} after {PATIENCE:.0f} s: {now}") from None
