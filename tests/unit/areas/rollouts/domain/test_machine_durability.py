"""A rollout on the real engine, cut before and after every commit: it always ends the same."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.areas.rollouts import handlers
from fairlead.areas.rollouts.domain import (
    coordination,
    events,
    messages,
    plan_step,
    states,
    status_codec,
)
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.plan.spec import Limiter, Spec
from fairlead.areas.rollouts.domain.plan.strategy import Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.checks.spec import Check
from fairlead.engine import clock, outbox, service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.fakes.checks import registry
from tests.fakes.rollouts import FakePlatform
from tests.unit.areas.rollouts.domain.world import version

STREAM = coordination.rollout_stream("shop")
STEP = plan_step.stream("d1")
SPEC = Spec(
    # One step keeps the story short: the cuts grow with its commits, and each is played anew.
    Strategy(step_weight=100),
    (Check("errors", success="result < 1"),),
    limiter=Limiter("shop", 1),
)


@dataclasses.dataclass
class Story:
    """Version 1 goes live, version 2 follows as a step of a plan.

    Each cut has a store and a ground of its own.
    """

    folder: Path
    errors: dict[str, float]
    platform: FakePlatform = dataclasses.field(init=False)
    count: Any = dataclasses.field(default_factory=itertools.count)

    def fresh_store(self) -> protocol.Store:
        self.platform = FakePlatform(self.errors)
        return sqlite.SqliteStore(self.folder / f"{next(self.count)}.db")

    def build(self, store: protocol.Store, wall: clock.Clock) -> service.Engine:
        platform = self.platform
        world = handlers.RolloutPorts(platform, platform, platform, registry(platform), wall.now)
        machines = (ROLLOUT, LIMITER, GROUP, plan_step.PLAN_STEP)
        performed = {**handlers.handlers(world), plan_step.ApplyVersion: outbox.Handler(applied)}
        return service.Engine(service.Parts(store, machines, performed, wall=wall))

    async def act(self, engine: service.Engine) -> None:
        await self.want(engine, "v1")

    async def settled(self, engine: service.Engine) -> bool:
        """Version 2 is wanted once version 1 is live; then a run has to end."""
        state = await self.state(engine)
        if not isinstance(state, states.Idle):
            return False
        if state.rollout.desired.revision == "v1":
            step = plan_step.StartStep("d1", "shop", "v2")
            await engine.submit(STEP, step, command_id("step"))
            return False
        return state.rollout.outcome is not None

    async def want(self, engine: service.Engine, name: str) -> None:
        want = messages.Request("shop", SPEC, version(name), 2)
        await engine.submit(STREAM, want, command_id(f"want {name}"))

    async def state(self, engine: service.Engine) -> Any:
        seen = await engine.read(lambda session: visibility.stream(session, STREAM))
        return msgspec.convert(seen.data, status_codec.STATES[seen.state])


async def applied(effect: plan_step.ApplyVersion, _: outbox.EffectContext) -> plan_step.Applied:
    return plan_step.Applied(messages.Request("shop", SPEC, version(effect.file), 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("errors", "ending", "stable"),
    [({}, events.Ending.PROMOTED, "v2"), ({"v2": 7.0}, events.Ending.ROLLED_BACK, "v1")],
)
async def test_a_rollout_cut_at_any_commit_ends_the_same(
    tmp_path: Path, errors: dict[str, float], ending: events.Ending, stable: str
) -> None:
    story = Story(tmp_path, errors)

    async def check(engine: service.Engine) -> None:
        rollout = (await story.state(engine)).rollout
        assert (rollout.outcome.ending, rollout.stable.revision) == (ending, stable)
        assert story.platform.weights[-1] == 0
        assert story.platform.slots[Slot.CANARY] is None
        primary = story.platform.slots[Slot.PRIMARY]
        assert primary is not None
        assert primary.version.revision == stable
        step = await engine.read(lambda session: visibility.stream(session, STEP))
        assert (step.state, step.data["succeeded"]) == ("Ended", stable == "v2")

    play = Play(story.fresh_store, story.build, story.act, story.settled)
    cuts = await crash_at_every_commit(play, check)

    assert cuts > 10
