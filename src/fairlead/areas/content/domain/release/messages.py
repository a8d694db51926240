"""What a release is told, and what it asks of the world."""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

from fairlead.areas.content.domain.population import Share
from fairlead.areas.content.domain.release.place import Place, Versions
from fairlead.areas.content.domain.release.plan import Plan
from fairlead.checks.spec import Check, Finding


@dataclass(frozen=True, slots=True)
class Propose:
    """Command: this version shall be released; nothing happens before somebody else approves."""

    name: str
    version: str
    plan: Plan
    place: Place
    by: str
    why: str
    stable: str = ""
    """What is deployed, told once, with the first release of a content that is served already."""

    emergency: bool = False
    """At once for everybody, without a canary."""

    parent: str = ""


@dataclass(frozen=True, slots=True)
class Approve:
    """Command: the proposal may be carried out; never by who proposed it."""

    by: str
    revision: str = ""
    """Of the proposal that was reviewed: another may have taken its place since then."""


@dataclass(frozen=True, slots=True)
class Reject:
    """Command: the proposal is not carried out."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Advance:
    """Command: raise the share to the next step, which waits for a person."""

    by: str


@dataclass(frozen=True, slots=True)
class Promote:
    """Command: the analysis is good; make the canary stable."""

    by: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Command: do not raise the share and do not promote; checks may still revert."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Command: go on after a pause."""

    by: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Command: end the canary; everybody gets stable."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ShareConfirmed:
    """Command, the answer to SetShare: it is in force."""

    order: int


@dataclass(frozen=True, slots=True)
class DeploymentReady:
    """Command, the answer to Deploy: no instance has other versions."""

    order: int


@dataclass(frozen=True, slots=True)
class DeploymentFailed:
    """Command, the answer to Deploy: new instances will not become ready; old ones serve on."""

    order: int
    reason: str


@dataclass(frozen=True, slots=True)
class Judged:
    """Command, the answer to Measure."""

    ticket: int
    findings: tuple[Finding, ...]


class Timer(StrEnum):
    """What a release waits for; each has one timer."""

    SHARE = "share"
    """It should be set by then."""

    EMPTY = "empty"
    """Every instance has heard by then that nobody is in the share."""

    DEPLOYMENT = "deployment"
    """New instances must be ready by then."""

    BAKE = "bake"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Wake:
    """Command of a timer: the moment has come."""

    timer: Timer
    order: int


@dataclass(frozen=True, slots=True)
class SetShare:
    """Effect: let this share of the population into the canary, and answer when it is so."""

    name: str
    order: int
    place: Place
    salt: str
    share: Share
    canary: str = ""
    """The version that this is a share of; empty while no run is in progress."""


@dataclass(frozen=True, slots=True)
class Deploy:
    """Effect: let the service have these versions, and answer when it has.

    An old instance goes only when a new one has loaded both versions and is ready.
    """

    name: str
    order: int
    place: Place
    versions: Versions


@dataclass(frozen=True, slots=True)
class Measure:
    """Effect: have these checks answered."""

    name: str
    ticket: int
    checks: tuple[Check, ...]
    versions: Versions
    share: Share
    since: dt.datetime
    bake: dt.timedelta
    steps: int
    """How many verdicts of judges, at all steps, share the chance of a false alarm."""


Effect = SetShare | Deploy | Measure
