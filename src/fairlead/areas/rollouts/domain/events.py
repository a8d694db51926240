"""What happened to a rollout, in the past tense; each effect follows from one of these."""

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Any

from fairlead.domain.rollouts.messages import Finding, Slot
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Spec, Version
from fairlead.domain.traffic.routes import Route


class Ending(enum.Enum):
    """How a run ended."""

    PROMOTED = "Promoted"
    TAKEN_BACK = "TakenBack"
    SUPERSEDED = "Superseded"
    REVERTED = "Reverted"


@dataclass(frozen=True, slots=True)
class Errand:
    """A run that is to follow as soon as we are home."""

    version: Version
    why: str
    straight: bool = False
    override: bool = False


@dataclass(frozen=True, slots=True)
class Founded:
    """Event: the first version is to be made."""

    name: str
    spec: Spec
    version: Version
    replicas: int | None
    generation: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Refounded:
    """Event: before the first version carried traffic, another one was wanted."""

    version: Version
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class WentLive:
    """Event: the first version carries the traffic."""

    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Respecified:
    """Event: the wish changed, the version did not; a run under way keeps its rules."""

    spec: Spec
    replicas: int | None
    generation: int


@dataclass(frozen=True, slots=True)
class OverrideSeen:
    """Event: the override flag was seen in another position."""

    on: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """Event: a version is wanted; `due` where a run for it is to follow."""

    version: Version
    due: bool
    why: str
    override: bool = False


@dataclass(frozen=True, slots=True)
class RunDue:
    """Event: a person asked for a run, of a version that is known already."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class RunQueued:
    """Event: a run of its own waits to begin."""

    number: int
    errand: Errand
    spec: Spec
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class SlotAsked:
    """Event: the limiter was asked for room."""

    limiter: str


@dataclass(frozen=True, slots=True)
class SlotGranted:
    """Event: the limiter gave room."""


@dataclass(frozen=True, slots=True)
class WindowAwaited:
    """Event: no step up before this moment."""

    until: dt.datetime


@dataclass(frozen=True, slots=True)
class MoveBegan:
    """Event: the canary is on its way to a step."""

    step: int
    share: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class StepReached:
    """Event: the proxies show the step's route; from here on it is watched."""

    step: int
    share: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class MeasureAsked:
    """Event: a round of checks was asked for."""

    ticket: int
    checks: tuple[str, ...]
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Measured:
    """Event: a round of checks was answered, with the reasons."""

    ticket: int
    findings: tuple[Finding, ...]
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Approved:
    """Event: a person agreed."""

    by: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Straightened:
    """Event: what is left of steps, checks and bake time is skipped."""

    by: str
    override: bool = False


@dataclass(frozen=True, slots=True)
class GateReached:
    """Event: the group was told that we wait at a gate."""

    gate: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class GatePassed:
    """Event: the whole group has arrived."""

    gate: str


@dataclass(frozen=True, slots=True)
class PromotionBegan:
    """Event: the new version carries all traffic and becomes the primary."""

    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Stalled:
    """Event: it takes longer than it should; traffic stays where it is."""

    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class HomeBegan:
    """Event: the canary is given up, and its traffic goes home."""

    why: str
    ending: Ending
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class VersionAsked:
    """Event: a version at a scale was asked of the platform."""

    order: int
    slot: Slot
    version: Version
    replicas: int | None
    at_least: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RouteAsked:
    """Event: a route was asked of the router, and why."""

    order: int
    route: Route
    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RemovalAsked:
    """Event: the canary carries nothing, the proxies have let go of it: it may leave."""

    order: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class LookAsked:
    """Event: nothing was heard for a while, so we look ourselves and ask again what is open."""

    nth: int
    at: dt.datetime
    next: dt.datetime


@dataclass(frozen=True, slots=True)
class Sighted:
    """Event: something changed in what is seen."""

    sight: Sight


@dataclass(frozen=True, slots=True)
class Drifted:
    """Event: somebody else changed what is ours; it is put back."""

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
    """The group has not been told yet."""

    spec: Spec | None = None
    """The run's rules, which name its limiter and its group."""


@dataclass(frozen=True, slots=True)
class Woke:
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


Event = (
    Founded
    | Refounded
    | WentLive
    | Respecified
    | OverrideSeen
    | Wanted
    | RunDue
    | RunQueued
    | SlotAsked
    | SlotGranted
    | WindowAwaited
    | MoveBegan
    | StepReached
    | MeasureAsked
    | Measured
    | Approved
    | Straightened
    | GateReached
    | GatePassed
    | PromotionBegan
    | Stalled
    | HomeBegan
    | VersionAsked
    | RouteAsked
    | RemovalAsked
    | LookAsked
    | Sighted
    | Drifted
    | Paused
    | Resumed
    | RunEnded
    | Woke
    | Adopted
    | Removed
)
