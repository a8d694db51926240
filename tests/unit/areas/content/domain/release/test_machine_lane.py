"""The way back on a real engine: what hangs is not in the way of what does not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead.areas.content import requests
from fairlead.areas.content.domain.population import NOBODY
from fairlead.areas.content.domain.release import messages
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.machine import RELEASE
from fairlead.areas.content.domain.release.place import Versions
from fairlead.areas.content.domain.release.state import Phase, Release
from fairlead.areas.content.release import handlers
from fairlead.checks.registry import Registry
from fairlead.engine import service
from fairlead.engine.messages import command_id
from fairlead.engine.store import sqlite
from fairlead.engine.testing import START, HandWoundClock
from tests.fakes import content as fakes
from tests.unit.areas.content.domain.release import samples

NAME = stream("gathering")
# The deadline is none that the clock of these tests ever reaches.
PROPOSE = replace(samples.PROPOSE, plan=replace(samples.BY_HAND, deadline=timedelta(days=7)))
STEP = timedelta(milliseconds=250)


@pytest.fixture
def world() -> fakes.World:
    return fakes.World()


@asynccontextmanager
async def baking(folder: Path, world: fakes.World) -> AsyncIterator[tuple[service.Engine, "Wall"]]:
    store = sqlite.SqliteStore(folder / "store.db", [RELEASE.name])
    store.migrate()
    wall = Wall()
    made = handlers.handlers(handlers.ReleasePorts(world, world, Registry(), lambda: START))
    async with service.Engine(service.Parts(store, (RELEASE,), made, wall=wall)).running() as it:
        await it.submit(NAME, PROPOSE, command_id("propose"))
        await it.submit(NAME, samples.approval(PROPOSE), command_id("approve"))
        await wall.until(it, lambda state: state.phase is Phase.BAKING)
        yield it, wall


class Wall(HandWoundClock):
    """Moves on while something is awaited."""

    async def until(self, engine: service.Engine, holds: Callable[[Release], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds(await engine.read(lambda session: requests.find(session, "gathering"))):
                # Real time for threads to work, wound time for backoffs and timers to pass.
                await asyncio.sleep(0.002)
                self.advance(STEP)


async def test_a_canary_is_taken_away_while_nobody_answers_for_the_share(
    tmp_path: Path, world: fakes.World
) -> None:
    async with baking(tmp_path, world) as (engine, wall):
        world.away = True

        await engine.submit(NAME, messages.Abort("rita", "odd archives"), command_id("abort"))
        await wall.until(engine, lambda state: state.deployed == Versions("1.0.1"))

        assert world.versions == Versions("1.0.1")
        assert world.share.share == samples.STEPS[0].share
        world.away = False
        await wall.until(engine, lambda state: state.phase is Phase.IDLE)
        assert world.share.share == NOBODY


async def test_the_share_goes_to_nobody_while_stable_cannot_be_deployed(
    tmp_path: Path, world: fakes.World
) -> None:
    async with baking(tmp_path, world) as (engine, wall):
        world.away, world.starting = True, True

        await engine.submit(NAME, messages.Abort("rita", "odd archives"), command_id("abort"))
        await wall.until(engine, lambda state: bool(state.trouble))
        world.away = False
        await wall.until(engine, lambda state: state.share == NOBODY)

        assert world.share.share == NOBODY
        assert world.versions == Versions("1.0.1", "1.0.2")
        world.starting = False
        await wall.until(engine, lambda state: state.phase is Phase.IDLE)
        assert world.versions == Versions("1.0.1")
