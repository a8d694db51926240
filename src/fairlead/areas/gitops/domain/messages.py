"""What a deployment from git is told, and what it asks of the agent that performs its operations.

The document's words: `workspace_id` is the UID of the object's namespace, `gitops_depl_id` that of
the object, and an `Operation` has five fields of which none may be empty.
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

from fairlead.errors import Rejected
from fairlead.kubernetes.messages import PublishStatus, RecordEvent, ReleaseObject, Subject

AUTOMATED = "automated"
MANUAL = "manual"
APPLICATION = "Application"
"""The type of resource that operations of a deployment are about."""

FINALIZER = "resources-finalizer.managed-gitops.redhat.com"
"""Set by users who want to wait until what was deployed is gone."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a user wants deployed, as the object says it."""

    repo_url: str
    path: str
    target_revision: str = ""
    environment: str = ""
    namespace: str = ""
    sync_options: tuple[str, ...] = ()
    type: str = AUTOMATED


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """An object in the deployment's namespace."""

    group: str
    version: str
    kind: str
    name: str

    @property
    def place(self) -> tuple[str, str, str]:
        """What stays the same when a manifest moves to another version of its kind."""
        return (self.group, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class Operation:
    """A piece of work for the agent, recorded before the agent hears of it."""

    operation_id: str
    instance_id: str
    owner: str
    resource: str
    resource_type: str

    def __post_init__(self) -> None:
        for field in ("operation_id", "instance_id", "owner", "resource", "resource_type"):
            if not getattr(self, field):
                raise Rejected(f"an operation without a field: {field}", hint="give all five")


class SyncStatus(StrEnum):
    """Whether the cluster shows what git has."""

    UNKNOWN = "Unknown"
    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"


class Health(StrEnum):
    """Whether what was deployed works; ordered from best to worst."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Observed:
    """One object as it is in the cluster, against how it is in git."""

    ref: ObjectRef
    sync: SyncStatus
    health: Health
    message: str = ""


@dataclass(frozen=True, slots=True)
class Declare:
    """Command: this is the intent now."""

    subject: Subject
    generation: int
    intent: Intent


@dataclass(frozen=True, slots=True)
class Delete:
    """Command: the object is going, or is gone."""

    subject: Subject | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """Command: the object's status says that another store was this far, with these objects."""

    round: int
    inventory: tuple[ObjectRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync:
    """Command: a person wants a manual deployment synced once."""

    by: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Command, the answer to Gather: all that is needed to begin."""

    order: int
    workspace_id: str
    instance_id: str
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """Command, the answer to Render: what the revision holds."""

    order: int
    revision: str
    objects: tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """Command, the answer to Apply: how everything stands now."""

    order: int
    objects: tuple[Observed, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """Command, the answer to Remove: the API server took every deletion."""

    order: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Command, the answer to any effect that could not be performed; `error` is for the user."""

    order: int
    error: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Command of a timer: look again, or try again."""

    order: int


@dataclass(frozen=True, slots=True)
class Expire:
    """Command of a timer: no answer came in time."""

    order: int


@dataclass(frozen=True, slots=True)
class Gather:
    """Effect: find out whose namespace it is, and which engine instance serves it."""

    order: int
    subject: Subject


@dataclass(frozen=True, slots=True)
class Render:
    """Effect: find the revision, and read what it holds."""

    order: int
    operation: Operation
    subject: Subject
    intent: Intent


@dataclass(frozen=True, slots=True)
class Apply:
    """Effect: bring the objects to what the revision holds; only compare them where `dry`."""

    order: int
    operation: Operation
    subject: Subject
    intent: Intent
    revision: str
    obsolete: tuple[ObjectRef, ...] = ()
    """What was deployed before and is not in the revision."""

    dry: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """Effect: delete what was deployed."""

    order: int
    operation: Operation
    subject: Subject
    inventory: tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """When the last pass began and ended."""

    started: dt.datetime | None = None
    finished: dt.datetime | None = None


Answer = Gathered | Rendered | Applied | Removed | Failed
Command = Declare | Delete | Adopt | Sync | Answer | Wake | Expire
Effect = Gather | Render | Apply | Remove | PublishStatus | RecordEvent | ReleaseObject
