"""One measurement: what was asked, what was answered, and whether that is good.

Metrics that are not compared with control are measured again and again; each answer becomes a
measurement here, and `limits` says how many bad ones a metric may have.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any, assert_never

from fairlead import errors
from fairlead.domain.analysis import evaluation, expression, shape, verdict


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
            return not any(one and shape.wants_list(one.tree) for one in given)
        case unreachable:
            assert_never(unreachable)


@dataclass(frozen=True, slots=True)
class Answered:
    """The question has a value: a number, a list of numbers, or what a web page said."""

    value: Any


@dataclass(frozen=True, slots=True)
class Silent:
    """The question was understood, and there is no data."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The question could not be asked, or not be understood."""

    reason: str


Answer = Answered | Silent | Unanswered


@dataclass(frozen=True, slots=True)
class Measurement:
    """One answer, judged, and why."""

    phase: Phase
    reason: str


def read(source: str) -> Condition:
    """The condition in this text, or Rejected with where it went wrong."""
    return Condition(source, expression.parse(source))


def measure(
    answer: Answer, criteria: Criteria, no_data: verdict.NoData | None = verdict.NoData.WAIT
) -> Measurement | None:
    """The measurement, or None if there is nothing to count yet.

    Without a policy for no data, the conditions decide: they see an empty list.
    """
    match answer:
        case Unanswered(reason):
            return Measurement(Phase.ERROR, f"the metric could not be read: {reason}")
        case Silent(reason):
            return _silent([], criteria, no_data, reason)
        case Answered(value):
            if _is_silent(value):
                return _silent(value, criteria, no_data)
            return _judged(value, criteria)
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


def _judged(value: Any, criteria: Criteria) -> Measurement:
    try:
        match criteria:
            case Bounds():
                return _bounded(value, criteria)
            case Conditions():
                return _conditioned(value, criteria)
            case unreachable:
                assert_never(unreachable)
    except errors.Rejected as error:
        return Measurement(Phase.ERROR, f"{error.message}; {error.hint}")


def _conditioned(value: Any, given: Conditions) -> Measurement:
    said = f"result {shown(value)}"
    if given.failure is not None and given.failure.holds(value):
        return Measurement(Phase.FAILED, f"{said} meets {given.failure.source}")
    if given.success is not None:
        if given.success.holds(value):
            return Measurement(Phase.SUCCESSFUL, f"{said} meets {given.success.source}")
        if given.failure is None:
            return Measurement(Phase.FAILED, f"{said} does not meet {given.success.source}")
        return Measurement(Phase.INCONCLUSIVE, f"{said} is neither a success nor a failure")
    if given.failure is not None:
        return Measurement(Phase.SUCCESSFUL, f"{said} does not meet {given.failure.source}")
    return Measurement(Phase.SUCCESSFUL, f"{said}, and no condition to meet")


def _bounded(value: Any, given: Bounds) -> Measurement:
    numbers = value if isinstance(value, list) else [value]
    if not numbers:
        return Measurement(Phase.FAILED, "no number to compare with its bounds")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            reason = f"bounds need numbers, and the result is {shown(value)}"
            return Measurement(Phase.ERROR, reason)
        if given.low is not None and not number >= given.low:
            reason = f"{shown(number)} is below the lower bound of {given.low:g}"
            return Measurement(Phase.FAILED, reason)
        if given.high is not None and not number <= given.high:
            reason = f"{shown(number)} is above the upper bound of {given.high:g}"
            return Measurement(Phase.FAILED, reason)
    return Measurement(Phase.SUCCESSFUL, f"{shown(value)} is within its bounds")


def shown(value: Any, limit: int = 80) -> str:
    """The value for a sentence: short, whatever was answered."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and len(value) == 1:
        return shown(value[0])
    said = repr(value[:20] if isinstance(value, list | str) else value)
    return said if len(said) <= limit else f"{said[:limit]}…"
