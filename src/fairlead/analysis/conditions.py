"""One measurement: what was asked, what was answered, and whether that is good.

Metrics that are not compared with control are measured again and again; each answer becomes a
measurement here, and `limits` says how many bad ones a metric may have.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any, assert_never

from fairlead import errors
from fairlead.analysis import condition_arity, condition_names, evaluation, expression, verdict
from fairlead.analysis.requests import Requests


class Phase(enum.Enum):
    """How a measurement, a metric or a whole run stands."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCESSFUL = "Successful"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read, and can be asked."""

    source: str
    tree: expression.Node

    def holds(self, result: Any) -> bool:
        return evaluation.holds(self.source, self.tree, {"result": result})


@dataclass(frozen=True, slots=True)
class Conditions:
    """What makes a result a success, and what makes it a failure; either may be left out."""

    success: Condition | None = None
    failure: Condition | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range in which every number of the result must lie."""

    low: float | None = None
    high: float | None = None


Criteria = Conditions | Bounds


def one_number(criteria: Criteria) -> bool:
    """Whether these are held against a single number, so that several make no sense."""
    match criteria:
        case Bounds():
            return False
        case Conditions():
            given = (criteria.success, criteria.failure)
            return not any(one and condition_arity.wants_list(one.tree) for one in given)
        case unreachable:
            assert_never(unreachable)


@dataclass(frozen=True, slots=True)
class Answered:
    """The question has a value: a number, a list of numbers, or what a web page said."""

    value: Any
    requests: Requests | None = None
    """What the value was taken from, where the source counts it."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The question was understood, and there is no data."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The question could not be asked, or not be understood."""

    reason: str
    of: str = "metric"


Answer = Answered | Silent | Unanswered


@dataclass(frozen=True, slots=True)
class MetricLabel:
    """How a number is called in a sentence, and its unit."""

    title: str = "result"
    unit: str = ""

    def amount(self, value: Any) -> str:
        return f"{shown(value)} {self.unit}".rstrip()


UNNAMED = MetricLabel()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One answer, judged, and why; with the number that decided and its limit where both are."""

    phase: Phase
    reason: str
    value: float | None = None
    limit: float | None = None


def read(source: str) -> Condition:
    """The condition in this text, or Rejected with where it went wrong."""
    tree = expression.parse(source)
    condition_names.check(source, tree)
    return Condition(source, tree)


def measure(
    answer: Answer,
    criteria: Criteria,
    no_data: verdict.NoData | None = verdict.NoData.WAIT,
    metric: MetricLabel = UNNAMED,
) -> Measurement | None:
    """The measurement, or None if there is nothing to count yet.

    Without a policy for no data, the conditions decide: they see an empty list.
    """
    match answer:
        case Unanswered(reason, of):
            return Measurement(Phase.ERROR, f"the {of} could not be read: {reason}")
        case Silent(reason):
            return _silent([], criteria, no_data, reason)
        case Answered(value):
            if _is_silent(value):
                return _silent(value, criteria, no_data)
            return _judged(value, criteria, metric)
        case unreachable:
            assert_never(unreachable)


def _is_silent(value: Any) -> bool:
    """Nothing, an empty list, or no number at all: Prometheus says 0/0 where nobody called."""
    listed = value if isinstance(value, list) else [value]
    return all(one is None or (isinstance(one, float) and math.isnan(one)) for one in listed)


def _silent(
    value: Any, criteria: Criteria, no_data: verdict.NoData | None, reason: str = ""
) -> Measurement | None:
    match no_data:
        case None:
            return _judged(value, criteria)
        case verdict.NoData.WAIT:
            return None
        case verdict.NoData.PASS:
            phase = Phase.SUCCESSFUL
        case verdict.NoData.FAIL:
            phase = Phase.FAILED
        case verdict.NoData.INCONCLUSIVE:
            phase = Phase.INCONCLUSIVE
    told = f"no data: {reason}" if reason else "no data"
    return Measurement(phase, f"{told}; the policy is {no_data.value}")


def _judged(value: Any, criteria: Criteria, metric: MetricLabel = UNNAMED) -> Measurement:
    try:
        match criteria:
            case Bounds():
                return _bounded(value, criteria, metric)
            case Conditions():
                return _conditioned(value, criteria, metric)
            case unreachable:
                assert_never(unreachable)
    except errors.Rejected as error:
        return Measurement(Phase.ERROR, f"{error.message}; {error.hint}")
    except (ArithmeticError, ValueError, RecursionError) as error:
        # Whoever answers may say anything, such as a number of 400 digits. It is an error of this
        # check, for the others of the round have their answers.
        return Measurement(Phase.ERROR, f"the result is no number to compute with: {error}")


def _conditioned(value: Any, given: Conditions, metric: MetricLabel) -> Measurement:
    said = f"{metric.title} {metric.amount(value)}"
    phase, reason, by = _by_conditions(value, given, said)
    limit = condition_arity.limit(by.tree) if by is not None else None
    return Measurement(phase, reason, _number(value), limit)


def _by_conditions(value: Any, given: Conditions, said: str) -> tuple[Phase, str, Condition | None]:
    """The phase, why, and the condition that decided."""
    success, failure = given.success, given.failure
    if failure is not None and failure.holds(value):
        return Phase.FAILED, f"{said} meets {failure.source}", failure
    if success is not None:
        if success.holds(value):
            return Phase.SUCCESSFUL, f"{said} meets {success.source}", success
        if failure is None:
            return Phase.FAILED, f"{said} does not meet {success.source}", success
        return Phase.INCONCLUSIVE, f"{said} is neither a success nor a failure", success
    if failure is not None:
        return Phase.SUCCESSFUL, f"{said} does not meet {failure.source}", failure
    return Phase.SUCCESSFUL, f"{said}, no limit", None


def _bounded(value: Any, given: Bounds, metric: MetricLabel) -> Measurement:
    numbers = value if isinstance(value, list) else [value]
    if not numbers:
        return Measurement(Phase.FAILED, "no number to compare with its limits")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            reason = f"limits need numbers, and the result is {shown(value)}"
            return Measurement(Phase.ERROR, reason)
        for limit, is_beyond in (
            (given.low, given.low is not None and not number >= given.low),
            (given.high, given.high is not None and not number <= given.high),
        ):
            if is_beyond and limit is not None:
                return _against(number, limit, metric, Phase.FAILED)
    return _within(numbers, given, metric)


def _against(number: float, limit: float, metric: MetricLabel, phase: Phase) -> Measurement:
    said = f"{metric.title} {metric.amount(number)}, limit {metric.amount(limit)}"
    return Measurement(phase, said, float(number), limit)


def _within(numbers: list[float], given: Bounds, metric: MetricLabel) -> Measurement:
    """The number that is nearest to a limit tells."""
    limits = [limit for limit in (given.low, given.high) if limit is not None]
    if not limits:
        return Measurement(Phase.SUCCESSFUL, f"{metric.title} {shown(numbers)}, no limit")
    number, limit = min(
        ((number, limit) for number in numbers for limit in limits),
        key=lambda pair: abs(pair[0] - pair[1]),
    )
    if len(limits) == 1:
        return _against(number, limit, metric, Phase.SUCCESSFUL)
    both = f"limits {shown(limits[0])} to {metric.amount(limits[1])}"
    said = f"{metric.title} {metric.amount(number)}, {both}"
    return Measurement(Phase.SUCCESSFUL, said, float(number), limit)


def _number(value: Any) -> float | None:
    """The value where it is one number."""
    if isinstance(value, list):
        return _number(value[0]) if len(value) == 1 else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def shown(value: Any, limit: int = 80) -> str:
    """The value for a sentence: short, whatever was answered."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and len(value) == 1:
        return shown(value[0])
    said = repr(value[:20] if isinstance(value, list | str) else value)
    return said if len(said) <= limit else f"{said[:limit]}…"
