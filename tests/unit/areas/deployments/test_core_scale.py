"""Many stacks at once: each runs its deployments in order, one at a time."""

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.spec import DeploymentSpec, Flag
from fairlead.engine import service, visibility
from fairlead.engine.clock import SystemClock
from fairlead.engine.messages import command_id, stream_name
from tests.unit.areas.deployments.domain.samples import BARE, flagged
from tests.unit.areas.deployments.recorded import RecordedPlatform
from tests.unit.areas.deployments.test_core import built

STACKS, EACH = 1_000, 10


def spec(app: str) -> DeploymentSpec:
    return replace(flagged(Flag.QUICK, spec=BARE), app=app)


async def request_all(engine: service.Engine, stacks: int, each: int) -> None:
    """In rounds, so that every stack has its queue while others are served."""
    for n in range(each):
        names = [f"app{number}-{n}" for number in range(stacks)]
        asked = [messages.Request(name, spec(name.partition("-")[0])) for name in names]
        await asyncio.gather(
            *(
                engine.submit(
                    stream_name("deployment", request.deployment),
                    request,
                    command_id(request.deployment),
                )
                for request in asked
            )
        )


async def all_done(engine: service.Engine, stacks: int) -> None:
    with engine.watch() as signal:
        while await at_rest(engine, stacks) < stacks:
            await signal.wait()
            signal.clear()


async def at_rest(engine: service.Engine, stacks: int) -> int:
    """How many stacks have nothing more to do."""
    which = visibility.StreamFilter("stack", limit=stacks)
    found = await engine.read(lambda session: visibility.streams(session, which))
    return sum(view.data["status"] == "AVAILABLE" for view in found)


@pytest.mark.slow
@pytest.mark.requirement("deployer S6", "deployer S8", "deployer S11")
async def test_every_stack_runs_in_order_and_never_two_at_once(sqlite_home: Any) -> None:
    platform = RecordedPlatform(exists=True, slow=False)
    async with built(sqlite_home.store(), SystemClock(), platform).running() as engine:
        await request_all(engine, STACKS, EACH)
        await all_done(engine, STACKS)
        told = await engine.read(lambda session: turns(session, STACKS))

    for number, taken in told.items():
        expected = [f"app{number}-{n}" for n in range(EACH)]
        # A start is always followed by its own end: nobody else had a turn in between.
        assert taken == [name for name in expected for _ in range(2)]


def turns(session: Any, stacks: int) -> dict[int, list[str]]:
    """Who started and who ended, in the order in which each stack told it."""
    found: dict[int, list[str]] = defaultdict(list)
    for number in range(stacks):
        stream = stream_name("stack", f"prod/app{number}")
        running = ""
        for event in visibility.events(session, stream, limit=1000):
            starts = event.type == "DeploymentStarted"
            if starts or (event.type == "Triggered" and not running):
                running = event.data["deployment"]
                found[number].append(running)
            elif event.type == "DeploymentCompleted":
                found[number].append(event.data["deployment"])
                running = ""
    return dict(found)
