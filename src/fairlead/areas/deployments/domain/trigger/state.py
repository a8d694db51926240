"""How far a trigger has come, and how each event moves it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from fairlead.areas.deployments.domain.spec import Flag
from fairlead.areas.deployments.domain.trigger.messages import (
    Check,
    CheckPublished,
    CommitResolved,
    DeploymentEnded,
    DeploymentRequested,
    Event,
    Progress,
    Source,
    Started,
    Target,
    TargetRefused,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One target on its way."""

    target: Target
    progress: Progress = Progress.FETCHING
    deployment: str = ""
    reason: str = ""
    told: Check | None = None
    telling: Check | None = None
    """What is on its way to the repository's host."""

    @property
    def check(self) -> Check:
        match self.progress:
            case Progress.FETCHING | Progress.REQUESTED:
                return Check.PENDING
            case Progress.DONE:
                return Check.SUCCESS
            case Progress.FAILED | Progress.REFUSED:
                return Check.FAILURE
            case unreachable:
                assert_never(unreachable)

    @property
    def over(self) -> bool:
        return self.check is not Check.PENDING


@dataclass(frozen=True, slots=True)
class Trigger:
    """State: a reason to deploy, and how far each target has come."""

    name: str = ""
    source: Source | None = None
    runs: tuple[Run, ...] = ()
    cause: str = ""
    by: str = ""
    flags: tuple[Flag, ...] = ()

    def find(self, target: str) -> Run | None:
        return next((each for each in self.runs if each.target.key == target), None)


def evolve(state: Trigger, event: Event) -> Trigger:
    match event:
        case Started(name, source, targets, cause, by, flags):
            runs = tuple(Run(each) for each in targets)
            return _telling(Trigger(name, source, runs, cause, by, flags))
        case CommitResolved(commit):
            assert state.source is not None
            return _telling(replace(state, source=replace(state.source, commit=commit)))
        case DeploymentRequested(target, deployment):
            return _with(
                state,
                target,
                lambda run: replace(run, progress=Progress.REQUESTED, deployment=deployment),
            )
        case TargetRefused(target, reason):
            return _with(
                state, target, lambda run: replace(run, progress=Progress.REFUSED, reason=reason)
            )
        case DeploymentEnded(target, _, succeeded):
            progress = Progress.DONE if succeeded else Progress.FAILED
            return _with(state, target, lambda run: replace(run, progress=progress))
        case CheckPublished(target, check):
            return _with(state, target, lambda run: replace(run, told=check, telling=None))
        case unreachable:
            assert_never(unreachable)


def _with(state: Trigger, target: str, change: Callable[[Run], Run]) -> Trigger:
    runs = (change(each) if each.target.key == target else each for each in state.runs)
    return _telling(replace(state, runs=tuple(runs)))


def _telling(state: Trigger) -> Trigger:
    """What is told next: one thing at a time for each target, the newest."""
    if state.source is None or not (state.source.reports and state.source.commit):
        return state
    runs = (
        replace(run, telling=run.check) if run.telling is None and run.told != run.check else run
        for run in state.runs
    )
    return replace(state, runs=tuple(runs))


def status(state: Trigger) -> str:
    """In one word, the most telling of all targets."""
    if state.source is None:
        return "NEW"
    reached = {run.progress for run in state.runs}
    if not state.source.commit and Progress.FETCHING in reached:
        return "RESOLVING"
    order = (
        *(Progress.FETCHING, Progress.REQUESTED),
        *(Progress.FAILED, Progress.REFUSED, Progress.DONE),
    )
    return next(each.value for each in order if each in reached)
