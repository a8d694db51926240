"""What a user wants of a rollout: the strategy, the checks, the limits around them."""

import datetime as dt
import enum
import re
from dataclasses import dataclass, field
from typing import Any

from fairlead import errors
from fairlead.domain.analysis import conditions, document
from fairlead.domain.analysis.limits import Limits
from fairlead.domain.analysis.verdict import NoData
from fairlead.domain.rollouts.strategy import Strategy
from fairlead.domain.rollouts.windows import Window

LEAST_WINDOW = dt.timedelta(seconds=1)
USUAL_WINDOW = dt.timedelta(minutes=1)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}")


class Source(enum.Enum):
    """Who answers a check."""

    QUERY = "query"
    JUDGE = "judge"
    GATE = "gate"
    WEB = "web"


class When(enum.Enum):
    """Where on the way a check stands."""

    START = "start"
    STEP = "step"
    PROMOTION = "promotion"
    """Only at the last step before all traffic moves."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question that is asked on the way, and what counts as a good answer."""

    name: str
    query: str = ""
    """The metric's query, or the address of the gate or the number, as the source reads it."""

    source: Source = Source.QUERY
    when: When = When.STEP
    success: str | None = None
    failure: str | None = None
    low: float | None = None
    high: float | None = None
    no_data: NoData = NoData.WAIT
    limits: Limits = Limits()
    dry_run: bool = False
    judge: dict[str, Any] = field(default_factory=dict)
    """The judge's configuration, as `fairlead judge` reads it, with a query for each metric."""

    window: dt.timedelta | None = None
    """The time over which a number is taken, and the judge's step; None: the interval of the
    limits, else a minute."""

    server: str = ""
    """Which of the operator's metrics servers is asked; empty for the usual one."""

    def __post_init__(self) -> None:
        if not self.name:
            raise errors.Rejected("a check without a name", hint="name it after what it watches")
        bounded = self.low is not None or self.high is not None
        if bounded and (self.success or self.failure):
            raise errors.Rejected(
                f"both bounds and conditions on a check: {self.name}", hint="use one of them"
            )
        if self.window is not None and self.window < LEAST_WINDOW:
            raise errors.Rejected(
                f"window of a check below {LEAST_WINDOW}: {self.window}", hint="use 30s or 1m"
            )
        self.criteria()
        if self.source is Source.JUDGE:
            document.check(self.judge)

    @property
    def span(self) -> dt.timedelta:
        """The time over which a number is taken."""
        return self.window or self.limits.interval or USUAL_WINDOW

    def criteria(self) -> conditions.Criteria:
        """What the answer is held against; Rejected where a condition cannot be read."""
        if self.low is not None or self.high is not None:
            return conditions.Bounds(self.low, self.high)
        return conditions.Conditions(
            conditions.read(self.success) if self.success else None,
            conditions.read(self.failure) if self.failure else None,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Rollouts that are promoted together or not at all."""

    name: str
    members: tuple[str, ...]
    me: str = ""
    """What the members call this rollout; empty where they know it by its own name."""

    def __post_init__(self) -> None:
        _check_name("group", self.name)
        if len(set(self.members)) != len(self.members) or not self.members:
            raise errors.Rejected(
                f"members of a group missing or named twice: {self.name}",
                hint="name each rollout of the group once",
            )


@dataclass(frozen=True, slots=True)
class Limiter:
    """How many rollouts of one namespace may be under way at once."""

    name: str
    cap: int

    def __post_init__(self) -> None:
        _check_name("limiter", self.name)
        if self.cap < 1:
            raise errors.Rejected(f"cap below 1: {self.cap}", hint="let at least one run")


@dataclass(frozen=True, slots=True)
class Spec:
    """The whole wish, besides the version itself."""

    strategy: Strategy = Strategy()
    checks: tuple[Check, ...] = ()
    deadline: dt.timedelta = dt.timedelta(minutes=10)
    """How long a step may take to get ready before the rollout goes home."""

    patience: dt.timedelta = dt.timedelta(hours=1)
    """How long a step may wait for data, gates or its group before it pauses for a person."""

    windows: tuple[Window, ...] = ()
    group: Group | None = None
    limiter: Limiter | None = None
    keep: int = 10
    """How many old revisions one can roll back to."""

    def __post_init__(self) -> None:
        names = [check.name for check in self.checks]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise errors.Rejected(
                f"two checks of one name: {', '.join(twice)}", hint="name each differently"
            )
        if min(self.deadline, self.patience) <= dt.timedelta():
            raise errors.Rejected("deadline or patience not above 0", hint="use 10m or 1h")
        if self.keep < 1:
            raise errors.Rejected(f"kept revisions below 1: {self.keep}", hint="keep at least one")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a workload: what its template and its configs mean, and how people call it."""

    revision: str
    """The name under which the platform can make it again."""

    template: str
    configs: str = ""
    label: str = ""

    @property
    def meaning(self) -> tuple[str, str]:
        return self.template, self.configs

    def __str__(self) -> str:
        return self.label or self.revision


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise errors.Rejected(
            f"not a name of a {what}: {name[:80]!r}", hint="use letters, digits or . _ : / @ -"
        )
