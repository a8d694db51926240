"""What happened to a rollout, in the past tense; each effect follows from one of these."""

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Any

from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.checks.spec import Finding
from fairlead.traffic.routes import Route


class Ending(enum.Enum):
    """How a run ended."""

    PROMOTED = "Promoted"
    ROLLED_BACK = "RolledBack"
    SUPERSEDED = "Superseded"
    REVERTED = "Reverted"


@dataclass(frozen=True, slots=True)
class PendingRun:
    """A run that is to follow as soon as nothing else is in progress."""

    version: Version
    why: str
    skip_steps: bool = False
    override: bool = False


@dataclass(frozen=True, slots=True)
class Initialized:
    """Event: the initial rollout starts."""

    name: str
    spec: Spec
    version: Version
    replicas: int | None
    generation: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Reinitialized:
    """Event: before the initial version had traffic, another one was requested."""

    version: Version
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class WentLive:
    """Event: the initial version has all traffic."""

    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Respecified:
    """Event: the spec changed, the version did not; a run in progress keeps its rules."""

    spec: Spec
    replicas: int | None
    generation: int


@dataclass(frozen=True, slots=True)
class OverrideChanged:
    """Event: the override flag was set or unset."""

    on: bool


@dataclass(frozen=True, slots=True)
class Requested:
    """Event: a version was requested; `due` where a run for it is to follow."""

    version: Version
    due: bool
    why: str
    override: bool = False


@dataclass(frozen=True, slots=True)
class RunDue:
    """Event: a person asked for a run, of a version that is known already."""

    pending: PendingRun


@dataclass(frozen=True, slots=True)
class RunQueued:
    """Event: a run of its own waits to begin."""

    number: int
    pending: PendingRun
    spec: Spec
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class SlotRequested:
    """Event: the limiter was asked for a slot."""

    limiter: str


@dataclass(frozen=True, slots=True)
class SlotGranted:
    """Event: the limiter granted a slot."""


@dataclass(frozen=True, slots=True)
class WindowAwaited:
    """Event: no step up before this moment."""

    until: dt.datetime


@dataclass(frozen=True, slots=True)
class ShiftStarted:
    """Event: the canary shifts to a step."""

    step: int
    weight: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class StepReached:
    """Event: the proxies show the step's route; analysis starts."""

    step: int
    weight: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class MeasurementRequested:
    """Event: a round of checks was requested."""

    ticket: int
    checks: tuple[str, ...]
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Measured:
    """Event: a round of checks was answered, with the reasons."""

    ticket: int
    findings: tuple[Finding, ...]
    at: dt.datetime
    traffic: tuple[SlotTraffic, ...] = ()
    """What the slots did with their requests meanwhile, so that a run can be looked at later."""


@dataclass(frozen=True, slots=True)
class Approved:
    """Event: a person agreed."""

    by: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class StepsSkipped:
    """Event: what is left of steps, checks and bake time is skipped."""

    by: str
    override: bool = False


@dataclass(frozen=True, slots=True)
class GateReached:
    """Event: we wait for the group at a gate."""

    gate: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class GatePassed:
    """Event: the whole group has arrived."""

    gate: str


@dataclass(frozen=True, slots=True)
class PromotionStarted:
    """Event: the new version has all traffic and becomes the primary."""

    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Stalled:
    """Event: it takes longer than it should; traffic stays where it is."""

    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RollbackStarted:
    """Event: the canary is given up, and its traffic returns to the stable version."""

    why: str
    ending: Ending
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class VersionRequested:
    """Event: a version at a scale was asked of the platform."""

    order: int
    slot: Slot
    version: Version
    replicas: int | None
    at_least: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RouteRequested:
    """Event: a route was asked of the router, and why."""

    order: int
    route: Route
    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RemovalRequested:
    """Event: the canary has no traffic and is out of the route: it may be removed."""

    order: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class ObservationRequested:
    """Event: nothing was reported for a while, so we observe and ask again what is open."""

    nth: int
    at: dt.datetime
    next: dt.datetime


@dataclass(frozen=True, slots=True)
class ObservationRecorded:
    """Event: something changed in what is observed."""

    observed: Observation


@dataclass(frozen=True, slots=True)
class Drifted:
    """Event: somebody else changed what is ours; it is restored."""

    what: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Paused:
    """Event: no further step up."""

    by: str
    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Resumed:
    """Event: steps up again."""

    by: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Event: the run is over, and why."""

    ending: Ending
    target: Version
    why: str
    at: dt.datetime
    override: bool = False
    """The run was one the override flag had asked for."""

    unheard: bool = False
    """The group does not know yet."""

    spec: Spec | None = None
    """The run's rules, which name its limiter and its group."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Event: a step of a plan waits for the end of this version."""

    follower: str
    version: Version


@dataclass(frozen=True, slots=True)
class FollowEnded:
    """Event: who followed hears how it ended."""

    follower: str
    succeeded: bool
    reason: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """Event: a timer came early; it is set again."""

    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Adopted:
    """Event: the memory was taken over from the object's status."""

    memory: dict[str, Any]
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Removed:
    """Event: the rollout is gone."""

    at: dt.datetime
    by: str = ""


Event = (
    Initialized
    | Reinitialized
    | WentLive
    | Respecified
    | OverrideChanged
    | Requested
    | RunDue
    | RunQueued
    | SlotRequested
    | SlotGranted
    | WindowAwaited
    | ShiftStarted
    | StepReached
    | MeasurementRequested
    | Measured
    | Approved
    | StepsSkipped
    | GateReached
    | GatePassed
    | PromotionStarted
    | Stalled
    | RollbackStarted
    | VersionRequested
    | RouteRequested
    | RemovalRequested
    | ObservationRequested
    | ObservationRecorded
    | Drifted
    | Paused
    | Resumed
    | RunEnded
    | Followed
    | FollowEnded
    | TimerFired
    | Adopted
    | Removed
)
