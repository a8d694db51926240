"""Many measurements: how many may go wrong, when a metric is done, and what a run makes of it.

The counting is that of Argo Rollouts, so that limits keep their meaning when they move here.
"""

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairlead import errors
from fairlead.analysis.conditions import Phase
from fairlead.values import check_span

RETRY_AFTER_ERROR = dt.timedelta(seconds=10)
# From best to worst: a run is as good as its worst metric.
ORDER = (
    Phase.SUCCESSFUL,
    Phase.RUNNING,
    Phase.PENDING,
    Phase.INCONCLUSIVE,
    Phase.ERROR,
    Phase.FAILED,
)
DONE = {Phase.SUCCESSFUL, Phase.INCONCLUSIVE, Phase.ERROR, Phase.FAILED}


class Action(enum.Enum):
    """What a finished run asks of the release."""

    GO_ON = "go on"
    PAUSE = "pause"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Limits:
    """How often a metric is measured, and how many of its measurements may go wrong."""

    # With neither, once; with an interval alone, until somebody ends it.
    count: int | None = None
    interval: dt.timedelta | None = None
    initial_delay: dt.timedelta = dt.timedelta()
    # So many may fail; one more and the metric has failed. -1: failures alone never end it.
    failure_limit: int = 0
    inconclusive_limit: int = 0
    consecutive_error_limit: int = 4
    # So many successes in a row end the metric well before its count; 0: they do not.
    consecutive_success_limit: int = 0

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise errors.Rejected(f"count below 1: {self.count}", hint="measure at least once")
        if (self.count or 1) > 1 and self.interval is None:
            hint = "say how long to wait between two measurements"
            raise errors.Rejected(f"count without an interval: {self.count}", hint=hint)
        if self.interval is not None and self.interval <= dt.timedelta():
            raise errors.Rejected(f"interval not above 0: {self.interval}", hint="use 30s or 1m")
        if self.initial_delay < dt.timedelta():
            raise errors.Rejected(f"delay below 0: {self.initial_delay}", hint="use 0s or more")
        check_span(self.interval or self.initial_delay, "interval")
        check_span(self.initial_delay, "initial delay")
        for name, least in (
            ("failure_limit", -1),
            ("inconclusive_limit", 0),
            ("consecutive_error_limit", 0),
            ("consecutive_success_limit", 0),
        ):
            value = getattr(self, name)
            if value < least:
                hint = f"use {least} or more"
                raise errors.Rejected(f"{name.replace('_', ' ')} too low: {value}", hint=hint)

    @property
    def most(self) -> int | None:
        """The number of measurements after which the metric is done; None: endless."""
        return 1 if self.count is None and self.interval is None else self.count


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted so far."""

    count: int = 0
    successful: int = 0
    failed: int = 0
    inconclusive: int = 0
    errors: int = 0
    consecutive_errors: int = 0
    consecutive_successes: int = 0
    last: Phase | None = None

    def add(self, phase: Phase) -> "Tally":
        """With one measurement more; an error counts as none, so that it is taken again."""
        then = replace(self, last=phase)
        if phase is Phase.ERROR:
            in_a_row = self.consecutive_errors + 1
            return replace(
                then, errors=self.errors + 1, consecutive_errors=in_a_row, consecutive_successes=0
            )
        then = replace(then, count=self.count + 1, consecutive_errors=0)
        match phase:
            case Phase.SUCCESSFUL:
                in_a_row = self.consecutive_successes + 1
                return replace(then, successful=self.successful + 1, consecutive_successes=in_a_row)
            case Phase.FAILED:
                return replace(then, failed=self.failed + 1, consecutive_successes=0)
            case Phase.INCONCLUSIVE:
                return replace(then, inconclusive=self.inconclusive + 1, consecutive_successes=0)
            case _:
                raise errors.Rejected(
                    f"a measurement ends in no such phase: {phase.value}",
                    hint="count only finished measurements",
                )


@dataclass(frozen=True, slots=True)
class Standing:
    """How a metric or a run stands, and why."""

    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True)
class MetricStanding:
    """One metric's part in a run; a dry run is measured and told, but does not count."""

    name: str
    standing: Standing
    dry_run: bool = False


def stand(limits: Limits, tally: Tally, *, ending: bool = False) -> Standing:
    """How the metric stands; `ending` says that no further measurement will be taken."""
    if tally.last is None:
        return _unmeasured(ending=ending)
    broken = _broken(limits, tally)
    if broken is not None:
        return broken
    goal = limits.consecutive_success_limit
    if goal and tally.consecutive_successes >= goal:
        return Standing(Phase.SUCCESSFUL, f"{tally.consecutive_successes} successes in a row")
    if limits.most is not None and tally.count >= limits.most:
        return _counted_out(limits, tally)
    if ending:
        return Standing(Phase.SUCCESSFUL, f"{_measured(limits, tally)}, within limits")
    return Standing(Phase.RUNNING, _measured(limits, tally))


def next_due(
    limits: Limits, tally: Tally, started: dt.datetime, measured: dt.datetime | None
) -> dt.datetime | None:
    """When to measure next, or None if the metric is done."""
    if measured is None or tally.last is None:
        return started + limits.initial_delay
    if stand(limits, tally).phase in DONE:
        return None
    if tally.last is Phase.ERROR or limits.interval is None:
        return measured + RETRY_AFTER_ERROR
    return measured + limits.interval


def conclude(metrics: Sequence[MetricStanding]) -> Standing:
    """A run is as good as its worst metric, and ends as soon as one has ended badly."""
    counted = [metric for metric in metrics if not metric.dry_run]
    if not counted:
        return Standing(Phase.SUCCESSFUL, "no metric counts")
    worst = max(counted, key=lambda metric: ORDER.index(metric.standing.phase))
    return Standing(worst.standing.phase, f"{worst.name}: {worst.standing.reason}")


def asked(phase: Phase) -> Action | None:
    """What a run in this phase asks of the release; None while it is under way."""
    match phase:
        case Phase.FAILED | Phase.ERROR:
            return Action.ABORT
        case Phase.INCONCLUSIVE:
            return Action.PAUSE
        case Phase.SUCCESSFUL:
            return Action.GO_ON
        case Phase.PENDING | Phase.RUNNING:
            return None


def _unmeasured(*, ending: bool) -> Standing:
    if ending:
        return Standing(Phase.SUCCESSFUL, "ended before the first measurement")
    return Standing(Phase.PENDING, "not measured yet")


def _broken(limits: Limits, tally: Tally) -> Standing | None:
    """The limit that was passed; of several, the last in this order tells."""
    standing = None
    if limits.failure_limit >= 0 and tally.failed > limits.failure_limit:
        told = f"{tally.failed} of {_counted(tally.count)} failed, limit {limits.failure_limit}"
        standing = Standing(Phase.FAILED, told)
    if tally.inconclusive > limits.inconclusive_limit:
        of = f"{tally.inconclusive} of {_counted(tally.count)} inconclusive"
        told = f"{of}, limit {limits.inconclusive_limit}"
        standing = Standing(Phase.INCONCLUSIVE, told)
    if tally.consecutive_errors > limits.consecutive_error_limit:
        told = f"{tally.consecutive_errors} errors in a row"
        standing = Standing(Phase.ERROR, f"{told}, limit {limits.consecutive_error_limit}")
    return standing


def _counted_out(limits: Limits, tally: Tally) -> Standing:
    told = f"{_measured(limits, tally)}, {tally.successful} successful"
    if not limits.consecutive_success_limit:
        return Standing(Phase.SUCCESSFUL, told)
    told += f", never {limits.consecutive_success_limit} in a row"
    if limits.failure_limit >= 0:
        return Standing(Phase.INCONCLUSIVE, told)
    return Standing(Phase.FAILED, told)


def _measured(limits: Limits, tally: Tally) -> str:
    """`3 of 5 measurements`, or how many there are of a metric without a count."""
    if limits.most is None:
        return _counted(tally.count)
    return f"{tally.count} of {_counted(limits.most)}"


def _counted(number: int) -> str:
    return f"{number} measurement{'' if number == 1 else 's'}"
