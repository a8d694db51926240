"""What happens to a deployment, by the document's names where it has one."""

from dataclasses import dataclass, field
from datetime import datetime

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import StatementFound, StepStatus
from fairlead.areas.deployments.domain.plan.graph import Plan, Step
from fairlead.areas.deployments.domain.spec import DeploymentSpec
from fairlead.engine.messages import StreamName


@dataclass(frozen=True, slots=True)
class Requested:
    """Event: somebody wants this version there; it is queued."""

    deployment: str
    spec: DeploymentSpec
    stored: bool
    """Whether the template was there already."""

    cause: str = ""
    by: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True)
class TemplateStored:
    """Event: steps find the template."""


@dataclass(frozen=True, slots=True)
class Triggered:
    """Event: the stack gave it its turn."""


@dataclass(frozen=True, slots=True)
class StackWait:
    """Event: it waits for the infrastructure to settle."""

    at: datetime


@dataclass(frozen=True, slots=True)
class StackObserved:
    """Event: what the infrastructure was found to be; only a change of it is told."""

    status: StackStatus
    detail: str = ""
    pending: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class StackWaitFailure:
    """Event: the infrastructure cannot be deployed to."""

    reason: str


@dataclass(frozen=True, slots=True)
class StackAvailable:
    """Event: the infrastructure is settled, and this is the plan for it."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Frozen:
    """Event: it may run only after a freeze of its environment."""

    reason: str


@dataclass(frozen=True, slots=True)
class Approved:
    """Event: a person lets it go on."""

    by: str


@dataclass(frozen=True, slots=True)
class Running:
    """Event: its steps begin."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """Event: a step began; `child` where a machine of its own takes it."""

    step: str
    attempt: int
    child: StreamName | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """Event: a step stands otherwise than before."""

    step: str
    attempt: int
    status: StepStatus
    error: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    impact: Impact | None = None
    reasons: tuple[str, ...] = ()
    statements: tuple[StatementFound, ...] = ()


@dataclass(frozen=True, slots=True)
class StillUnderway:
    """Event: what was asked about goes on; it is asked about again later."""

    step: str = ""
    """Empty: the infrastructure, before any step."""


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """Event: how it stands was asked again."""

    step: str = ""


@dataclass(frozen=True, slots=True)
class EvalJoined:
    """Event: the evaluations came to this class, and these steps follow from it."""

    impact: Impact
    reasons: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """Event: a person decides whether it goes on."""

    asks: str
    impact: Impact | None = None
    """The class that was found, where it is another one than was approved."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """Event: all steps are done."""


@dataclass(frozen=True, slots=True)
class Error:
    """Event: it failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """Event: somebody, or a newer deployment, ended it."""

    reason: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Retried:
    """Event: the same was requested again under a new name."""

    deployment: str
    by: str


Event = (
    Requested
    | TemplateStored
    | Triggered
    | StackWait
    | StackObserved
    | StackWaitFailure
    | StackAvailable
    | Frozen
    | Approved
    | Running
    | RunStep
    | StepResult
    | StillUnderway
    | AskedAgain
    | EvalJoined
    | ApprovalAsked
    | Done
    | Error
    | Terminated
    | Retried
)
