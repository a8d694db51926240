"""What happens to a release: who asked for it, and why, stands in the event; when, beside it."""

import datetime as dt
import hashlib
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from fairlead.areas.content.domain.population import Share
from fairlead.areas.content.domain.release.place import Place, Versions
from fairlead.areas.content.domain.release.plan import Plan
from fairlead.checks.spec import Finding


class Ending(StrEnum):
    """How a run ended."""

    PROMOTED = "Promoted"
    REVERTED = "Reverted"
    DEPLOYMENT_FAILED = "DeploymentFailed"
    """Its new instances did not become ready."""

    SUPERSEDED = "Superseded"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A version that waits for review."""

    version: str
    plan: Plan
    place: Place
    by: str
    why: str
    emergency: bool = False
    parent: str = ""

    @property
    def revision(self) -> str:
        """What a review names: another proposal of the same version has another one."""
        whole = msgspec.json.encode(self, order="sorted")
        return hashlib.sha256(whole).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Proposed:
    """Event: somebody proposed a version."""

    name: str
    proposal: Proposal
    stable: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class ProposalClosed:
    """Event: the proposal is not carried out."""

    version: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Approved:
    """Event: somebody else reviewed the proposal; its run starts."""

    version: str
    by: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Superseded:
    """Event: a run ended, because a newer version takes its place."""

    version: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class ShareRequested:
    """Event: the share shall be this; from here on it may be."""

    share: Share
    order: int
    step: int | None
    """The step that this begins; None where the share goes to nobody."""

    by: str
    why: str


@dataclass(frozen=True, slots=True)
class ShareSet:
    """Event: the share is this."""

    share: Share
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class DeploymentStarted:
    """Event: the service shall have these versions."""

    versions: Versions
    order: int
    until: dt.datetime


@dataclass(frozen=True, slots=True)
class Deployed:
    """Event: the service has these versions, and no instance has others."""

    versions: Versions


@dataclass(frozen=True, slots=True)
class MeasurementRequested:
    """Event: a round of checks began."""

    ticket: int
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """Event: a round of checks was answered."""

    ticket: int
    findings: tuple[Finding, ...]
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class DecisionAwaited:
    """Event: a step is over, and a person has the word."""

    why: str


@dataclass(frozen=True, slots=True)
class PromotionStarted:
    """Event: the version becomes stable."""

    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Promoted:
    """Event: everybody gets the version, whatever the share still says."""

    version: str
    by: str
    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class RevertStarted:
    """Event: back to stable, for everybody."""

    ending: Ending
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Reverted:
    """Event: everybody gets stable, nobody is in the share, no canary is deployed."""

    version: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """Event: after a promotion, nobody is in the share any more."""


@dataclass(frozen=True, slots=True)
class Paused:
    """Event: the share does not rise, nothing is promoted."""

    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """Event: the pause is over."""

    by: str


@dataclass(frozen=True, slots=True)
class Stalled:
    """Event: what was asked of the world does not succeed; it is asked again."""

    why: str


Event = (
    Proposed
    | ProposalClosed
    | Approved
    | Superseded
    | ShareRequested
    | ShareSet
    | DeploymentStarted
    | Deployed
    | MeasurementRequested
    | Measured
    | DecisionAwaited
    | PromotionStarted
    | Promoted
    | RevertStarted
    | Reverted
    | Settled
    | Paused
    | Resumed
    | Stalled
)
