"""Where a deployment stands, how each event moves it, and the phase that its steps are in."""

import enum
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.deployment import events
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.plan import workload
from fairlead.areas.deployments.domain.plan.graph import Kind, Plan, Step
from fairlead.areas.deployments.domain.spec import DeploymentSpec
from fairlead.engine.messages import StreamName


class Status(enum.Enum):
    """The document's states, the one before the request, and the end by a person."""

    NEW = "NEW"
    QUEUED = "QUEUED"
    TRIGGERED = "TRIGGERED"
    """Automatic: every decision that comes here leaves it again."""

    WAITING = "WAITING"
    AVAILABLE = "AVAILABLE"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"

    @property
    def over(self) -> bool:
        return self in {Status.DONE, Status.FAILED, Status.TERMINATED}


@dataclass(frozen=True, slots=True)
class StepRun:
    """A step of the plan and how far it has come."""

    step: Step
    status: StepStatus = StepStatus.BLOCKED
    attempt: int = 0
    error: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    impact: Impact | None = None
    reasons: tuple[str, ...] = ()
    child: StreamName | None = None
    polls: int = 0
    """How often it was found to be still under way."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One version on its way."""

    name: str = ""
    status: Status = Status.NEW
    spec: DeploymentSpec | None = None
    """None only before it was requested."""

    cause: str = ""
    by: str = ""
    stored: bool = False
    observed: events.StackObserved | None = None
    waiting_since: datetime | None = None
    polls: int = 0
    """How often the infrastructure was found to be moving."""

    plan: Plan | None = None
    steps: tuple[StepRun, ...] = ()
    impact: Impact | None = None
    reasons: tuple[str, ...] = ()
    waits_for: str = ""
    """What it waits for beside its steps: a person, or the end of a freeze."""

    approved: str = ""
    """By whom."""

    reason: str = ""
    """Why it ended, where it did not end well."""

    retried: str = ""
    """The deployment that tries the same again."""

    parent: str = ""
    """The stream that hears of its end."""

    def find(self, step: str) -> StepRun | None:
        return next((each for each in self.steps if each.step.name == step), None)

    def those(self, status: StepStatus) -> tuple[StepRun, ...]:
        return tuple(each for each in self.steps if each.status is status)


def evolve(state: Deployment, event: events.Event) -> Deployment:
    match event:
        case events.Requested(name, spec, stored, cause, by, parent):
            begun = Deployment(name, Status.QUEUED, spec, cause, by, stored=stored)
            return replace(begun, parent=parent)
        case events.TemplateStored() | events.Triggered() | events.StackWait():
            return _waiting(state, event)
        case events.StackObserved() | events.StackAvailable():
            return _waiting(state, event)
        case events.StackWaitFailure() | events.Error() | events.Terminated():
            return _ended(state, event)
        case events.Done() | events.Retried():
            return _ended(state, event)
        case _:
            return _underway(state, event)


_Waiting = (
    events.TemplateStored
    | events.Triggered
    | events.StackWait
    | events.StackObserved
    | events.StackAvailable
)


def _waiting(state: Deployment, event: _Waiting) -> Deployment:
    match event:
        case events.TemplateStored():
            return replace(state, stored=True)
        case events.Triggered():
            return replace(state, status=Status.TRIGGERED)
        case events.StackWait(at):
            return replace(state, status=Status.WAITING, waiting_since=at)
        case events.StackObserved():
            return replace(state, observed=event)
        case events.StackAvailable(plan):
            steps = tuple(StepRun(step) for step in plan.steps)
            return replace(state, status=Status.AVAILABLE, plan=plan, steps=steps)
        case unreachable:
            assert_never(unreachable)


_Ended = events.StackWaitFailure | events.Error | events.Terminated | events.Done | events.Retried


def _ended(state: Deployment, event: _Ended) -> Deployment:
    match event:
        case events.StackWaitFailure(reason) | events.Error(reason):
            return replace(state, status=Status.FAILED, reason=reason, waits_for="")
        case events.Terminated(reason):
            return replace(state, status=Status.TERMINATED, reason=reason, waits_for="")
        case events.Done():
            return replace(state, status=Status.DONE)
        case events.Retried(deployment):
            return replace(state, retried=deployment)
        case unreachable:
            assert_never(unreachable)


_Underway = (
    events.Frozen
    | events.Approved
    | events.Running
    | events.RunStep
    | events.StepResult
    | events.StillUnderway
    | events.AskedAgain
    | events.EvalJoined
    | events.ApprovalAsked
)


def _underway(  # noqa: PLR0911 - one return for each event
    state: Deployment, event: _Underway
) -> Deployment:
    match event:
        case events.Frozen(reason):
            return replace(state, waits_for=reason)
        case events.Approved(by):
            return replace(state, approved=by, waits_for="")
        case events.Running():
            return replace(state, status=Status.RUNNING, waits_for="")
        case events.ApprovalAsked(asks, impact, reasons):
            return replace(state, impact=impact, reasons=reasons, waits_for=asks, approved="")
        case events.RunStep() | events.StepResult() | events.StillUnderway():
            return _with_step(state, event)
        case events.AskedAgain():
            return state
        case events.EvalJoined(impact, reasons, steps):
            more = (*state.steps, *(StepRun(step) for step in steps))
            return replace(state, impact=impact, reasons=reasons, waits_for="", steps=more)
        case unreachable:
            assert_never(unreachable)


_OfStep = events.RunStep | events.StepResult | events.StillUnderway


def _with_step(state: Deployment, event: _OfStep) -> Deployment:
    if not event.step:
        return replace(state, polls=state.polls + 1)
    steps = (_changed(run, event) if run.step.name == event.step else run for run in state.steps)
    return replace(state, steps=tuple(steps))


def _changed(run: StepRun, event: _OfStep) -> StepRun:
    match event:
        case events.StillUnderway():
            return replace(run, polls=run.polls + 1)
        case events.RunStep(_, attempt, child):
            begun = StepRun(run.step, StepStatus.ACTIVE, attempt, child=child)
            return replace(begun, outputs=run.outputs)
        case events.StepResult():
            return replace(
                run,
                status=event.status,
                error=event.error,
                outputs={**run.outputs, **event.outputs},
                impact=event.impact,
                reasons=event.reasons,
            )


_INFRA = frozenset({Kind.CF_CREATE.value, Kind.CF_UPDATE.value, Kind.CF_IMPORT.value})
_DATA = frozenset(
    {Kind.PG_UPSERT.value, Kind.PG_MIGRATE.value, Kind.PG_CLEANUP.value, Kind.PG_DESTROY.value}
)
_EVALUATION = frozenset({Kind.PG_EVALUATE.value, Kind.CF_PLAN.value, Kind.EVAL_JOIN.value})


def phase(state: Deployment) -> str:
    """How far a running deployment is, in the document's words: the latest that began counts."""
    if state.status is not Status.RUNNING:
        return ""
    evaluation = _of(state, _EVALUATION)
    if any(each.status is not StepStatus.DONE for each in evaluation):
        return "EVALUATING"
    up = tuple(each for each in state.steps if each.step.name == "ScaleUp")
    down = tuple(each for each in state.steps if each.step.name == "ScaleDown")
    groups = (
        (up, "SCALING_UP", "SCALED_UP"),
        (_of(state, _DATA), "DB_MIGRATING", "DB_MIGRATED"),
        (_infra(state), "INFRA_MIGRATING", "INFRA_MIGRATED"),
        (down, "SCALING_DOWN", "SCALED_DOWN"),
        (evaluation, "EVALUATING", "EVALUATED"),
    )
    for runs, during, after in groups:
        if runs and all(each.status is StepStatus.DONE for each in runs):
            return after
        if any(each.status is not StepStatus.BLOCKED for each in runs):
            return during
    return "STARTING"


def _of(state: Deployment, kinds: frozenset[str]) -> tuple[StepRun, ...]:
    return tuple(each for each in state.steps if each.step.kind in kinds)


def _infra(state: Deployment) -> tuple[StepRun, ...]:
    """A version that is a rollout counts as the change of infrastructure that it stands for."""
    rollouts = (each for each in state.steps if each.step.kind == workload.ROLLOUT)
    return _of(state, _INFRA) + tuple(run for run in rollouts if run.step.name == "VersionMigrate")


def exists(observed: events.StackObserved) -> bool:
    return observed.status is not StackStatus.MISSING
