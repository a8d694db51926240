"""Whatever people ask and however the world fails, nobody sees what the sequence does not allow.

The world here has instances, of which two sorts run beside each other while one replaces the
other, and a share. Effects are performed one at a time in their order, as the engine does.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import errors
from fairlead.areas.content.domain.population import NOBODY
from fairlead.areas.content.domain.release import events, messages
from fairlead.areas.content.domain.release.place import NO_VERSION, Versions
from fairlead.areas.content.domain.release.state import Phase, Release
from fairlead.engine.messages import SetTimer
from tests.unit.areas.content.domain.release import samples

ACTIONS = (
    *("perform", "perform", "perform", "perform", "slow", "lost", "fail", "time", "time", "bad"),
    *("propose", "emergency", "approve", "reject", "promote", "advance", "pause", "resume"),
    "abort",
)


@dataclass
class World:
    """What runs, and who is in the share."""

    story: samples.Story = field(default_factory=samples.Story)
    running: set[Versions] = field(default_factory=lambda: {Versions("1.0.1")})
    share: int = 0
    approved: set[str] = field(default_factory=lambda: {"1.0.1"})
    pending: list[Any] = field(default_factory=list)
    timers: dict[str, SetTimer] = field(default_factory=dict)
    versions: int = 2

    def tell(self, command: Any) -> None:
        before = len(self.story.events)
        try:
            self.story.tell(command)
        except errors.FairleadError:
            return
        last = self.story.last
        gone = {each.effect for each in last.withdraws}
        self.pending = [each for each in self.pending if type(each) not in gone]
        self.pending += last.effects
        for timer in last.timers:
            self.timers.pop(timer.name, None)
            if isinstance(timer, SetTimer):
                self.timers[timer.name] = timer
        for event in self.story.events[before:]:
            if isinstance(event, events.Approved):
                self.approved.add(event.version)

    def act(self, action: str) -> None:
        match action:
            case "perform" | "slow" | "lost" | "fail" | "bad":
                if self.pending:
                    self.perform(self.pending.pop(0), action)
            case "time":
                if self.timers:
                    next_ = min(self.timers.values(), key=lambda timer: timer.due)
                    del self.timers[next_.name]
                    self.story.now = max(self.story.now, next_.due)
                    self.tell(next_.command)
            case "propose" | "emergency":
                self.versions += 1
                asked = samples.EMERGENCY if action == "emergency" else samples.NEWER
                stable = "" if self.story.state.stable else "1.0.1"
                self.tell(replace(asked, version=f"1.0.{self.versions}", stable=stable))
            case _:
                self.tell(samples.commands(self.story.state)[action])

    def perform(self, effect: messages.Effect, how: str) -> None:
        match effect:
            case messages.SetShare(_, order, _, _, share, canary):
                if how != "fail":
                    if share > NOBODY:
                        (only,) = self.running
                        assert only.canary != NO_VERSION
                        # An instance that still has another canary must not take it for its own.
                        assert canary == only.canary
                    self.share = share
                self.settle(effect, messages.ShareConfirmed(order), how in {"perform", "bad"})
            case messages.Deploy(_, order, _, versions):
                self.deploy(effect, order, versions, how)
            case messages.Measure(_, ticket):
                found = samples.BAD if how == "bad" else samples.GOOD
                self.tell(messages.Judged(ticket, (found,)))

    def deploy(self, effect: messages.Deploy, order: int, versions: Versions, how: str) -> None:
        if versions.canary != NO_VERSION:
            assert self.share == NOBODY
        if how in {"fail", "bad"}:
            self.tell(messages.DeploymentFailed(order, "no"))
        elif how in {"slow", "lost"}:
            self.running.add(versions)
            self.pending.insert(0, effect)
        else:
            self.running = {versions}
            self.tell(messages.DeploymentReady(order))

    def settle(self, effect: messages.Effect, answer: object, done: bool) -> None:  # noqa: FBT001 - of this test
        """What was not answered is performed again, before anything else."""
        if done:
            self.tell(answer)
        else:
            self.pending.insert(0, effect)

    def check(self) -> None:
        state = self.story.state
        for each in self.running:
            assert each.stable in self.approved
            assert each.canary in {*self.approved, NO_VERSION}
        if self.share > NOBODY and _has_canary(state) and state.run is not None:
            canaries = {each.canary for each in self.running} - {NO_VERSION}
            assert canaries <= {state.run.proposal.version} | _superseded(state)
        if state.phase in {Phase.SETTLING, Phase.IDLE} and state.stable:
            assert self.running == {Versions(state.stable)}
        if state.phase is Phase.IDLE:
            assert self.share == NOBODY


def _has_canary(state: Release) -> bool:
    """Whether any instance may have a canary."""
    known = (state.deployed, state.wanted)
    return any(each is not None and each.canary != NO_VERSION for each in known)


def _superseded(state: Release) -> set[str]:
    """An emergency release ends a canary by its deployment; until then it is seen."""
    return {state.outcome.version} if state.outcome else set()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(ACTIONS), min_size=10, max_size=80))
def test_no_order_of_requests_and_faults_shows_anybody_a_version_out_of_turn(
    actions: list[str],
) -> None:
    world = World()
    world.tell(samples.PROPOSE)
    world.tell(samples.APPROVE)

    for action in actions:
        world.act(action)
        world.check()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(ACTIONS), max_size=40))
def test_from_everywhere_a_release_comes_to_rest_with_nobody_in_the_share(
    actions: list[str],
) -> None:
    world = World()
    world.tell(samples.PROPOSE)
    world.tell(samples.APPROVE)
    for action in actions:
        world.act(action)

    world.act("resume")
    for _ in range(60):
        world.act("perform" if world.pending else "time")

    world.check()
    assert world.story.state.phase is Phase.IDLE
    assert world.share == NOBODY
