"""One run as a picture: its weights, what its versions did with their requests, its checks.

Pure geometry, which a template writes down as SVG. Along the axis of time are percents, so that a
picture fits any width; upwards are pixels of a row.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fairlead.areas.rollouts import run_samples
from fairlead.areas.rollouts.domain import wording
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.history import Rule, RunMark
from fairlead.areas.rollouts.measurements import CheckMark, CheckPoint
from fairlead.areas.rollouts.run_samples import RunTraffic, Sample, Total
from fairlead.areas.rollouts.traffic_stats import Point
from fairlead.checks.spec import REQUEST_DURATION, SUCCESS_RATE
from fairlead.values import ALL

HEIGHT = 100
WIDTH = 1000
"""Of the space in which paths are; it is stretched to the width of the page."""

_SHORT = 10.0
_EDGE = 14
_SHORTEST = 1.0
_FAR = 4.0
"""A threshold more than so many times above all values is told, not drawn."""

_USUAL_LOW = 95.0
_LABEL = 9.0
"""The width of a step's label on a phone, in percent of the axis."""

_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_SIGNS = {
    "Successful": ("✓", "good"),
    "Failed": ("✗", "bad"),
    "Error": ("!", "bad"),
    "Inconclusive": ("?", "ask"),
}
_Values = Sequence[tuple[float, float | None]]
"""Seconds since the run's start, and the number."""


@dataclass(frozen=True, slots=True)
class Line:
    """One version's line, and what is said of it."""

    side: str
    name: str
    said: str
    path: str
    dots: tuple[tuple[float, float], ...] = ()
    """Numbers with none beside them: one point makes no line."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a check holds its values against."""

    said: str
    y: float | None
    """None where it is far off, and would press all else to an edge."""


@dataclass(frozen=True, slots=True)
class VerdictMark:
    """A measurement's verdict at its place."""

    x: float
    y: float
    sign: str
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity over the time of the run."""

    title: str
    ticks: tuple[tuple[float, str], ...]
    lines: tuple[Line, ...]
    thresholds: tuple[Threshold, ...] = ()
    marks: tuple[VerdictMark, ...] = ()
    area: str = ""

    @property
    def label(self) -> str:
        """The row in words."""
        said = [f"{line.name} {line.said}".strip() for line in self.lines]
        verdicts = [mark.text for mark in self.marks]
        return "; ".join(
            [
                f"{self.title}: {', '.join(said)}",
                *(each.said for each in self.thresholds),
                *verdicts,
            ]
        )


@dataclass(frozen=True, slots=True)
class Chart:
    """All rows of one run on one axis."""

    rows: tuple[Row, ...]
    steps: tuple[tuple[float, str], ...]
    """Where each step was reached, and its weight where there is room for it."""

    times: tuple[tuple[float, str], ...]
    totals: tuple[Total, ...]
    by_round: bool


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    unit: str

    def y(self, value: float) -> float:
        part = (value - self.low) / ((self.high - self.low) or 1)
        return round(_EDGE + (HEIGHT - 2 * _EDGE) * (1 - part), 1)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        values = (self.low, (self.low + self.high) / 2, self.high)
        return tuple((self.y(value), number(value, self.unit)) for value in values)


@dataclass(frozen=True, slots=True)
class _Frame:
    run: RunMark
    traffic: RunTraffic
    seconds: float

    def x(self, seconds: float) -> float:
        return round(ALL * min(max(seconds / self.seconds, 0.0), 1.0), 2)

    def moment(self, at: dt.datetime) -> float:
        return self.x((at - self.run.started).total_seconds())

    def path(self, values: _Values, scale: _Scale) -> str:
        """Broken where there is no number: a line across would tell what nobody measured."""
        return "".join(
            "ML"[n > 0] + f"{self.x(seconds) * WIDTH / ALL:.1f} {scale.y(value)}"
            for stretch in _stretches(values)
            for n, (seconds, value) in enumerate(stretch)
        )

    def dots(self, values: _Values, scale: _Scale) -> tuple[tuple[float, float], ...]:
        alone = [stretch[0] for stretch in _stretches(values) if len(stretch) == 1]
        return tuple((self.x(seconds), scale.y(value)) for seconds, value in alone)


def _stretches(values: _Values) -> list[list[tuple[float, float]]]:
    """The values between two gaps, each."""
    found: list[list[tuple[float, float]]] = [[]]
    for seconds, value in values:
        if value is not None:
            found[-1].append((seconds, value))
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]


def of(run: RunMark, points: Sequence[Point], now: dt.datetime) -> Chart:
    """`points` are all of the rollout that are remembered, whichever run they are of."""
    seconds = max(((run.ended or now) - run.started).total_seconds(), _SHORTEST)
    frame = _Frame(run, run_samples.of(run, points, now), seconds)
    return Chart(
        rows=tuple(_rows(frame)),
        steps=_steps(frame),
        times=tuple((ALL * part, _time(part * seconds, seconds)) for part in _PARTS),
        totals=frame.traffic.totals,
        by_round=frame.traffic.by_round,
    )


def _steps(frame: _Frame) -> tuple[tuple[float, str], ...]:
    """A step whose label would lie under the next one's is a line without words."""
    reached = [
        (frame.moment(step.reached), step.weight) for step in frame.run.steps if step.reached
    ]
    following = [x for x, _ in reached[1:]] + [ALL + _LABEL]
    return tuple(
        (x, f"{weight} %" if after - x >= _LABEL else "")
        for (x, weight), after in zip(reached, following, strict=False)
    )


def number(value: float, unit: str, limit: float | None = None) -> str:
    """With as many digits as a person reads, and more where these would read as the limit."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < ALL else 0  # noqa: PLR2004 - three digits
    size = 10**digits
    # Percents are cut off, as sentences do it: 98.96 % is not the required 99 %.
    near = math.floor(round(value * size, 6)) / size if unit == "%" else round(value, digits)
    return f"{value if near == limit else near:g} {unit}".strip()


def _rows(frame: _Frame) -> Iterable[Row]:
    if frame.run.weights:
        yield _weights(frame)
    drawn: set[str] = set()
    for quantity in _QUANTITIES:
        if row := _quantity(frame, quantity):
            drawn.add(quantity.metric)
            yield row
    for rule in frame.run.rules:
        if rule.metric not in drawn and (row := _check(frame, rule)):
            yield row


@dataclass(frozen=True, slots=True)
class _Quantity:
    """What is drawn of all versions beside each other."""

    metric: str
    title: str
    unit: str
    of: Callable[[Sample], float | None]
    said: Callable[[Total, _Values], str]


def _success(total: Total, _: _Values) -> str:
    rate = total.success or 0.0
    # Cut off, not rounded: of 10,000 requests one that failed is no 100 %.
    return f"{math.floor(rate * 100) / 100:g} %, {total.failed} of {total.requests} failed"


def _slowest(_: Total, values: _Values) -> str:
    return f"up to {number(max(value for _, value in values if value is not None), 'ms')}"


def _requests(total: Total, _: _Values) -> str:
    return f"{total.requests} counted"


_QUANTITIES = (
    _Quantity(SUCCESS_RATE, "Success rate", "%", lambda sample: sample.success, _success),
    _Quantity(REQUEST_DURATION, "p99 latency", "ms", lambda sample: sample.p99_ms, _slowest),
    _Quantity("requests", "Requests", "/s", lambda sample: sample.rate, _requests),
)


def _quantity(frame: _Frame, quantity: _Quantity) -> Row | None:
    series = {
        side: [(sample.seconds, quantity.of(sample)) for sample in samples]
        for side, samples in frame.traffic.sides.items()
    }
    checks = [rule for rule in frame.run.rules if rule.metric == quantity.metric]
    scale = _scale(list(series.values()), _limits(frame, checks), quantity.unit)
    if scale is None:
        return None
    totals = {total.side: total for total in frame.traffic.totals}
    lines = tuple(
        Line(
            side.value,
            run_samples.version_of(frame.run, side),
            quantity.said(totals[side], series[side]) if side in totals else "",
            frame.path(series[side], scale),
            frame.dots(series[side], scale),
        )
        for side in Slot
        if any(value is not None for _, value in series.get(side, ()))
    )
    return _with_checks(frame, Row(quantity.title, scale.ticks(), lines), checks, scale)


def _check(frame: _Frame, rule: Rule) -> Row | None:
    """A check's own numbers, which are the canary's."""
    marks = _marks(frame, [rule])
    values: list[tuple[float, float | None]] = []
    for mark in marks:
        # Each step is measured anew: no line leads from one to the next.
        values += [*((point.seconds, point.value) for point in mark.points), (0.0, None)]
    unit = marks[-1].unit if marks else ""
    scale = _scale([values], _limits(frame, [rule]), unit)
    if scale is None:
        return None
    last = next(value for _, value in reversed(values) if value is not None)
    drawn = frame.path(values, scale), frame.dots(values, scale)
    line = Line("canary", frame.run.target, f"last {number(last, unit, marks[-1].limit)}", *drawn)
    return _with_checks(frame, Row(rule.check, scale.ticks(), (line,)), [rule], scale)


def _with_checks(frame: _Frame, row: Row, rules: Sequence[Rule], scale: _Scale) -> Row:
    limits = sorted(set(_limits(frame, rules)))
    thresholds = tuple(
        Threshold(
            f"limit {number(limit, scale.unit)}",
            scale.y(limit) if scale.low <= limit <= scale.high else None,
        )
        for limit in limits
    )
    marks = tuple(
        _verdict(frame, mark, point, scale)
        for mark in _marks(frame, rules)
        for point in mark.points
        if point.phase in _SIGNS and (point is mark.points[-1] or point.phase != "Successful")
    )
    return Row(row.title, row.ticks, row.lines, thresholds, marks)


def _verdict(frame: _Frame, mark: CheckMark, point: CheckPoint, scale: _Scale) -> VerdictMark:
    sign, tone = _SIGNS[point.phase]
    value = scale.low if point.value is None else min(max(point.value, scale.low), scale.high)
    place = f"step {mark.step}" if mark.step else "the start"
    limit = mark.limit
    said = f", {number(point.value, scale.unit, limit)}" if point.value is not None else ""
    text = f"{mark.check} {point.phase.lower()} at {place}{said}"
    return VerdictMark(frame.x(point.seconds), scale.y(value), sign, tone, text)


def _marks(frame: _Frame, rules: Sequence[Rule]) -> list[CheckMark]:
    names = {rule.check for rule in rules}
    return sorted((each for each in frame.run.checks if each.check in names), key=lambda m: m.step)


def _limits(frame: _Frame, rules: Sequence[Rule]) -> list[float]:
    return [mark.limit for mark in _marks(frame, rules) if mark.limit is not None]


def _scale(series: Sequence[_Values], limits: Sequence[float], unit: str) -> _Scale | None:
    """What all of it fits into; None where there is no number."""
    values = [value for each in series for _, value in each if value is not None]
    if not values:
        return None
    if unit == "%" and max((*values, *limits)) <= ALL and min(values) > ALL / 2:
        return _Scale(min(_USUAL_LOW, math.floor(min((*values, *limits)))), ALL, unit)
    near = [limit for limit in limits if limit <= _FAR * max(values)]
    return _Scale(min(0.0, *values, *near), _nice(max((*values, *near))), unit)


def _weights(frame: _Frame) -> Row:
    scale = _Scale(0, ALL, "%")
    marks = [
        ((each.at - frame.run.started).total_seconds(), each.weight) for each in frame.run.weights
    ]
    corners, before = [(0.0, 0.0)], 0.0
    for seconds, weight in marks:
        corners += [(seconds, before), (seconds, float(weight))]
        before = weight
    corners.append((frame.seconds, before))
    path = frame.path(corners, scale)
    most = max(weight for _, weight in marks)
    said = f"up to {most} %" if frame.run.ended is not None else f"{before:g} %"
    line = Line("canary", frame.run.target, said, path)
    base = scale.y(0)
    return Row("Canary weight", scale.ticks(), (line,), area=f"{path}L{WIDTH} {base}L0 {base}Z")


def _nice(most: float) -> float:
    if most <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(most))
    return next(step * size for step in (1, 2, 4, 5, 10) if step * size >= most)


def _time(seconds: float, whole: float) -> str:
    """A place on the axis; on a short one with tenths, or two places would be called the same."""
    return f"{round(seconds, 1):g} s" if whole < _SHORT else _span(seconds)


def _span(seconds: float) -> str:
    return wording.span(dt.timedelta(seconds=round(seconds))) if round(seconds) else "0 s"
