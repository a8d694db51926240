"""A rollout as a step of a plan: have the version applied where it runs, then wait for its end.

             StartStep          Applied: Follow to the rollout         ReportVersion
NotStarted ───────────► applying ─────────────────────────────► following ──────────► Ended
                            └──── NotApplied, Cancel ─────────────────────────────────┘

A step may stop the workload instead. Where the platform keeps files, there is nothing to apply
then, and it follows at once; where an object says how much runs, that is applied first.

Only the platform reads the file that the step names: it says which program a version is. Another
machine has no such file, so the step brings the content itself: names of images, and no secret.
The rollout hears of a version once the platform can make it, now and whenever it is brought back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from fairlead import errors
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.engine import machine
from fairlead.engine.children import report
from fairlead.engine.messages import Cancel, Decision, Send, StreamName, Withdraw, stream_name

NAME = "rollout-step"
KIND = "rollout"


@dataclass(frozen=True, slots=True)
class StartStep:
    """Command from a plan: bring what this file describes."""

    key: str
    rollout: str
    file: str
    parent: str = ""
    asleep: bool = False
    """Stop what runs now instead, and keep it so."""

    content: str = ""
    """What the version is, where no file of the platform says it."""


@dataclass(frozen=True, slots=True)
class Applied:
    """Command, the answer to ApplyVersion: the platform can make it, and this is to be asked."""

    request: messages.Request
    rollout: str = ""
    """Its whole name, where only the platform knows it; empty: as the plan said."""


@dataclass(frozen=True, slots=True)
class NotApplied:
    """Command, the answer to ApplyVersion: it cannot, and no second try would mend that."""

    reason: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """Event: a plan wants it."""

    key: str
    rollout: str
    file: str
    parent: str = ""
    asleep: bool = False
    content: str = ""


@dataclass(frozen=True, slots=True)
class VersionApplied:
    """Event: the rollout is asked for it."""

    version: str
    rollout: str = ""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Event: nobody waits for the version any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    """Event: it is over."""

    succeeded: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ApplyVersion:
    """Effect: keep what the file describes where it runs, and say what to ask its rollout for."""

    rollout: str
    file: str
    by: str = ""
    content: str = ""
    asleep: bool = False
    """Nothing is to run, and how much did is kept for the next version."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """State: nobody asked yet."""


@dataclass(frozen=True, slots=True)
class Underway:
    """State: applied, or about to be."""

    key: str
    rollout: str
    parent: str
    following: bool = False
    cancelled: bool = False
    asleep: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """State: over."""

    succeeded: bool
    reason: str
    key: str = ""
    """Of one that ended before its version was applied: should that be done late, it is undone."""


State = NotStarted | Underway | Ended
Command = StartStep | Applied | NotApplied | coordination.ReportVersion | Cancel
Event = StepStarted | VersionApplied | CancelAsked | StepEnded


def decide(state: State, command: Command, _now: datetime) -> Decision:  # noqa: PLR0911 - the table
    match state, command:
        case NotStarted(), StartStep(key, rollout, file, parent, asleep, content):
            started = StepStarted(key, rollout, file, parent, asleep, content)
            if asleep and not content:
                sleep = messages.FallAsleep(stream(key))
                return Decision((started,), sends=(_to(rollout, sleep),))
            apply = ApplyVersion(rollout, file, parent, content, asleep)
            return Decision((started,), (apply,))
        case Underway(following=False, asleep=asleep), Applied(request, rollout):
            follower = stream(state.key)
            ask = messages.FallAsleep(follower) if asleep else messages.Follow(request, follower)
            applied = VersionApplied(str(request.version), rollout)
            return Decision((applied,), sends=(_to(rollout or state.rollout, ask),))
        case Underway(following=False), NotApplied(reason):
            return _end(state, reason, succeeded=False)
        case Underway(following=True), coordination.ReportVersion(succeeded, reason):
            return _end(state, reason, succeeded=succeeded)
        case Underway(following=False), Cancel(reason):
            # A platform that is away would else bring, hours later, what nobody wants any more.
            unwanted = (Withdraw(ApplyVersion),)
            return replace(_end(state, f"cancelled: {reason}", succeeded=False), withdraws=unwanted)
        case Ended(key=key), Applied(request, rollout) if key and rollout:
            # It was under way by then: what now stands there is asked for, and given up at once.
            late = (
                messages.Follow(request, stream(key)),
                messages.Abandon(stream(key), "its plan had ended"),
            )
            sends = tuple(_to(rollout, each) for each in late)
            return Decision((VersionApplied(str(request.version), rollout),), sends=sends)
        case Underway(cancelled=False), Cancel(reason):
            give_up = messages.Abandon(stream(state.key), reason)
            send = _to(state.rollout, give_up)
            return Decision((CancelAsked(reason),), sends=(send,))
        case (
            (NotStarted() | Underway() | Ended()),
            (StartStep() | Applied() | NotApplied() | coordination.ReportVersion() | Cancel()),
        ):
            # Late, doubled, or an answer to what is over.
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case StepStarted(key, rollout, _, parent, asleep, content):
            return Underway(key, rollout, parent, asleep and not content, asleep=asleep)
        case StepEnded(succeeded, reason):
            assert isinstance(state, Underway)
            applying = not (state.following or state.asleep)
            return Ended(succeeded, reason, state.key if applying else "")
        case VersionApplied() if isinstance(state, Ended):
            return replace(state, key="")
        case VersionApplied(_, rollout):
            assert isinstance(state, Underway)
            return replace(state, following=True, rollout=rollout or state.rollout)
        case CancelAsked():
            assert isinstance(state, Underway)
            return replace(state, cancelled=True)
        case unreachable:
            assert_never(unreachable)


def start(parent: StreamName, key: str, words: Mapping[str, object]) -> Send:
    """How a plan begins it. Without `queue` it runs where the plan does."""
    for name in ("rollout", "file"):
        if not isinstance(words.get(name), str):
            raise errors.Rejected(
                f"a step that is a rollout needs: {name}", hint="name its rollout and its file"
            )
    rollout, file = str(words["rollout"]), str(words["file"])
    asleep, content = words.get("asleep") is True, str(words.get("content", ""))
    command = StartStep(key, rollout, file, parent, asleep, content)
    queue = words.get("queue")
    return Send(stream(key), command, queue=queue if isinstance(queue, str) else None)


def stream(key: str) -> StreamName:
    return stream_name(NAME, key)


def _to(rollout: str, command: messages.Command) -> Send:
    return Send(coordination.rollout_stream(rollout), command)


def _end(state: Underway, reason: str, *, succeeded: bool) -> Decision:
    told = report(state.parent, stream(state.key), succeeded=succeeded, reason=reason)
    return Decision((StepEnded(succeeded, reason),), sends=told)


PLAN_STEP: machine.Machine[State, Command, Event] = machine.Machine(
    name=NAME,
    initial=NotStarted(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Ended),
    # No verb: which file is a version is a plan's word, not that of whoever has a token.
    vocabulary=machine.Vocabulary(State, Command, Event, ApplyVersion),
)
