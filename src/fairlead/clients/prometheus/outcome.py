"""What a query can come to.

NaN is how Prometheus says that there was nothing to divide: a sample that is NaN is left
out, and an answer of nothing else is NoData. An infinite number is a value: something was
divided by nothing, and a limit can judge that. In a series NaN is None, a missing point.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead import errors

_NOT_NUMBERS = "use a query whose answer is numbers, such as sum(rate(…[1m]))"


@dataclass(frozen=True, slots=True)
class Sample:
    """One number, of which series, at which time."""

    labels: Mapping[str, str]
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Values:
    """At least one number."""

    samples: tuple[Sample, ...]
    # Prometheus found something odd on the way, such as a part that did not answer.
    warnings: tuple[str, ...] = ()

    def only(self) -> float:
        """The number, when there is one; of several none is better than the others."""
        if len(self.samples) > 1:
            raise errors.Rejected(
                f"query returns several values instead of one: {len(self.samples)}",
                hint="aggregate them, for instance with sum() or max()",
            )
        return self.samples[0].value


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers over time; None where one is missing."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class SeriesSet:
    """At least one series with at least one number."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoData:
    """Prometheus answered, and there was nothing."""

    reason: str


class Result(msgspec.Struct):
    """The part `data` of an answer."""

    resultType: str = ""  # noqa: N815 - Prometheus's own word
    result: Any = None


class Answer(msgspec.Struct):
    """An answer of the HTTP API."""

    status: str = ""
    data: Result | None = None
    error: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)


def values(answer: Answer) -> Values | NoData:
    """An instant query's answer."""
    result = answer.data or Result()
    match result.resultType:
        case "vector":
            found = [_sample(each) for each in result.result]
        case "scalar":
            at, text = result.result
            found = [Sample({}, float(text), float(at))]
        case other:
            raise errors.Rejected(f"query returns a {other} instead of numbers", hint=_NOT_NUMBERS)
    numbers = tuple(sample for sample in found if not math.isnan(sample.value))
    return Values(numbers, tuple(answer.warnings)) if numbers else _nothing(found)


def series(answer: Answer) -> SeriesSet | NoData:
    """A range query's answer."""
    result = answer.data or Result()
    if result.resultType != "matrix":
        raise errors.Rejected(
            f"range query returns a {result.resultType} instead of series", hint=_NOT_NUMBERS
        )
    found = [_series(each) for each in result.result]
    numbers = tuple(one for one in found if any(value is not None for _, value in one.points))
    return SeriesSet(numbers, tuple(answer.warnings)) if numbers else _nothing(found)


def _nothing(found: Sequence[object]) -> NoData:
    return NoData("only NaN: division by zero" if found else "no series matches the query")


def _sample(given: Mapping[str, Any]) -> Sample:
    at, text = _numbers(given, "value")
    return Sample(given.get("metric", {}), float(text), float(at))


def _series(given: Mapping[str, Any]) -> Series:
    points = ((float(at), float(text)) for at, text in _numbers(given, "values"))
    kept = tuple((at, None if math.isnan(value) else value) for at, value in points)
    return Series(given.get("metric", {}), kept)


def _numbers(given: Mapping[str, Any], key: str) -> Iterable[Any]:
    if key not in given:
        raise errors.Rejected("query returns histograms instead of numbers", hint=_NOT_NUMBERS)
    found: Iterable[Any] = given[key]
    return found
