"""How people write a check, and a time: the same fields in every file that has them.

plain data ──► convert ──► CheckWords (their shape is right) ──► checks ──► Check (they make sense)

Whatever does not hold is refused with the path of its field.
"""

import contextlib
import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from fairlead import errors, validation
from fairlead.analysis import fields
from fairlead.analysis.limits import Limits
from fairlead.analysis.verdict import NoData
from fairlead.checks import spec as check_spec
from fairlead.validation import refusal
from fairlead.values import LONGEST

Duration = Annotated[str, validation.hinted("write it with its unit: 30s, 5m or 1h30m")]
T = TypeVar("T")
R = TypeVar("R")

_JUDGE = "see docs/reference/judge.md"
_DURATION = re.compile(r"(?:[0-9]+(?:ms|s|m|h|d))+")
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNITS = {
    "ms": dt.timedelta(milliseconds=1),
    "s": dt.timedelta(seconds=1),
    "m": dt.timedelta(minutes=1),
    "h": dt.timedelta(hours=1),
    "d": dt.timedelta(days=1),
}


class CheckWords(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One check: a built-in metric, a query, a web metric, a judge or a gate."""

    name: str
    metric: Literal["request-success-rate", "request-duration"] | None = None
    query: str | None = None
    web: str | None = None
    gate: str | None = None
    judge: dict[str, Any] | None = None
    when: Literal["start", "step", "promotion"] = "step"
    success: str | None = None
    failure: str | None = None
    low: float | None = None
    high: float | None = None
    no_data: Literal["wait", "pass", "fail", "inconclusive"] = "wait"
    count: int | None = None
    interval: Duration | None = None
    window: Duration | None = None
    server: str = ""
    source: str = ""
    unit: str = ""
    min_requests: int | None = None
    initial_delay: Duration = "0s"
    failure_limit: int = 0
    inconclusive_limit: int = 0
    consecutive_error_limit: int = 4
    consecutive_success_limit: int = 0
    dry_run: bool = False


def checks(words: Sequence[CheckWords], at: str) -> tuple[check_spec.Check, ...]:
    return each(words, at, _check)


def _check(words: CheckWords, at: str) -> check_spec.Check:
    kind, source, query = _asked(words, at)
    _check_bounds(words, at)
    if words.judge is not None:
        # Mistakes are told at their fields here, by the judge itself as one sentence of the check.
        validation.convert(words.judge, fields.Config, f"{at}.judge", about=_JUDGE)
    with named(at):
        return check_spec.Check(
            name=words.name,
            query=query,
            kind=kind,
            when=check_spec.When(words.when),
            success=words.success,
            failure=words.failure,
            low=words.low,
            high=words.high,
            no_data=NoData(words.no_data),
            limits=_limits(words, at),
            dry_run=words.dry_run,
            judge=words.judge or {},
            window=None if words.window is None else duration(words.window, f"{at}.window"),
            server=words.server,
            source=source,
            unit=words.unit,
            min_requests=words.min_requests,
        )


def _check_bounds(words: CheckWords, at: str) -> None:
    """A number that no answer is below or above says nothing, and JSON would send it as none."""
    for field, limit in (("low", words.low), ("high", words.high)):
        if limit is not None and not math.isfinite(limit):
            raise refusal(f"{at}.{field}", f"no finite number: {limit}", "leave out what has none")
    if words.low is not None and words.high is not None and words.low > words.high:
        raise refusal(
            f"{at}.low", f"above high: {words.low:g} > {words.high:g}", "let low be the lower one"
        )


def _asked(words: CheckWords, at: str) -> tuple[check_spec.CheckKind, str, str]:
    """What is asked, who answers, and in which words."""
    kinds = check_spec.CheckKind
    asked = {
        "metric": (kinds.METRIC, words.metric),
        "query": (kinds.METRIC, words.query),
        "web": (kinds.METRIC, words.web),
        "gate": (kinds.GATE, words.gate),
        "judge": (kinds.JUDGE, None if words.judge is None else ""),
    }
    found = [(kind, text) for kind, text in asked.values() if text is not None]
    if len(found) != 1:
        raise refusal(at, f"set one of {', '.join(asked)}", "name what measures this check")
    source = words.source
    if words.web is not None:
        if source:
            raise refusal(f"{at}.source", "web is a source itself", "write query instead of web")
        source = check_spec.WEB
    elif words.server and not source:
        # The servers that an operator names are those of Prometheus.
        source = check_spec.PROMETHEUS
    return found[0][0], source, found[0][1]


def _limits(words: CheckWords, at: str) -> Limits:
    return Limits(
        count=words.count,
        interval=None if words.interval is None else duration(words.interval, f"{at}.interval"),
        initial_delay=duration(words.initial_delay, f"{at}.initialDelay"),
        failure_limit=words.failure_limit,
        inconclusive_limit=words.inconclusive_limit,
        consecutive_error_limit=words.consecutive_error_limit,
        consecutive_success_limit=words.consecutive_success_limit,
    )


def duration(text: str, at: str) -> dt.timedelta:
    """A time such as 30s, 1m30s or 2h."""
    if not _DURATION.fullmatch(text):
        raise refusal(at, f"not a duration: {text[:40]!r}", "use 500ms, 30s, 5m, 1h30m or 2d")
    try:
        spans = [int(count) * _UNITS[unit] for count, unit in _PART.findall(text)]
        span = sum(spans, dt.timedelta())
    except (OverflowError, ValueError):
        span = dt.timedelta.max
    if span > LONGEST:
        most = LONGEST.days
        raise refusal(at, f"longer than {most} d: {text[:40]}", f"use {most}d or less")
    return span


def each(words: Sequence[T], at: str, read: Callable[[T, str], R]) -> tuple[R, ...]:
    """Each of them as it is meant, or what does not hold in any."""
    gathered, made = validation.Gathered(), []
    for n, one in enumerate(words):
        with gathered.part():
            made.append(read(one, f"{at}[{n}]"))
    gathered.settle()
    return tuple(made)


@contextlib.contextmanager
def named(at: str) -> Iterator[None]:
    """What the domain refuses inside, it refuses at this place; the innermost place tells."""
    try:
        yield
    except errors.Invalid:
        raise
    except errors.Rejected as error:
        raise refusal(at, error.message, error.hint) from error
