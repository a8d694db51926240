"""What a check asks on the way of a release, and what counts as a good answer; pure.

The one module of this floor that a domain may know: its machine keeps checks and their findings,
and leaves it to handlers to have them answered.
"""

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead import errors
from fairlead.analysis import conditions, document
from fairlead.analysis.conditions import MetricLabel, Phase
from fairlead.analysis.limits import Limits
from fairlead.analysis.policy import Counts, MetricSummary
from fairlead.analysis.requests import Requests
from fairlead.analysis.verdict import NoData
from fairlead.values import check_span

LEAST_WINDOW = dt.timedelta(seconds=1)
_MS = dt.timedelta(milliseconds=1)
USUAL_WINDOW = dt.timedelta(minutes=1)


PROMETHEUS = "prometheus"
WEB = "web"
WEBHOOK = "webhook"
"""Providers that ship, by the names of their files."""


SUCCESS_RATE = "request-success-rate"
REQUEST_DURATION = "request-duration"
REQUEST_COUNT = "request-count"
"""How many requests a built-in metric is of; asked beside it, not by itself."""
BUILT_IN = {
    SUCCESS_RATE: MetricLabel("success rate", "%"),
    REQUEST_DURATION: MetricLabel("p99 latency", "ms"),
}
"""The metrics that need no query of one's own, in every source that counts requests."""


class CheckKind(enum.Enum):
    """What is asked: a number, a comparison of both sides, or leave to pass."""

    METRIC = "metric"
    JUDGE = "judge"
    GATE = "gate"


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

    kind: CheckKind = CheckKind.METRIC
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

    source: str = ""
    """The provider that answers, by its name in the registry; empty for the usual one."""

    unit: str = ""
    """Of the number and its limits; a built-in metric has its own."""

    min_requests: int | None = None
    """Of how many requests a built-in metric must be; None: as many as its limit needs."""

    def __post_init__(self) -> None:
        if not self.name:
            raise errors.Rejected("check without a name", hint="name it after what it watches")
        bounded = self.low is not None or self.high is not None
        if bounded and (self.success or self.failure):
            raise errors.Rejected(
                f"check has both bounds and conditions: {self.name}", hint="use one of them"
            )
        if self.window is not None and self.window < LEAST_WINDOW:
            raise errors.Rejected(
                f"check window below 1 s: {self.window / _MS:g} ms", hint="use 30s or 1m"
            )
        check_span(self.span, "check window")
        if self.min_requests is not None and self.min_requests < 1:
            raise errors.Rejected(
                f"check with fewer than one request: {self.min_requests}", hint="use 1 or more"
            )
        self.criteria()
        if self.kind is CheckKind.JUDGE:
            document.check(self.judge)

    @property
    def span(self) -> dt.timedelta:
        """The time over which a number is taken."""
        return self.window or self.limits.interval or USUAL_WINDOW

    @property
    def metric(self) -> MetricLabel:
        """How its number is called."""
        known = BUILT_IN.get(self.query) if self.kind is CheckKind.METRIC else None
        return known or MetricLabel(unit=self.unit)

    def criteria(self) -> conditions.Criteria:
        """What the answer is held against; Rejected where a condition cannot be read."""
        if self.low is not None or self.high is not None:
            return conditions.Bounds(self.low, self.high)
        return conditions.Conditions(
            conditions.read(self.success) if self.success else None,
            conditions.read(self.failure) if self.failure else None,
        )


def judgements(checks: Sequence[Check], steps: int) -> int:
    """How many verdicts of judges can end a release of so many steps: these share the promise."""
    judges = [check for check in checks if check.kind is CheckKind.JUDGE and not check.dry_run]
    return max(1, sum(steps if check.when is When.STEP else 1 for check in judges))


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer, judged; no phase means that there is nothing to count yet."""

    check: str
    phase: Phase | None
    reason: str
    value: float | None = None
    """The number that decided; the score of a judge."""

    limit: float | None = None
    """What the value was held against, where that is one number."""

    unit: str = ""
    """Of both."""

    requests: Requests | None = None
    """What the value was taken from, where the source counts it."""

    counts: Counts | None = None
    """What a judge had of both sides, and how much it needs."""

    metrics: tuple[MetricSummary, ...] = ()
    """What a judge made of each metric."""
