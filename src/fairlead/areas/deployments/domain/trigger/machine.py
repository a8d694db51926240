"""One reason to deploy, from a push or a person to the ends of its deployments.

       Start, a commit              ReportConfiguration               ChildEnded
NEW ──────────────────► FETCHING ────────────────────────► REQUESTED ────────────► DONE, FAILED
 │ Start, a branch or tag  ▲  │                       a retry that ends: once more ──┘
 ▼     ReportCommit        │  └── Refuse ──► REFUSED
RESOLVING ─────────────────┘

Each target goes its own way: a file that makes no sense holds up no other. What the repository's
host is told of a target (`PublishCheck`) is told one after another, so no late `pending` hides an
end; and it holds no words of the run, for whoever reads the repository reads it too.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.spec import deployment_stream
from fairlead.areas.deployments.domain.trigger.messages import (
    CheckPublished,
    Command,
    CommitResolved,
    DeploymentEnded,
    DeploymentRequested,
    Effect,
    Event,
    FetchConfiguration,
    Progress,
    PublishCheck,
    Refuse,
    ReportCommit,
    ReportConfiguration,
    ReportPublished,
    ResolveCommit,
    Source,
    Start,
    Started,
    Target,
    TargetRefused,
    trigger_stream,
)
from fairlead.areas.deployments.domain.trigger.state import Run, Trigger, evolve, status
from fairlead.engine import machine
from fairlead.engine.messages import ChildEnded, Decision, Send, StreamName

_COMMIT_SHOWN = 12


def deployment_name(trigger: str, source: Source, target: Target) -> str:
    """The same for the same trigger; it begins with the environment, so that a scope can be one."""
    mark = hashlib.blake2b(trigger.encode(), digest_size=4).hexdigest()
    return f"{target.key}/{source.commit[:_COMMIT_SHOWN]}-{mark}"


def decide(state: Trigger, command: Command, _now: datetime) -> Decision:
    if isinstance(command, Start):
        return _start(state, command)
    return Decision() if state.source is None else _answered(state, command)


def _answered(
    state: Trigger,
    command: ReportCommit | ReportConfiguration | Refuse | ReportPublished | ChildEnded,
) -> Decision:
    match command:
        case ReportCommit(commit, reason):
            return _resolved(state, commit, reason)
        case ReportConfiguration():
            return _request(state, command)
        case Refuse(target, reason):
            run = state.find(target)
            fetching = run is not None and run.progress is Progress.FETCHING
            return _told(state, TargetRefused(target, reason)) if fetching else Decision()
        case ReportPublished(target, check, problem):
            run = state.find(target)
            telling = run is not None and run.telling is check
            return _told(state, CheckPublished(target, check, problem)) if telling else Decision()
        case ChildEnded(child, succeeded):
            return _child_ended(state, child, succeeded=succeeded)
        case unreachable:
            assert_never(unreachable)


def _told(state: Trigger, *events: Event, sends: tuple[Send, ...] = ()) -> Decision:
    """These events, and what the repository's host hears of them."""
    after = state
    for event in events:
        after = evolve(after, event)
    before = {run.target.key: run.telling for run in state.runs}
    checks = tuple(
        _check(after, run)
        for run in after.runs
        if run.telling is not None and run.telling is not before.get(run.target.key)
    )
    return Decision(events, (*_fetches(state, after), *checks), sends)


def _fetches(before: Trigger, after: Trigger) -> Iterable[Effect]:
    had, has = before.source, after.source
    if has is None or (had is not None and had.commit == has.commit):
        return
    if not has.commit:
        yield ResolveCommit(has)
    else:
        yield from (FetchConfiguration(has, run.target, after.flags) for run in after.runs)


def _check(state: Trigger, run: Run) -> PublishCheck:
    assert state.source is not None
    assert run.telling is not None
    match run.progress:
        case Progress.FETCHING | Progress.REQUESTED:
            summary = "waits for its deployment"
        case Progress.DONE:
            summary = f"deployed: {run.deployment}"
        case Progress.FAILED:
            summary = f"failed: fairlead get deployment {run.deployment}"
        case Progress.REFUSED:
            summary = run.reason
    key = run.target.key
    return PublishCheck(state.source, key, f"{state.name}/{key}", run.telling, summary)


def _start(state: Trigger, command: Start) -> Decision:
    started = Started(
        command.trigger,
        command.source,
        command.targets,
        command.cause,
        command.by,
        command.flags,
    )
    if state.source is not None:
        return Decision()
    if not command.targets:
        raise errors.Rejected("nothing to deploy", hint="name a push target")
    return _told(state, started)


def _resolved(state: Trigger, commit: str, reason: str) -> Decision:
    if state.source is None or state.source.commit or all(run.over for run in state.runs):
        return Decision()
    if commit:
        return _told(state, CommitResolved(commit))
    return _told(state, *(TargetRefused(run.target.key, reason) for run in state.runs))


def _request(state: Trigger, command: ReportConfiguration) -> Decision:
    run = state.find(command.target)
    if run is None or run.progress is not Progress.FETCHING:
        return Decision()
    if state.source is None or not state.source.commit:
        return Decision()
    name = deployment_name(state.name, state.source, run.target)
    request = messages.Request(
        name,
        command.spec,
        command.template,
        state.cause,
        state.by,
        parent=trigger_stream(state.name),
        beside=command.beside,
    )
    requested = DeploymentRequested(command.target, name, command.environment_version)
    return _told(state, requested, sends=(Send(deployment_stream(name), request, command.queue),))


def _child_ended(state: Trigger, child: StreamName, *, succeeded: bool) -> Decision:
    name = child.partition("/")[2]
    for run in state.runs:
        # A retry is called as what it tries again, with .r2, .r3 … behind.
        if run.deployment and name.partition(".r")[0] == run.deployment:
            return _told(state, DeploymentEnded(run.target.key, name, succeeded))
    return Decision()


def _addressed(stream: StreamName, command: Command) -> None:
    if isinstance(command, Start) and trigger_stream(command.trigger) != stream:
        raise errors.Rejected(
            f"{stream} is told to be another trigger: {command.trigger[:80]}",
            hint="name it by the key of its stream",
        )


def _attributes(state: Trigger) -> dict[str, machine.AttributeValue]:
    if state.source is None:
        return {"status": status(state)}
    return {
        "status": status(state),
        "repository": state.source.repository,
        "commit": state.source.commit,
    }


TRIGGER: machine.Machine[Trigger, Command, Event] = machine.Machine(
    name="trigger",
    initial=Trigger(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: bool(state.runs) and all(run.over for run in state.runs),
    vocabulary=machine.Vocabulary(Trigger, Command, Event, Effect),
    attributes=machine.Attributes(
        {
            "status": ("NEW", "RESOLVING", *(each.value for each in Progress)),
            "repository": str,
            "commit": str,
        },
        _attributes,
    ),
    addressed=_addressed,
)
