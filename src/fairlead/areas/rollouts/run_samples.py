"""What each version of one run did with its requests, over the time of the run and in all.

Moments come from whoever counts requests here, as long as that reaches back to the run's start. Of
all other runs, and after a restart, there is what their rounds of checks recorded.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.history import RunMark
from fairlead.areas.rollouts.measurements import TrafficMark
from fairlead.areas.rollouts.traffic_stats import Point
from fairlead.values import ALL

_COVERED = dt.timedelta(seconds=3)
"""So much later the first point may be: a reading is taken every second, a point is of two."""


class Sample(NamedTuple):
    """What one version did up to a moment of the run."""

    seconds: float
    """Since its start."""

    success: float | None = None
    p99_ms: float | None = None
    rate: float | None = None
    """Requests a second."""


@dataclass(frozen=True, slots=True)
class Total:
    """What one version did with its requests in all."""

    side: Slot
    version: str
    requests: int
    failed: int

    @property
    def success(self) -> float | None:
        """In percent; None without a request."""
        return _success(self.requests, self.failed)


Sides = Mapping[Slot, Sequence[Sample]]


@dataclass(frozen=True, slots=True)
class RunTraffic:
    """Both views of a run's requests."""

    sides: Sides
    totals: tuple[Total, ...]
    by_round: bool = False
    """Whether the samples are of rounds of checks, each since its step was reached."""


def of(run: RunMark, points: Sequence[Point], now: dt.datetime) -> RunTraffic:
    """`points` are all of the rollout that are remembered, whichever run they are of."""
    own = _own(run, points, run.ended or now)
    covered = bool(points) and points[0].at <= run.started + _COVERED
    by_round = bool(run.traffic) and not covered
    sides = _each_round(run) if by_round else _each_moment(run, own)
    return RunTraffic(sides, _totals(run, own), by_round)


def run_of(point: Point, runs: Sequence[RunMark]) -> RunMark | None:
    """The run in whose time, and of one of whose versions, a point is."""
    return next(
        (
            run
            for run in runs
            if run.started <= point.at
            and (run.ended is None or point.at <= run.ended)
            and _side(run, point) is not None
        ),
        None,
    )


def label_of(revision: str, runs: Sequence[RunMark]) -> str:
    """What people call a revision; itself where no run knows it."""
    names = {run.stable_revision: run.stable for run in runs}
    return (names | {run.revision: run.target for run in runs}).get(revision, revision)


def version_of(run: RunMark, side: Slot) -> str:
    names = {Slot.CANARY: run.target, Slot.BASELINE: f"{run.stable} (baseline)"}
    return names.get(side, run.stable)


def _own(run: RunMark, points: Iterable[Point], end: dt.datetime) -> list[tuple[Slot, Point]]:
    """The points of this run's versions in its time, each with the side it belongs to."""
    found = ((_side(run, each), each) for each in points if run.started <= each.at <= end)
    return [(side, each) for side, each in found if side is not None]


def _side(run: RunMark, point: Point) -> Slot | None:
    """By its version, not by its slot: a promotion brings the new one into the primary's."""
    if point.revision not in (run.revision, run.stable_revision):
        return None
    if run.revision == run.stable_revision or point.slot is Slot.BASELINE:
        return point.slot
    return Slot.CANARY if point.revision == run.revision else Slot.PRIMARY


def _each_moment(run: RunMark, own: Iterable[tuple[Slot, Point]]) -> Sides:
    moments: defaultdict[Slot, defaultdict[dt.datetime, list[Point]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for side, point in own:
        moments[side][point.at].append(point)
    return {side: list(_moments(run, found)) for side, found in moments.items()}


def _moments(run: RunMark, found: Mapping[dt.datetime, Sequence[Point]]) -> Iterable[Sample]:
    before: dt.datetime | None = None
    for at, points in found.items():
        requests, failed = _sums(points)
        slowest = max((each.p99_ms for each in points if each.p99_ms is not None), default=None)
        lasted = (at - before).total_seconds() if before is not None else 0.0
        yield Sample(
            (at - run.started).total_seconds(),
            _success(requests, failed),
            slowest,
            requests / lasted if lasted else None,
        )
        before = at


def _each_round(run: RunMark) -> Sides:
    found: defaultdict[Slot, list[Sample]] = defaultdict(list)
    for mark in sorted(run.traffic, key=lambda mark: mark.step):
        # Each step counts anew: the sample without numbers ends the line of the one before.
        found[mark.slot] += [*_rounds(run, mark), Sample(mark.points[-1].seconds)]
    return found


def _rounds(run: RunMark, mark: TrafficMark) -> Iterable[Sample]:
    reached = next((step.reached for step in run.steps if step.number == mark.step), None)
    before = (reached - run.started).total_seconds() if reached is not None else 0.0
    counted = 0
    for point in mark.points:
        lasted = point.seconds - before
        fresh = point.requests - (counted if point.requests >= counted else 0)
        success = _success(point.requests, point.failed)
        yield Sample(point.seconds, success, point.p99_ms, fresh / lasted if lasted > 0 else None)
        before, counted = point.seconds, point.requests


def _totals(run: RunMark, own: Sequence[tuple[Slot, Point]]) -> tuple[Total, ...]:
    """By what was recorded, which no restart changes; else by what is remembered."""
    counts = {
        side: _sums([mark for mark in run.traffic if mark.slot is side])
        if run.traffic
        else _sums([point for of_side, point in own if of_side is side])
        for side in Slot
    }
    return tuple(
        Total(side, version_of(run, side), requests, failed)
        for side, (requests, failed) in counts.items()
        if requests
    )


def _sums(counted: Sequence[Point] | Sequence[TrafficMark]) -> tuple[int, int]:
    return sum(each.requests for each in counted), sum(each.failed for each in counted)


def _success(requests: int, failed: int) -> float | None:
    return ALL * (1 - failed / requests) if requests else None
