"""A rollout on the real engine, cut before and after every commit: it always ends the same."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.domain.analysis import conditions
from fairlead.domain.rollouts import bonds, effects, memory, messages, states
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts.group import GROUP
from fairlead.domain.rollouts.limiter import LIMITER
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.sight import Pods, Shown
from fairlead.domain.rollouts.spec import Check, Limiter, Spec
from fairlead.domain.rollouts.strategy import Strategy
from fairlead.engine import clock, library, service
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.unit.domain.rollouts.world import version

STREAM = bonds.rollout_stream("shop")
SPEC = Spec(
    # One step keeps the story short: the cuts grow with its commits, and each is played anew.
    Strategy(step_weight=100),
    (Check("errors", success="result < 1"),),
    limiter=Limiter("shop", 1),
)


class Ground:
    """A platform, a router and metrics that outlive the control plane, as real ones do."""

    def __init__(self, errors: dict[str, float]) -> None:
        self.errors = errors
        self.slots: dict[Slot, messages.EnsureVersion | None] = dict.fromkeys(Slot)
        self.orders: dict[object, int] = {}
        self.set: messages.SetRoute | None = None
        self.shares: list[int] = []

    def newest(self, part: object, order: int) -> bool:
        newest = order >= self.orders.get(part, 0)
        self.orders[part] = max(order, self.orders.get(part, 0))
        return newest

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        if self.newest(wanted.slot, wanted.order):
            self.slots[wanted.slot] = wanted

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        if self.newest(Slot.CANARY, wanted.order):
            assert self.set is not None
            assert self.set.route.share == 0
            self.slots[Slot.CANARY] = None

    async def let_go(self, gone: messages.LetGo) -> None:
        raise AssertionError(gone)

    give_back = let_go

    async def pods(self, name: str) -> tuple[Pods | None, Pods | None]:
        primary, canary = (self._pods(slot) for slot in Slot)
        return primary, canary

    def _pods(self, slot: Slot) -> Pods | None:
        held = self.slots[slot]
        if held is None:
            return None
        count = max(held.replicas or 0, held.at_least)
        return Pods(held.version.revision, count, count, count, self.orders[slot])

    async def route(self, wanted: messages.SetRoute) -> None:
        if not self.newest("route", wanted.order):
            return
        assert self.slots[Slot.CANARY] or not wanted.route.reaches_canary
        self.set = wanted
        self.shares.append(wanted.route.share)

    async def shown(self, name: str) -> Shown | None:
        return Shown(self.set.order, self.set.route.share) if self.set else None

    async def ask(self, check: Check, about: messages.Measure) -> conditions.Answer:
        return conditions.Answered(self.errors.get(about.canary.revision, 0.0))

    async def compare(self, check: Check, about: messages.Measure) -> Any:
        raise AssertionError(check)

    async def is_open(self, check: Check, about: messages.Measure) -> tuple[bool, str]:
        raise AssertionError(check)

    async def notify(self, news: messages.Notify) -> None: ...

    async def publish(self, status: messages.PublishStatus) -> None: ...

    async def reset_override(self, name: str) -> None:
        raise AssertionError(name)


@dataclasses.dataclass
class Story:
    """Version 1 goes live, version 2 follows; each cut has a store and a ground of its own."""

    folder: Path
    errors: dict[str, float]
    ground: Ground = dataclasses.field(init=False)
    count: Any = dataclasses.field(default_factory=itertools.count)

    def fresh_store(self) -> protocol.Store:
        self.ground = Ground(self.errors)
        return sqlite.SqliteStore(self.folder / f"{next(self.count)}.db")

    def build(self, store: protocol.Store, wall: clock.Clock) -> service.Engine:
        ground = self.ground
        world = effects.World(ground, ground, ground, ground, ground, wall.now)
        machines = (ROLLOUT, LIMITER, GROUP)
        return service.Engine(service.Parts(store, machines, effects.handlers(world), wall=wall))

    async def act(self, engine: service.Engine) -> None:
        await self.want(engine, "v1")

    async def settled(self, engine: service.Engine) -> bool:
        """Version 2 is wanted once version 1 is live; then a run has to end."""
        state = await self.state(engine)
        if not isinstance(state, states.Idle):
            return False
        if state.book.wanted.revision == "v1":
            await self.want(engine, "v2")
            return False
        return state.book.outcome is not None

    async def want(self, engine: service.Engine, name: str) -> None:
        want = messages.Want("shop", SPEC, version(name), 2)
        await engine.submit(STREAM, want, command_id(f"want {name}"))

    async def state(self, engine: service.Engine) -> Any:
        seen = await engine.read(lambda session: library.stream(session, STREAM))
        return msgspec.convert(seen.data, memory.STATES[seen.state])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("errors", "ending", "stable"),
    [({}, told.Ending.PROMOTED, "v2"), ({"v2": 7.0}, told.Ending.TAKEN_BACK, "v1")],
)
async def test_a_rollout_cut_at_any_commit_ends_the_same(
    tmp_path: Path, errors: dict[str, float], ending: told.Ending, stable: str
) -> None:
    story = Story(tmp_path, errors)

    async def check(engine: service.Engine) -> None:
        book = (await story.state(engine)).book
        assert (book.outcome.ending, book.stable.revision) == (ending, stable)
        assert story.ground.shares[-1] == 0
        assert story.ground.slots[Slot.CANARY] is None
        primary = story.ground.slots[Slot.PRIMARY]
        assert primary is not None
        assert primary.version.revision == stable

    play = Play(story.fresh_store, story.build, story.act, story.settled)
    cuts = await crash_at_every_commit(play, check)

    assert cuts > 10
