"""Whom checks are asked about: a release with two versions beside each other, of any area.

An area maps its effect to a subject, and tells by a `Naming` how metrics know its sides.
"""

import datetime as dt
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass


class Side(enum.Enum):
    """Where a version runs, and is measured."""

    PRIMARY = "primary"
    CANARY = "canary"
    BASELINE = "baseline"
    """The stable version once more, as young as the canary and with as much to do."""


@dataclass(frozen=True, slots=True)
class Version:
    """One side's version: the name it can be made by again, and what people call it."""

    revision: str
    label: str


@dataclass(frozen=True, slots=True)
class Subject:
    """The release at this moment."""

    name: str
    ticket: int
    """Which round of questions this is: the same for every try of one."""

    primary: Version
    canary: Version
    weight: float
    """The canary's, in percent; a population's share goes down to 0.01."""

    since: dt.datetime
    """When the canary reached this weight: older samples tell of another weight."""

    control: Side = Side.PRIMARY
    """Who runs `primary` for the judge: the primary itself, or a baseline where it carries.

    At 100 % neither does; then it is the one of the step before, by its requests of that time.
    """

    hold: dt.timedelta = dt.timedelta()
    """How long the release is planned to stay at this weight."""

    steps: int = 1
    """How many verdicts of judges it is to have in all, at its weights one after the other."""

    def version(self, side: Side) -> Version:
        return self.canary if side is Side.CANARY else self.primary


@dataclass(frozen=True, slots=True)
class Names:
    """Under which names the metrics know one side of a release."""

    metrics: Mapping[str, str]
    """Templates of the built-in metrics, by whoever counts its requests; none where nobody does."""

    arguments: Mapping[str, str]
    """What queries may ask for: namespace, target, service and port on Kubernetes, cluster on
    the local platform. `rollout`, `revision`, `weight` and `interval` are added by the source."""


Naming = Callable[[Subject, Side], Names]
"""A platform's answer, at once and from memory; NotFound for a release that it does not run."""


@dataclass(frozen=True, slots=True)
class News:
    """Something worth telling people about a release."""

    name: str
    kind: str
    text: str
    at: dt.datetime
