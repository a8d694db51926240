"""What is kept of a run's measurements, step by step: bounded, for its row is written often.

A point is an array in what is stored and in the API, so that it costs some twenty bytes.
"""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from fairlead.analysis.conditions import Phase
from fairlead.analysis.policy import Counts
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.checks.spec import Finding

BAD = {Phase.FAILED, Phase.ERROR, Phase.INCONCLUSIVE}
_FEWEST = 2


class CheckPoint(NamedTuple):
    """One measurement of a check."""

    seconds: float
    """Since the run started."""

    value: float | None
    phase: str
    """Its answer's; empty where there was nothing to count yet."""


class TrafficPoint(NamedTuple):
    """A slot's requests since the step was reached, as the checks of this moment had them."""

    seconds: float
    """Since the run started."""

    requests: int
    failed: int
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class CheckMark:
    """What one check measured at one step: how often, and its last reason."""

    check: str
    step: int
    """Counted from 1; 0 before the first."""

    phase: str
    """The last answer's; empty where there was nothing to count yet."""

    reason: str
    at: dt.datetime
    measured: int = 0
    passed: int = 0
    failed: int = 0
    value: float | None = None
    """The last number, what it was held against, and the unit of both."""

    limit: float | None = None
    unit: str = ""
    counts: Counts | None = None
    """What a judge had of both sides at last, and how much it needs."""

    points: tuple[CheckPoint, ...] = ()
    """Thinned; the last one is always there."""


@dataclass(frozen=True, slots=True)
class TrafficMark:
    """What the version in one slot did with its requests at one step, as far as it was counted."""

    slot: Slot
    step: int
    requests: int
    failed: int
    points: tuple[TrafficPoint, ...] = ()
    """Thinned; the last one is always there."""


Marks = tuple[CheckMark, ...]
Traffic = tuple[TrafficMark, ...]
_Mark = TypeVar("_Mark", CheckMark, TrafficMark)
_Point = TypeVar("_Point", CheckPoint, TrafficPoint)


def with_finding(
    marks: Marks, finding: Finding, step: int, when: tuple[dt.datetime, float]
) -> Marks:
    """`when` is the moment, and how many seconds into the run that was."""
    before = find(marks, finding.check, step)
    others = tuple(each for each in marks if each is not before)
    return (*others, _counted(before, finding, step, when))


def find(marks: Marks, check: str, step: int) -> CheckMark | None:
    found = (each for each in marks if (each.check, each.step) == (check, step))
    return next(found, None)


def with_traffic(marks: Traffic, counted: SlotTraffic, step: int, seconds: float) -> Traffic:
    place = (counted.slot, step)
    before = next((each for each in marks if (each.slot, each.step) == place), None)
    mark = before or TrafficMark(counted.slot, step, 0, 0)
    last = mark.points[-1] if mark.points else TrafficPoint(0, 0, 0, None)
    # Fewer than before: who counts was started over, and what it had counted stays counted.
    afresh = counted.requests < last.requests
    requests = mark.requests + counted.requests - (0 if afresh else last.requests)
    failed = mark.failed + counted.failed - (0 if afresh else last.failed)
    point = TrafficPoint(seconds, counted.requests, counted.failed, counted.p99_ms)
    others = tuple(each for each in marks if each is not before)
    return (*others, TrafficMark(counted.slot, step, requests, failed, (*mark.points, point)))


def thinned(checks: Marks, traffic: Traffic, most: int) -> tuple[Marks, Traffic]:
    """Both with at most so many points in all, as long as each mark keeps its first and last."""
    while True:
        lengths = [len(mark.points) for mark in checks] + [len(mark.points) for mark in traffic]
        longest = max(lengths, default=0)
        if sum(lengths) <= most or longest <= _FEWEST:
            return checks, traffic
        checks = tuple(_halved(mark, longest) for mark in checks)
        traffic = tuple(_halved(mark, longest) for mark in traffic)


def _halved(mark: _Mark, longest: int) -> _Mark:
    if len(mark.points) < longest:
        return mark
    return dataclasses.replace(mark, points=_every_second(mark.points))


def _every_second(points: Sequence[_Point]) -> tuple[_Point, ...]:
    last = len(points) - 1
    return tuple(each for n, each in enumerate(points) if n % 2 == 0 or n == last)


def _counted(
    before: CheckMark | None, finding: Finding, step: int, when: tuple[dt.datetime, float]
) -> CheckMark:
    at, seconds = when
    mark = before or CheckMark(finding.check, step, "", "", at)
    phase = finding.phase
    said = phase.value if phase else ""
    point = (CheckPoint(seconds, finding.value, said),) if said or finding.value is not None else ()
    return dataclasses.replace(
        mark,
        phase=said or mark.phase,
        reason=finding.reason,
        at=at,
        measured=mark.measured + (phase is not None),
        passed=mark.passed + (phase is Phase.SUCCESSFUL),
        failed=mark.failed + (phase in BAD),
        value=finding.value,
        limit=finding.limit,
        unit=finding.unit,
        counts=finding.counts,
        points=(*mark.points, *point),
    )
