"""A branch or tag of a repository, as pushes tell of it: what is newest starts a trigger.

         TakePush                    TakePush from the head, or of a later time
UNKNOWN ───────────► AT A COMMIT ──────────────────────────────────────────┐
   ▲                  │  ▲  │ TakePush of what was passed: outdated        │
   └── deleted ───────┘  │  │ with a gap: asked which it is, ReportCommit  │
                         └──┴──────────────────────────────────────────────┘

Hosts deliver more than once and in any order. A push says what the branch was before, and GitHub
when it was. Of a push with neither a time nor its beginning at the head nobody can tell whether
others are still to come, so the repository itself is asked: its answer is the newest of all that
were delivered.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from fairlead.areas.deployments.domain.trigger import messages as trigger
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send

_MOST_PASSED = 50
_NOTHING = "nothing is deployed"
_ASKING = "the repository is asked which commit is the newest"


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
    before: str = ""


@dataclass(frozen=True, slots=True)
class RefDeleted:
    """Event: the branch or tag is gone; what runs stays as it is."""

    before: str
    by: str


@dataclass(frozen=True, slots=True)
class Doubted:
    """Event: it cannot be told whether this is the newest; the repository is asked."""

    push: TakePush


@dataclass(frozen=True, slots=True)
class HeadAskedAgain:
    """Event: another such push came meanwhile, and the answer may be older than that."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Event: the repository was asked, and nothing is newer than what is known."""

    reason: str = ""
    """Why it did not say."""


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

    asked: TakePush | None = None
    """The newest of which it cannot be told, while the repository is asked."""

    again: bool = False
    """Whether that came after the question that is under way."""


Command = TakePush | TakeRerun | trigger.ReportCommit
Event = Pushed | Rerun | Outdated | RefDeleted | Doubted | HeadAskedAgain | Settled
Effect = trigger.ResolveCommit


def decide(state: Ref, command: Command, _now: datetime) -> Decision:
    match command:
        case TakePush():
            return _push(state, command)
        case TakeRerun(source=source) if state.head and source.commit != state.head:
            return Decision((Outdated(source.commit),))
        case TakeRerun(source=source, by=by):
            name = f"{command.ref}:{state.count + 1}"
            return Decision((Rerun(source.commit, name, by),), sends=(_start(name, command),))
        case trigger.ReportCommit(commit, reason):
            return _answered(state, commit, reason)
        case unreachable:
            assert_never(unreachable)


def evolve(state: Ref, event: Event) -> Ref:  # noqa: PLR0911 - one return for each event
    match event:
        case Pushed(before, commit, name, _, at):
            passed = tuple(each for each in _passed(state, before) if each != commit)
            return Ref(commit, passed, state.count + 1, name, max(at, state.at))
        case Rerun(commit, name):
            return replace(state, head=commit, count=state.count + 1, trigger=name, note="")
        case Outdated(commit, before):
            note = f"{commit[:12] or 'the deletion'} is not the newest commit: {_NOTHING}"
            return replace(state, passed=_passed(state, before), note=note)
        case RefDeleted(before):
            passed = _passed(state, before)
            return Ref(passed=passed, count=state.count, at=state.at, note=f"deleted: {_NOTHING}")
        case Doubted(push):
            passed, again = _passed(state, push.before), state.asked is not None
            at = max(push.at, state.at)
            return replace(state, passed=passed, at=at, asked=push, again=again, note=_ASKING)
        case HeadAskedAgain():
            return replace(state, again=False)
        case Settled(reason):
            why = reason or "it is at the newest commit already"
            return replace(state, asked=None, note=f"{why}: {_NOTHING}")
        case unreachable:
            assert_never(unreachable)


def _push(state: Ref, push: TakePush) -> Decision:
    commit, known = push.source.commit, bool(state.head or state.count)
    earlier, later = 0 < push.at < state.at, push.at > state.at > 0
    if not commit and not state.head:
        return Decision()
    if same := commit == state.head:
        if earlier or (not later and push.before in (state.head, *state.passed)):
            return Decision()
    elif earlier or (not later and _leads_back(state, push)):
        return Decision((Outdated(commit, push.before),))
    if known and (same or state.asked or not (later or _goes_on(state, push))):
        return Decision((Doubted(push),), () if state.asked else (_question(push),))
    return _taken(state, push) if commit else Decision((RefDeleted(push.before, push.by),))


def _leads_back(state: Ref, push: TakePush) -> bool:
    """To where a later push began."""
    return push.before != state.head and bool(state.head) and push.source.commit in state.passed


def _goes_on(state: Ref, push: TakePush) -> bool:
    """From where it is now, to where it never was."""
    begins = push.before == state.head if state.head else not push.before.strip("0")
    return begins and push.source.commit not in state.passed


def _answered(state: Ref, commit: str, reason: str) -> Decision:
    push = state.asked
    if push is None:
        return Decision()
    if state.again:
        return Decision((HeadAskedAgain(),), (_question(push),))
    if not commit or commit == state.head:
        return Decision((Settled(reason),))
    return _taken(state, replace(push, source=replace(push.source, commit=commit)))


def _taken(state: Ref, push: TakePush) -> Decision:
    name = f"{push.ref}:{state.count + 1}"
    pushed = Pushed(push.before, push.source.commit, name, push.by, push.at)
    return Decision((pushed,), sends=(_start(name, push),))


def _question(push: TakePush) -> trigger.ResolveCommit:
    return trigger.ResolveCommit(replace(push.source, commit=""))


def _passed(state: Ref, before: str) -> tuple[str, ...]:
    if not before:
        return state.passed
    return (*(each for each in state.passed if each != before), before)[-_MOST_PASSED:]


def _start(name: str, command: TakePush | TakeRerun) -> Send:
    start = trigger.Start(name, command.source, command.targets, command.cause, command.by)
    return Send(trigger.trigger_stream(name), start)


REF: machine.Machine[Ref, Command, Event] = machine.Machine(
    name="ref",
    initial=Ref(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Ref, Command, Event, Effect),
    attributes=machine.Attributes({"head": str}, lambda state: {"head": state.head}),
)
