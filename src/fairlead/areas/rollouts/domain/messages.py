"""What comes to a rollout (commands) and what it asks of the world (effects)."""

import datetime as dt
from dataclasses import dataclass

from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.checks.spec import Check, Finding
from fairlead.traffic.routes import Route


@dataclass(frozen=True, slots=True)
class Request:
    """Command: the whole intent as it stands now; said again, it changes nothing."""

    name: str
    spec: Spec
    version: Version
    replicas: int | None = None
    """None: somebody else, an autoscaler, decides."""

    override: bool = False
    generation: int = 0
    running: Version | None = None
    """What the primary was found to hold; it counts where nothing else is remembered."""

    by: str = ""
    """Who deploys it, where that is known."""

    live: bool = False
    """Whether what runs had its users before this rollout, and is held as it was found."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Command: the whole world as it stands now."""

    observed: Observation


@dataclass(frozen=True, slots=True)
class Judged:
    """Command: the answers to one round of checks."""

    ticket: int
    findings: tuple[Finding, ...]
    traffic: tuple[SlotTraffic, ...] = ()
    """Of each slot, where the platform counts requests: for the history, it decides nothing."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Command: a moment that was waited for has come."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Command: take no further step up; a rollback is still possible."""

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
    """Command: return all traffic to the stable version and give this one up."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Command: try the desired version again after it was rolled back."""

    by: str


@dataclass(frozen=True, slots=True)
class RollBackTo:
    """Command: bring back a kept revision, without steps."""

    revision: str
    """Empty: the last good one."""

    by: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Command: the rollout was deleted, or a person deletes it."""

    by: str = ""
    """Empty where the object behind it is gone, or its owner says so."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Command: the store is empty, but the object's status remembers."""

    status: RolloutStatus


@dataclass(frozen=True, slots=True)
class Grant:
    """Command from the limiter: a slot is free, start."""


@dataclass(frozen=True, slots=True)
class ProceedTogether:
    """Command from the group: everybody has arrived at this gate."""

    gate: str


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Command from the group: a member rolled back, so do all."""

    why: str


@dataclass(frozen=True, slots=True)
class Follow:
    """Command from a step of a plan: take this request, and tell how its version ends.

    Asked so, a version that was rolled back before is tried again.
    """

    request: Request
    follower: str
    """The stream that hears of the end."""


@dataclass(frozen=True, slots=True)
class FallAsleep:
    """Command from a step of a plan: let nothing run until another version is requested."""

    follower: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Command from the step that follows: nobody waits for its version any more, so give it up."""

    follower: str
    why: str


Command = (
    Request
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
    | ProceedTogether
    | LeaveGroup
    | Follow
    | FallAsleep
    | Abandon
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
class Observe:
    """Effect: observe what there is, and answer with an Observed."""

    name: str


@dataclass(frozen=True, slots=True)
class Measure:
    """Effect: answer these checks about the canary beside what it is held against, as a Judged."""

    name: str
    ticket: int
    checks: tuple[Check, ...]
    primary: Version
    canary: Version
    weight: int
    since: dt.datetime
    """When the canary reached this weight: older samples belong to another one."""

    control: Slot = Slot.PRIMARY
    """Who runs `primary` for the judge: the primary's slot, or the baseline where it has traffic.

    At 100 % neither does; then it is the one of the step before, by its requests of that time.
    """

    hold: dt.timedelta = dt.timedelta()
    """How long this step is planned to be, so that the judge knows how often it will look."""

    steps: int = 1
    """How many verdicts, at all steps, share the judge's chance of a false alarm."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Effect: notify people."""

    name: str
    kind: str
    text: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class PublishStatus:
    """Effect: show this on the object; a lower round after a higher one is old news."""

    name: str
    status: RolloutStatus


@dataclass(frozen=True, slots=True)
class ResetOverride:
    """Effect: set the override flag of the object back to false."""

    name: str


@dataclass(frozen=True, slots=True)
class ReleaseResources:
    """Effect: the rollout is gone; give back what was never ours, make nothing."""

    name: str
    order: int


Effect = (
    EnsureVersion
    | SetRoute
    | RemoveCanary
    | Observe
    | Measure
    | Notify
    | PublishStatus
    | ResetOverride
    | ReleaseResources
)
