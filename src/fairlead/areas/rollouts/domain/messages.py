"""What a rollout is told (commands) and asks of the world (effects); `events` has what happened."""

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Any

from fairlead.domain.analysis.conditions import Phase
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Check, Spec, Version
from fairlead.domain.traffic.routes import Route


class Slot(enum.Enum):
    """The places where a version of the workload can run."""

    PRIMARY = "primary"
    CANARY = "canary"
    BASELINE = "baseline"
    """The stable version once more, as young as the canary and with as much to do."""


@dataclass(frozen=True, slots=True)
class Want:
    """Command: the whole intent as it stands now; said again, it changes nothing."""

    name: str
    spec: Spec
    version: Version
    replicas: int | None = None
    """None: somebody else, an autoscaler, decides."""

    override: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """Command: the whole world as it stands now."""

    sight: Sight


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer, judged; no phase means that there is nothing to count yet."""

    check: str
    phase: Phase | None
    reason: str


@dataclass(frozen=True, slots=True)
class Judged:
    """Command: the answers to one round of checks."""

    ticket: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Command: a moment that was waited for has come."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Command: take no further step up; the way home stays open."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Command: go on after a pause."""

    by: str


@dataclass(frozen=True, slots=True)
class Approve:
    """Command: the step that waits for a person may go on."""

    by: str


@dataclass(frozen=True, slots=True)
class PromoteFully:
    """Command: skip what is left of steps, checks and bake time."""

    by: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Command: bring all traffic home and give this version up."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Command: try the wanted version again after it was taken back."""

    by: str


@dataclass(frozen=True, slots=True)
class RollBackTo:
    """Command: bring back a kept revision, without steps."""

    revision: str
    by: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Command: the rollout is not wanted any more."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Command: the store is empty, but the object's status remembers."""

    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Grant:
    """Command from the limiter: there is room, begin."""


@dataclass(frozen=True, slots=True)
class GoTogether:
    """Command from the group: everybody has arrived at this gate."""

    gate: str


@dataclass(frozen=True, slots=True)
class PartWays:
    """Command from the group: a member went home, so do all."""

    why: str


Command = (
    Want
    | Observed
    | Judged
    | Tick
    | Pause
    | Resume
    | Approve
    | PromoteFully
    | Abort
    | Retry
    | RollBackTo
    | Delete
    | Adopt
    | Grant
    | GoTogether
    | PartWays
)


@dataclass(frozen=True, slots=True)
class EnsureVersion:
    """Effect: let this version run in this slot, at this scale.

    A platform that has performed a higher order for the slot does nothing. Where `replicas` is
    None the scale is somebody else's, but never below `at_least`.
    """

    name: str
    order: int
    slot: Slot
    version: Version
    replicas: int | None
    at_least: int = 1


@dataclass(frozen=True, slots=True)
class SetRoute:
    """Effect: let requests go like this. Update in place: a route deleted is requests lost.

    A router that has performed a higher order does nothing.
    """

    name: str
    order: int
    route: Route


@dataclass(frozen=True, slots=True)
class RemoveCanary:
    """Effect: the slots of the canary and its baseline are to be empty; empty ones are well."""

    name: str
    order: int


@dataclass(frozen=True, slots=True)
class Look:
    """Effect: tell what there is, as an Observed."""

    name: str


@dataclass(frozen=True, slots=True)
class Measure:
    """Effect: answer these checks about the canary beside what it is held against, as a Judged."""

    name: str
    ticket: int
    checks: tuple[Check, ...]
    primary: Version
    canary: Version
    share: int
    since: dt.datetime
    """When the canary reached this share: older samples tell of another share."""

    control: Slot = Slot.PRIMARY
    """Who runs `primary` for the judge: the primary's slot, or the baseline where it carries."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Effect: tell people."""

    name: str
    kind: str
    text: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class PublishStatus:
    """Effect: show this on the object; a lower serial after a higher one is old news."""

    name: str
    serial: int
    status: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResetOverride:
    """Effect: set the override flag of the object back to false."""

    name: str


@dataclass(frozen=True, slots=True)
class LetGo:
    """Effect: the rollout is gone; give back what was never ours, make nothing."""

    name: str
    order: int


Effect = (
    EnsureVersion
    | SetRoute
    | RemoveCanary
    | Look
    | Measure
    | Notify
    | PublishStatus
    | ResetOverride
    | LetGo
)
