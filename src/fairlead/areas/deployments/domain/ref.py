"""A branch or tag of a repository, as pushes tell of it: what is newest starts a trigger.

         TakePush                    TakePush from the head, or with a gap
UNKNOWN ───────────► AT A COMMIT ──────────────────────────────────────────┐
   ▲                  │  ▲  │ TakePush of what was passed: outdated,       │
   └── deleted ───────┘  │  │ of the head: nothing                         │
                         └──┴──────────────────────────────────────────────┘

Hosts deliver more than once and in any order. A push says what the branch was before: one that
leads to where a later push began is older than that, and must not go live after it; where the host
tells the time of a push, so is one of an earlier time. A force-push
back to an old commit begins at the head, and so is as new as any.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from fairlead.areas.deployments.domain.trigger import messages as trigger
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send

_MOST_PASSED = 50


@dataclass(frozen=True, slots=True)
class TakePush:
    """Command: the branch or tag went from one commit to another."""

    ref: str
    before: str
    source: trigger.Source
    """At the new commit; without one, the branch or tag is gone."""

    targets: tuple[trigger.Target, ...]
    cause: str
    by: str
    at: int = 0
    """When, in seconds since 1970, where the host tells."""


@dataclass(frozen=True, slots=True)
class TakeRerun:
    """Command: somebody wants the newest commit deployed again."""

    ref: str
    source: trigger.Source
    targets: tuple[trigger.Target, ...]
    cause: str
    by: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """Event: this commit is the newest, and this trigger deploys it."""

    before: str
    commit: str
    trigger: str
    by: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Rerun:
    """Event: the newest commit is deployed once more."""

    commit: str
    trigger: str
    by: str


@dataclass(frozen=True, slots=True)
class Outdated:
    """Event: a push or a re-run of a commit that was passed; nothing is deployed."""

    commit: str


@dataclass(frozen=True, slots=True)
class RefDeleted:
    """Event: the branch or tag is gone; what runs stays as it is."""

    before: str
    by: str


@dataclass(frozen=True, slots=True)
class Ref:
    """State: where a branch or tag is, and what it passed."""

    head: str = ""
    passed: tuple[str, ...] = ()
    """Where pushes began, the newest last."""

    count: int = 0
    trigger: str = ""
    """The newest."""

    at: int = 0

    note: str = ""
    """Why the last push started nothing."""


Command = TakePush | TakeRerun
Event = Pushed | Rerun | Outdated | RefDeleted


def decide(state: Ref, command: Command, _now: datetime) -> Decision:
    commit, name = command.source.commit, f"{command.ref}:{state.count + 1}"
    match command:
        case TakePush(before=before, by=by) if not commit:
            return Decision((RefDeleted(before, by),)) if state.head else Decision()
        case TakePush() if commit == state.head:
            return Decision()
        case TakePush() if _is_older(state, command):
            return Decision((Outdated(commit),))
        case TakePush(before=before, by=by, at=at):
            pushed = Pushed(before, commit, name, by, at)
            return Decision((pushed,), sends=(_start(name, command),))
        case TakeRerun() if state.head and commit != state.head:
            return Decision((Outdated(commit),))
        case TakeRerun(by=by):
            return Decision((Rerun(commit, name, by),), sends=(_start(name, command),))
        case unreachable:
            assert_never(unreachable)


def evolve(state: Ref, event: Event) -> Ref:
    match event:
        case Pushed(before, commit, name, _, at):
            passed = (*(each for each in state.passed if each != commit), before)[-_MOST_PASSED:]
            return Ref(commit, passed, state.count + 1, name, max(at, state.at))
        case Rerun(commit, name):
            return Ref(commit, state.passed, state.count + 1, name, state.at)
        case Outdated(commit):
            note = f"{commit[:12]} is not the newest commit: nothing is deployed"
            return replace(state, note=note)
        case RefDeleted():
            # What was passed is no older than a branch of that name that comes anew.
            return Ref(count=state.count, at=state.at, note="deleted: nothing is deployed")
        case unreachable:
            assert_never(unreachable)


def _is_older(state: Ref, push: TakePush) -> bool:
    """Than what was taken already: by its time, or as a later push began where it leads to."""
    if 0 < push.at < state.at:
        return True
    return push.before != state.head and push.source.commit in state.passed


def _start(name: str, command: Command) -> Send:
    start = trigger.Start(name, command.source, command.targets, command.cause, command.by)
    return Send(trigger.trigger_stream(name), start)


REF: machine.Machine[Ref, Command, Event] = machine.Machine(
    name="ref",
    initial=Ref(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Ref, Command, Event),
    attributes=machine.Attributes({"head": str}, lambda state: {"head": state.head}),
)
