"""A release at every point of its life, reached by what really leads there."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlead.analysis.conditions import Phase as Verdict
from fairlead.areas.content.domain.population import Share
from fairlead.areas.content.domain.release import messages
from fairlead.areas.content.domain.release.events import Event
from fairlead.areas.content.domain.release.machine import RELEASE
from fairlead.areas.content.domain.release.place import LocalService, Place
from fairlead.areas.content.domain.release.plan import Plan, Step
from fairlead.areas.content.domain.release.state import Release
from fairlead.checks.spec import Check, Finding
from fairlead.engine.messages import Decision
from fairlead.engine.testing import START

HOUR = dt.timedelta(hours=1)
BAKE = 2 * HOUR
CHECK = Check("archives", "sum(archives)", low=0.9)
PLACE = Place({"name": "gathering"}, local=LocalService(8000))
STEPS = (Step(Share(1000), BAKE), Step(Share(5000), BAKE))
PLAN = Plan(STEPS, checks=(CHECK,))
BY_HAND = Plan(tuple(replace(each, approve=True) for each in STEPS))
PROPOSE = messages.Propose("gathering", "1.0.2", PLAN, PLACE, "rita", "new rules", stable="1.0.1")
NEWER = replace(PROPOSE, version="1.0.3", why="newer rules", stable="")
EMERGENCY = replace(NEWER, emergency=True, why="an outage")
APPROVE = messages.Approve("paul")
GOOD = Finding("archives", Verdict.SUCCESSFUL, "0.98, at least 0.9")
BAD = Finding("archives", Verdict.FAILED, "0.4, at least 0.9")


class Story:
    """A release that is told one thing after the other, on a clock that it winds."""

    def __init__(self, state: Release | None = None, now: dt.datetime = START) -> None:
        self.state, self.now = state or RELEASE.initial, now
        self.events: list[Event] = []
        self.effects: list[Any] = []
        self.last = Decision()

    def tell(self, *commands: Any) -> "Story":
        for each in commands:
            command = self._reviewed(each)
            self.last = RELEASE.decide(self.state, command, self.now)
            # The engine keeps nothing of a decision without an event.
            assert self.last.events or not self.last.effects + self.last.timers
            for event in self.last.events:
                self.state = RELEASE.evolve(self.state, event)  # type: ignore[arg-type]  # of this machine
                self.events.append(event)  # type: ignore[arg-type]  # of this machine
            self.effects += self.last.effects
        return self

    def _reviewed(self, command: Any) -> Any:
        """Whoever approves has read what is proposed, unless a test names another revision."""
        if command == APPROVE and self.state.proposal is not None:
            return replace(APPROVE, revision=self.state.proposal.revision)
        return command

    def shared(self) -> "Story":
        return self.tell(messages.ShareConfirmed(self.state.order))

    def emptied(self) -> "Story":
        """Nobody is in the share, and every instance has heard of it."""
        self.shared()
        self.now += PLACE.share_delay
        return self.late(messages.Timer.EMPTY)

    def ready(self) -> "Story":
        return self.tell(messages.DeploymentReady(self.state.order))

    def failed(self, reason: str) -> "Story":
        return self.tell(messages.DeploymentFailed(self.state.order, reason))

    def late(self, timer: messages.Timer) -> "Story":
        return self.tell(messages.Wake(timer, self.state.order))

    def judged(self, finding: Finding = GOOD) -> "Story":
        assert self.state.round is not None
        return self.tell(messages.Judged(self.state.round.ticket, (finding,)))

    def after(self, span: dt.timedelta) -> "Story":
        """Time passes, and the timer of the bake is due."""
        self.now += span
        return self.tell(messages.Wake(messages.Timer.BAKE, self.state.order))

    @property
    def names(self) -> list[str]:
        return [type(each).__name__ for each in self.events]


def proposed(first: messages.Propose = PROPOSE) -> Story:
    return Story().tell(first)


def approval(first: messages.Propose) -> messages.Approve:
    """By somebody who read this proposal."""
    proposal = proposed(first).state.proposal
    assert proposal is not None
    return replace(APPROVE, revision=proposal.revision)


def deploying(first: messages.Propose = PROPOSE) -> Story:
    return proposed(first).tell(APPROVE).emptied()


def emptying() -> Story:
    """Nobody is in the share, but instances may not know yet."""
    story = baking().tell(NEWER, APPROVE).shared()
    story.now += PLACE.share_delay
    return story


def baking(first: messages.Propose = PROPOSE) -> Story:
    return deploying(first).ready().shared()


def awaiting() -> Story:
    """After the first step of a plan that people lead."""
    return baking(replace(PROPOSE, plan=BY_HAND)).after(BAKE)


def promoting() -> Story:
    return baking().judged().after(BAKE).shared().judged().after(BAKE)


def aborted() -> Story:
    return baking().tell(messages.Abort("rita", "odd archives"))


def restoring() -> Story:
    return deploying().failed("version not found: 1.0.2")


def states() -> dict[str, Story]:
    return {
        "new": Story(),
        "proposed": proposed(),
        "clearing": proposed().tell(APPROVE),
        "emptying": emptying(),
        "deploying": deploying(),
        "raising": deploying().ready(),
        "baking": baking(),
        "paused": baking().tell(messages.Pause("rita", "lunch")),
        "awaiting": awaiting(),
        "promoting": promoting(),
        "settling": promoting().ready(),
        "promoted": promoting().ready().shared(),
        "reverting": aborted(),
        "reverted": aborted().shared().ready(),
        "restoring": restoring(),
        "restored": restoring().shared().ready(),
        "proposed again": baking().tell(NEWER),
        "emergency proposed": baking().tell(EMERGENCY),
    }


def commands(state: Release) -> dict[str, Any]:
    """One of each that a release can be told, with the order that it waits for."""
    order, ticket = state.order, state.round.ticket if state.round else 0
    return {
        "propose": replace(NEWER, version="1.0.4", stable="1.0.1" if not state.stable else ""),
        "emergency": replace(EMERGENCY, version="1.0.4"),
        "approve": APPROVE,
        "reject": messages.Reject("paul", "no"),
        "advance": messages.Advance("rita"),
        "promote": messages.Promote("paul"),
        "pause": messages.Pause("rita"),
        "resume": messages.Resume("rita"),
        "abort": messages.Abort("rita", "odd"),
        "shared": messages.ShareConfirmed(order),
        "share late": messages.ShareConfirmed(order - 1),
        "ready": messages.DeploymentReady(order),
        "failed": messages.DeploymentFailed(order, "no"),
        "ready late": messages.DeploymentReady(order - 1),
        "good": messages.Judged(ticket, (GOOD,)),
        "bad": messages.Judged(ticket, (BAD,)),
        "judged late": messages.Judged(ticket - 1, (BAD,)),
        "wake share": messages.Wake(messages.Timer.SHARE, order),
        "wake empty": messages.Wake(messages.Timer.EMPTY, order),
        "wake deployment": messages.Wake(messages.Timer.DEPLOYMENT, order),
        "wake bake": messages.Wake(messages.Timer.BAKE, order),
        "wake check": messages.Wake(messages.Timer.CHECK, order),
        "wake late": messages.Wake(messages.Timer.DEPLOYMENT, order - 1),
    }


PEOPLE: Sequence[str] = ("approve", "reject", "advance", "promote", "pause", "resume", "abort")
