"""What comes to stacks and deployments (commands) and what they ask of the world (effects)."""

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Any

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.spec import DeploymentSpec, TemplatePlace


class Outcome(enum.Enum):
    """How a deployment ended, as its stack hears it."""

    DONE = "DONE"
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"
    """Before anything of it ran, so the stack is as it was."""


class StepStatus(enum.Enum):
    """Where a step stands."""

    BLOCKED = "BLOCKED"
    READY = "READY"
    ACTIVE = "ACTIVE"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Command to a stack, from a deployment: it wants its turn."""

    stack: str
    deployment: str
    supersede: bool = False
    """It takes the place of those that wait."""

    fixes: bool = False
    """It may start on a broken stack, before those that wait."""


@dataclass(frozen=True, slots=True)
class ReportEnd:
    """Command to a stack, from a deployment: it is over."""

    deployment: str
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Command to a broken stack: run what failed once more."""

    by: str


@dataclass(frozen=True, slots=True)
class ForceAvailable:
    """Command to a broken stack: a person has mended it."""

    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Request:
    """Command to a deployment: bring this version there."""

    deployment: str
    spec: DeploymentSpec
    template: str = ""
    """The text of the infrastructure template; empty where it is stored already."""

    cause: str = ""
    """What made somebody ask: a push, a person, a schedule."""

    by: str = ""
    fixes: bool = False
    parent: str = ""
    """The stream that hears of its end, where one asked for it."""

    beside: dict[str, str] = field(default_factory=dict)
    """What else is stored with the template, by key: migrations."""


@dataclass(frozen=True, slots=True)
class TriggerDeployment:
    """Command to a deployment, from its stack: it is your turn."""


@dataclass(frozen=True, slots=True)
class RetryDeployment:
    """Command to a failed deployment, from its stack: start again under a new name."""

    by: str


@dataclass(frozen=True, slots=True)
class Supersede:
    """Command to a deployment that waits, from its stack: a newer one takes its place."""

    deployment: str


@dataclass(frozen=True, slots=True)
class ReportTemplate:
    """Command, the answer to StoreTemplate: it lies where the specification says."""

    error: str = ""
    """Why it does not and will not."""


@dataclass(frozen=True, slots=True)
class ReportStackStatus:
    """Command, the answer to StabilizeStack: how the infrastructure stands."""

    status: StackStatus
    detail: str = ""
    pending: dict[str, int] | None = None
    """Migrations that databases wait for, by key; None where nobody looked."""


@dataclass(frozen=True, slots=True)
class StatementFound:
    """What one statement of a migration asks of the version that runs."""

    sql: str
    impact: Impact
    locks: tuple[str, ...] = ()
    rewrite: bool = False
    scan: bool = False
    reasons: tuple[str, ...] = ()
    suggestion: str = ""
    """A safer form of it."""


@dataclass(frozen=True, slots=True)
class ReportStep:
    """Command, the answer to PerformStep and ObserveStep: how a step stands."""

    step: str
    attempt: int
    status: StepStatus
    error: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    impact: Impact | None = None
    """What an evaluation found."""

    reasons: tuple[str, ...] = ()
    statements: tuple[StatementFound, ...] = ()
    """For whoever looks closely: the event keeps them, the deployment's state does not."""


@dataclass(frozen=True, slots=True)
class Observe:
    """Command, of a timer: ask again how the infrastructure stands."""


@dataclass(frozen=True, slots=True)
class ObserveAgain:
    """Command, of a timer: ask again how a step stands."""

    step: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TimeOut:
    """Command, of a timer: a step had its time."""

    step: str
    attempt: int


@dataclass(frozen=True, slots=True)
class FreezeEnded:
    """Command, of a timer: the environment is no longer frozen."""


@dataclass(frozen=True, slots=True)
class Approve:
    """Command: what waits for a person may go on."""

    by: str


@dataclass(frozen=True, slots=True)
class Terminate:
    """Command: end this deployment, whatever it is doing."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class StoreTemplate:
    """Effect: keep the infrastructure template where steps find it."""

    place: TemplatePlace
    body: str
    assume_role: str = ""
    beside: dict[str, str] = field(default_factory=dict)
    """What is stored with it in the same bucket, by key."""


@dataclass(frozen=True, slots=True)
class StabilizeStack:
    """Effect: say how the infrastructure stands; end an update of others where that is asked."""

    spec: DeploymentSpec


@dataclass(frozen=True, slots=True)
class PerformStep:
    """Effect: begin a step, once for each token."""

    spec: DeploymentSpec
    step: str
    kind: str
    attempt: int
    token: str
    """The same on every delivery: what the outside did under it is not done again."""

    words: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    """What the steps before it gave, by their names."""


@dataclass(frozen=True, slots=True)
class ObserveStep:
    """Effect: say how a step that was begun stands."""

    begun: PerformStep


POLL = dt.timedelta(seconds=5)
LONGEST_POLL = dt.timedelta(minutes=1)
LONGEST_WAIT = dt.timedelta(hours=12)
"""Before any step: a stack whose review nobody ends moves for ever."""


def pause(polls: int) -> dt.timedelta:
    """Before the next question about something that moves, after so many: longer each time."""
    return min(POLL * (1 << min(polls, 10)), LONGEST_POLL)
