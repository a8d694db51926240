"""What a resource is told, and what it asks of the API that has it.

No message has a secret, nor a body with one: a spec names its secrets, what was applied is sealed,
and a write is told by the digest of its request, which whoever performs it makes again.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fairlead.areas.resources.domain.model import Json
from fairlead.engine.messages import Cancel
from fairlead.kubernetes.messages import PublishStatus, ReleaseObject, Subject

HOUR = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Origin:
    """The object of a cluster that a declaration stands in."""

    subject: Subject
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource as its owner wants it."""

    type: str
    version: str
    id: str
    """The URL of its type with names in it."""

    properties: Json
    policies: Mapping[str, str] = field(default_factory=dict)
    """What becomes of values that others changed, by path: as delta.Policy has it."""

    retain: bool = False
    """Whether the resource stays when its declaration goes."""

    refresh: dt.timedelta | None = HOUR
    """How often it is looked at though nothing was declared anew; None: never."""

    mark: str = ""
    """Where a resource that the API names is marked as ours; empty: in its tags or labels."""

    origin: Origin | None = None
    attaches: bool = False
    """Whether it takes over what is there, and makes nothing."""


@dataclass(frozen=True, slots=True)
class LastApplied:
    """What is remembered of earlier writes, for the comparison."""

    applied: Json | None = None
    """What was written last, sealed; None where nothing was yet."""

    attempted: tuple[Json, ...] = ()
    """What may have been written since: its end was never heard of, or was a failure."""

    settled: Mapping[str, Any] = field(default_factory=dict)
    """What the API made of values that it took, by their path."""

    given: str = ""
    """The id that the API gave, where it gives one."""

    creation: int = 0
    """The order of a creation whose end was never heard of: another could make a second one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the status of an object remembers, so that a worker without a store goes on from it."""

    declared: Declared
    """Without its properties, which the object itself has."""

    last: LastApplied
    ours: bool
    order: int
    generation: int
    unkept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """One change, as a person reads it."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The one request that comes next."""

    method: str
    reasons: tuple[Reason, ...]
    digest: str
    """Of the whole request with its secrets, keyed: nothing else may be sent for this plan."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the API shows, held against what is declared."""

    exists: bool
    plan: Plan | None
    """None where nothing has to be written."""

    sealed: Json
    """The declared properties, as they are remembered once they are applied."""

    settled: Mapping[str, Any] = field(default_factory=dict)
    """What the API shows where the declared value differs, sealed."""

    busy: str = ""
    """A state that the API is still working on."""

    shown: str = ""
    """A digest of all that the API shows, keyed."""

    broken: str = ""
    """Why the API itself calls the resource failed, or why no request can help."""


class ErrorClass(StrEnum):
    """What helps against an error; each has its own pace."""

    THROTTLED = "Throttled"
    BUSY = "Busy"
    """Another operation is on its way there."""

    TRANSIENT = "Transient"
    CREDENTIALS = "Credentials"
    """Somebody has to let us in."""

    DEPENDENCY = "Dependency"
    """What it stands in is not there yet."""

    REFUSED = "Refused"
    """The request is wrong as it stands."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something did not work, as it may be shown."""

    kind: ErrorClass
    message: str
    retry_after: dt.timedelta | None = None
    """What the API asked for."""

    unknown: bool = False
    """Whether what was asked for may have been done all the same."""


class Style(StrEnum):
    """How the end of an operation is told."""

    AZURE = "azure-async-operation"
    """By a status in the body."""

    LOCATION = "location"
    """By the status of the answer."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Work that the API has taken on, and where its end is told."""

    style: Style
    url: str


@dataclass(frozen=True, slots=True)
class Apply:
    """Command: bring the resource to this, and keep it there."""

    declared: Declared
    by: str = ""
    parent: str = ""
    """Who waits to hear that it is as declared, or that it cannot be."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Command: go on from where a status says that it stood; only who knows nothing does."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class Remove:
    """Command: it is no longer declared; its deletion policy says what becomes of it."""

    by: str = ""
    origin: Origin | None = None
    """The object that waits for it, if nothing else is known of it."""

    retain: bool = False
    """Whether the resource stays whatever its policy says: nobody waited for its end."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """Command: look at it now; somebody says that it changed."""

    because: str = ""


@dataclass(frozen=True, slots=True)
class Begin:
    """Command: the creation of this order is sent now.

    It changes nothing, but its id is kept: whoever says it again hears that somebody did before.
    """

    order: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Command, the answer to Read."""

    order: int
    observation: Observation
    given: str = ""
    """The id under which it was found, where the API gives one."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Command, the answer to Write and Delete: the API has taken it."""

    order: int
    operation: Operation | None = None
    """None where it is done already, or the resource itself tells."""

    retry_after: dt.timedelta | None = None
    given: str = ""
    """The id that the API gave it."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """Command, the answer to Write: another request would be needed now, so none was sent."""

    order: int
    why: str = ""


class Progress(StrEnum):
    """How far an operation is."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The API does not know it any more."""


@dataclass(frozen=True, slots=True)
class Polled:
    """Command, the answer to Poll."""

    order: int
    progress: Progress
    failure: Failure | None = None
    """Of an operation that failed."""

    retry_after: dt.timedelta | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Command, the answer to any effect that could not be performed."""

    order: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Wake:
    """Command of the timer: the moment has come."""

    order: int


@dataclass(frozen=True, slots=True)
class Read:
    """Effect: see what is there, and compare."""

    order: int
    declared: Declared
    last: LastApplied
    compares: bool = True
    """Otherwise only whether it is there counts: secrets of what goes may be gone already."""


@dataclass(frozen=True, slots=True)
class Write:
    """Effect: send the request of this digest, if it is still the one that is needed."""

    order: int
    declared: Declared
    last: LastApplied
    digest: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Effect: have the resource deleted."""

    order: int
    type: str
    version: str
    id: str
    given: str = ""


@dataclass(frozen=True, slots=True)
class Poll:
    """Effect: ask how far the operation is."""

    order: int
    id: str
    operation: Operation
    secrets: tuple[str, ...] = ()
    """The names of those that were sent: what the API says of its end may not show them."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Effect: tell the object of a cluster where its resource stands."""

    status: PublishStatus
    memory: Memory


Command = (
    Apply
    | Adopt
    | Cancel
    | Remove
    | Refresh
    | Begin
    | Seen
    | Accepted
    | Outdated
    | Polled
    | Failed
    | Wake
)
Effect = Read | Write | Delete | Poll | Publish | ReleaseObject
