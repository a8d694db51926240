"""What a release decides, gathered event by event, so that each part sees what came before."""

import datetime as dt
from dataclasses import dataclass, field

from fairlead.areas.content.domain.population import NOBODY, Share
from fairlead.areas.content.domain.release import events as happened
from fairlead.areas.content.domain.release import messages
from fairlead.areas.content.domain.release.events import Event, Proposal
from fairlead.areas.content.domain.release.messages import Timer
from fairlead.areas.content.domain.release.place import Place, Versions
from fairlead.areas.content.domain.release.state import Release, Run, evolve
from fairlead.engine.children import report
from fairlead.engine.messages import (
    CancelTimer,
    Decision,
    Send,
    SetTimer,
    StreamName,
    Withdraw,
    stream_name,
)

MACHINE = "release"
FAIRLEAD = "fairlead"
"""Who acts where no person does."""

TRY_AGAIN = dt.timedelta(seconds=30)
"""After a way back that failed: nothing is better than to try it again."""

SHARE_PATIENCE = dt.timedelta(seconds=30)
"""After which it is told that the share is not set yet."""


def stream(name: str) -> StreamName:
    return stream_name(MACHINE, name)


@dataclass(slots=True)
class Draft:
    """One decision in the making."""

    state: Release
    now: dt.datetime
    events: list[Event] = field(default_factory=list)
    effects: list[messages.Effect] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    timers: dict[Timer, SetTimer | CancelTimer] = field(default_factory=dict)
    withdraws: list[Withdraw] = field(default_factory=list)

    @property
    def run(self) -> Run:
        assert self.state.run is not None
        return self.state.run

    @property
    def place(self) -> Place:
        assert self.state.place is not None
        return self.state.place

    def record(self, event: Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def stop(self) -> None:
        """What was asked for before is no longer wanted, whatever becomes of it."""
        self.timers |= {each: CancelTimer(each) for each in Timer}
        effects = (messages.SetShare, messages.Deploy, messages.Measure)
        self.withdraws += [Withdraw(each) for each in effects]

    def request_share(
        self, share: Share, why: str, *, step: int | None = None, by: str = FAIRLEAD
    ) -> None:
        self.record(happened.ShareRequested(share, self.state.order + 1, step, by, why))
        self.ask_share()

    def ask_share(self) -> None:
        state = self.state
        canary = state.run.proposal.version if state.run else ""
        asked = messages.SetShare(
            state.name, state.order, self.place, state.salt, state.asked_share, canary
        )
        self.effects.append(asked)
        self.wake(Timer.SHARE, self.now + SHARE_PATIENCE)

    def deploy(self, versions: Versions) -> None:
        until = self.now + self.run.proposal.plan.deadline
        self.record(happened.DeploymentStarted(versions, self.state.order + 1, until))
        self.ask_deployment()

    def ask_deployment(self) -> None:
        state = self.state
        assert state.wanted is not None
        self.effects.append(messages.Deploy(state.name, state.order, self.place, state.wanted))
        assert state.until is not None
        self.wake(Timer.DEPLOYMENT, max(state.until, self.now + TRY_AGAIN))

    def clear(self) -> None:
        """Nobody in the share, and only stable deployed: in turns, as either may hang."""
        state = self.state
        self.record(happened.ShareRequested(NOBODY, state.order + 1, None, state.by, state.why))
        self.ask_share()
        # One order for both, so that the answer to the first is still awaited.
        until = self.now + self.run.proposal.plan.deadline
        versions = Versions(state.stable)
        self.record(happened.DeploymentStarted(versions, self.state.order, until))
        self.ask_deployment()

    def wake(self, timer: Timer, due: dt.datetime) -> None:
        self.timers[timer] = SetTimer(timer, due, messages.Wake(timer, self.state.order))

    def forget(self, timer: Timer) -> None:
        self.timers[timer] = CancelTimer(timer)

    def report(self, proposal: Proposal, reason: str, *, succeeded: bool = False) -> None:
        """Whoever started this from a plan hears of its end."""
        child = stream(self.state.name)
        self.sends += report(proposal.parent, child, succeeded=succeeded, reason=reason)

    def decision(self) -> Decision:
        return Decision(
            tuple(self.events),
            tuple(self.effects),
            tuple(self.sends),
            tuple(self.timers.values()),
            tuple(self.withdraws) if self.events else (),
        )
