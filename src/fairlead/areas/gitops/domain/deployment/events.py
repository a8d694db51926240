"""What happens to a deployment from git."""

import datetime as dt
from dataclasses import dataclass

from fairlead.areas.gitops.domain.messages import Intent, ObjectRef, Observed, Operation
from fairlead.kubernetes.messages import Subject


@dataclass(frozen=True, slots=True)
class IntentChanged:
    """A user wants this."""

    subject: Subject
    generation: int
    intent: Intent


@dataclass(frozen=True, slots=True)
class IntentRefused:
    """It is no valid work; nothing is touched for it."""

    error: str


@dataclass(frozen=True, slots=True)
class StatusAdopted:
    """Another store was further; what it deployed is taken over."""

    round: int
    inventory: tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True)
class GatheringStarted:
    """What is needed to begin is asked for."""

    order: int


@dataclass(frozen=True, slots=True)
class OperationRecorded:
    """The entry: whose work it is, and what the agent will be told; always before it is told."""

    workspace_id: str
    gitops_depl_id: str
    operation: Operation


@dataclass(frozen=True, slots=True)
class PassStarted:
    """Git and the cluster are compared once more."""

    order: int
    at: dt.datetime
    fresh: bool = True
    """Whether somebody asked for it; otherwise it was only time to look again."""


@dataclass(frozen=True, slots=True)
class RevisionRendered:
    """What the revision holds; whatever is applied from now on is known to be ours."""

    order: int
    revision: str
    objects: tuple[ObjectRef, ...]
    dry: bool


@dataclass(frozen=True, slots=True)
class PassCompleted:
    """How everything stands."""

    objects: tuple[Observed, ...]
    at: dt.datetime
    until: dt.datetime


@dataclass(frozen=True, slots=True)
class PassFailed:
    """It did not work, is told to the user, and is tried again."""

    error: str
    at: dt.datetime
    until: dt.datetime


@dataclass(frozen=True, slots=True)
class AnswerOverdue:
    """The agent has not answered in time; its answer is still taken."""

    error: str


@dataclass(frozen=True, slots=True)
class SyncRequested:
    """A person wants a manual deployment synced once."""

    by: str


@dataclass(frozen=True, slots=True)
class RemovalRequested:
    """The object is going."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class RemovalStarted:
    """What was deployed is being deleted."""

    order: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of it is left."""


Event = (
    IntentChanged
    | IntentRefused
    | StatusAdopted
    | GatheringStarted
    | OperationRecorded
    | PassStarted
    | RevisionRendered
    | PassCompleted
    | PassFailed
    | AnswerOverdue
    | SyncRequested
    | RemovalRequested
    | RemovalStarted
    | Gone
)
