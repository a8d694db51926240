"""Whatever people ask and however the cloud fails: no request overlaps another, none is lost."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import errors
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.state import Phase
from tests.unit.areas.resources.domain.reconcile.cloud import DECLARED, DOWN, Cloud, changed
from tests.unit.areas.resources.domain.reconcile.samples import Story

SPECS = (DECLARED, changed(), changed(tag2="b"), changed(tag1="value", tag2="c"))
ACTIONS = (
    *("perform", "perform", "perform", "perform", "lost", "fail", "time", "time", "time"),
    *("stale", "drift", "slow", "fast", "work", "refresh", "spec 0", "spec 1", "spec 2", "spec 3"),
    "remove",
)


@dataclass
class World:
    """A resource and its cloud."""

    story: Story = field(default_factory=Story)
    cloud: Cloud = field(default_factory=Cloud)
    pending: list[Any] = field(default_factory=list)
    planned: set[str] = field(default_factory=set)

    def tell(self, command: Any) -> None:
        try:
            self.story.tell(command)
        except errors.Conflict:
            return
        gone = {each.effect for each in self.story.last.withdraws}
        self.pending = [each for each in self.pending if type(each) not in gone]
        self.pending += self.story.last.effects
        self.planned |= {
            each.digest for each in self.story.last.effects if isinstance(each, messages.Write)
        }

    def act(self, action: str) -> None:
        match action.split():
            case ["perform" | "lost" | "fail" as how]:
                if self.pending:
                    self.perform(how)
            case ["time"]:
                timer = self.story.timer
                if timer is not None:
                    self.story.timer = None
                    self.story.now = max(self.story.now, timer.due)
                    self.tell(timer.command)
            case ["refresh"]:
                self.tell(messages.Refresh())
            case ["remove"]:
                self.tell(messages.Remove())
            case ["spec", number]:
                self.tell(messages.Apply(SPECS[int(number)]))
            case _:
                self.happen(action)

    def happen(self, action: str) -> None:
        """In the cloud, without us."""
        cloud = self.cloud
        match action.split():
            case ["stale"]:
                cloud.stale = 1
            case ["drift"]:
                if cloud.body is not None and not cloud.running:
                    cloud.change({**cloud.body, "tags": {"theirs": "1"}})
            case ["slow" | "fast"]:
                cloud.asynchronous = action == "slow"
            case ["work"]:
                cloud.work()

    def perform(self, how: str) -> None:
        effect = self.pending.pop(0)
        if how == "fail":
            self.tell(messages.Failed(effect.order, DOWN))
            return
        answer = self.cloud.perform(effect)
        if how == "lost":
            # Killed before the answer was recorded: it is performed again.
            self.pending.insert(0, effect)
        else:
            self.tell(answer)

    def check(self) -> None:
        kinds = [type(each) for each in self.pending]
        assert kinds.count(messages.Write) + kinds.count(messages.Delete) <= 1
        assert {*self.cloud.writes} <= self.planned
        if self.story.state.phase is Phase.READY:
            assert not self.pending
        if self.story.state.phase is Phase.OPERATING:
            assert messages.Write not in kinds

    def rest(self) -> None:
        for _ in range(80):
            if self.story.state.phase is Phase.READY:
                break
            self.act("perform" if self.pending else "time")
            self.cloud.work()
            self.check()


@pytest.mark.requirement("resources R20", "resources R26", "resources R29")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=60))
def test_from_everywhere_a_resource_comes_to_what_was_declared_last(actions: list[str]) -> None:
    world = World()
    world.tell(messages.Apply(DECLARED))
    for action in actions:
        world.act(action)
        world.check()

    world.cloud.stale = 0
    world.rest()
    removed = world.story.state.phase is Phase.GONE
    if removed:
        assert world.cloud.body is None or not world.story.state.ours
        return
    world.act("refresh")
    world.rest()

    declared = world.story.state.declared
    assert declared is not None
    assert world.cloud.body is not None
    wanted = declared.properties["tags"]
    shown = world.cloud.body["tags"].items()
    # Also a key whose write was never heard of again is removed when its owner drops it.
    assert {each for each in shown if each[0] != "theirs"} == wanted.items()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(("perform", "lost", "lost", "fail", "stale", "time", "work"))))
def test_lost_answers_and_stale_reads_never_make_two(actions: list[str]) -> None:
    world = World()
    world.tell(messages.Apply(DECLARED))

    for action in actions:
        world.act(action)
    world.rest()

    assert world.cloud.made == 1
    assert world.story.state.phase is Phase.READY
    # What comes to rest asks for nothing more.
    before = list(world.cloud.writes)
    for _ in range(10):
        world.act("perform" if world.pending else "time")
    assert world.cloud.writes == before


@pytest.mark.requirement("resources R26")
def test_without_faults_there_is_one_write_for_each_change() -> None:
    world = World()
    for number in range(4):
        world.act(f"spec {number}")
        world.rest()

    assert len(world.cloud.writes) == 4
