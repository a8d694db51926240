"""By how much is the experiment shifted? The interval of the Mann-Whitney rank test.

The shift that the data cannot rule out is where the rank statistic of the shifted experiment
crosses a quantile. That statistic is a staircase, so the answer depends on how the crossing is
searched; to reach Kayenta's verdicts the search must stop where Kayenta's does: Brent's method
with an absolute tolerance of 0.0001 (the same that R uses in `wilcox.test`). A finer search
would be a different judge. `classify` therefore decides about scale, not this module.
"""

import bisect
import collections
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence

from fairlead.analysis import statistics

TOLERANCE = 1e-4
EPSILON = 2.220446049250313e-16
STEPS = 1001
# Below this relative distance, subtracting a shift may round two different values together.
CLOSE = 1e-9
# Up to so many pairs, counting them alone is faster than counting everything (measured).
FEW_PAIRS = 40

normal_quantile = functools.cache(statistics.normal_quantile)


class AllTiedError(ArithmeticError):
    """Every value equals every other after some shift: there is no order to test."""


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """The shift of the experiment against control: between low and high, best guess estimate."""

    low: float
    high: float
    estimate: float


def shift_interval(
    control: Sequence[float], experiment: Sequence[float], confidence: float
) -> Interval:
    """The confidence interval of the shift; on tied data low may exceed high, as in Kayenta."""
    staircase = _Staircase(control, experiment)
    quantile = normal_quantile((1.0 - confidence) / 2)
    return Interval(
        low=_bound(staircase, -quantile),
        high=_bound(staircase, quantile),
        estimate=_root(staircase, 0.0),
    )


def spread_out(value: float, count: int, scale: float) -> list[float]:
    """A constant with a little normal spread, so that ranks exist.

    Kayenta draws this noise at random; we take the quantiles such a draw has on average, so
    that one input has one verdict.
    """
    return [
        value + value * scale * normal_quantile((place + 0.5) / count) for place in range(count)
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Tread:
    """What one evaluation learned: how many values of control lie below each shifted one."""

    shift: float
    places: list[int]
    below: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Window:
    """A stretch between two shifts in which only a few pairs change their order."""

    left: float
    right: float
    below: int
    pairs: list[tuple[float, float]]
    weights: list[int]


class _Staircase:
    """The standardised rank statistic of the experiment, as a function of the shift taken off.

    Two things make it fast. Equal values are kept once, with their number. And a search ends in
    many small steps between two shifts that it has seen: only the pairs whose order differs
    between the two can change there, so once they are few, we count those alone. The comparison
    stays `value - shift` against control, so rounding stays what it would be without all this.
    """

    def __init__(self, control: Sequence[float], experiment: Sequence[float]) -> None:
        self._control = sorted(control)
        self._experiment = sorted(experiment)
        held = collections.Counter(self._control)
        self._levels, self._held = list(held), list(held.values())
        self._under = [0, *itertools.accumulate(self._held)]
        weighted = collections.Counter(self._experiment)
        self._values, self._weights = list(weighted), list(weighted.values())
        self._repeats = len(held) < len(control) or len(weighted) < len(experiment)
        self._present = set(self._levels)
        self._pairs = len(control) * len(experiment)
        self._total = len(control) + len(experiment)
        self._own_ties = _ties(self._held) + _ties(self._weights)
        self._risky = _is_close(self._values) or _is_infinite(self._levels, self._values)
        self._heights: dict[float, float] = {}
        self._treads: list[_Tread] = []
        self._window = _Window(0.0, 0.0, 0, [], [])
        self.left = self._values[0] - self._levels[-1]
        self.right = self._values[-1] - self._levels[0]

    def __call__(self, shift: float) -> float:
        # The three searches start from the same ends, and often meet again.
        height = self._heights.get(shift)
        if height is None:
            height = self._with_ties(shift) if self._risky else self._nearby(shift)
            self._heights[shift] = height
        return height

    def _nearby(self, shift: float) -> float:
        window = self._window
        if not window.left < shift < window.right:
            found = self._narrow(shift)
            if found is None:
                return self._everywhere(shift)
            window = self._window = found
        leads = [value - shift - level for value, level in window.pairs]
        if 0.0 in leads:
            return self._with_ties(shift)
        won = map((0.0).__lt__, leads)
        more = sum(itertools.compress(window.weights, won)) if self._repeats else sum(won)
        return self._height(window.below + more, self._own_ties)

    def _narrow(self, shift: float) -> _Window | None:
        """The pairs that change order around this shift, if the known neighbours leave few."""
        right = bisect.bisect_left(self._treads, shift, key=_shift)
        if not 0 < right < len(self._treads):
            return None
        before, after = self._treads[right - 1], self._treads[right]
        if not self._repeats and before.below - after.below > FEW_PAIRS:
            return None
        changed = [
            (index, place)
            for index, (most, least) in enumerate(zip(before.places, after.places, strict=True))
            if most != least
            for place in range(least, most)
        ]
        if len(changed) > FEW_PAIRS:
            return None
        return _Window(
            before.shift,
            after.shift,
            after.below,
            [(self._values[index], self._levels[place]) for index, place in changed],
            [self._weights[index] * self._held[place] for index, place in changed],
        )

    def _everywhere(self, shift: float) -> float:
        shifted = [value - shift for value in self._values]
        if not self._present.isdisjoint(shifted):
            return self._with_ties(shift)
        places = list(map(bisect.bisect_left, itertools.repeat(self._levels), shifted))
        if self._repeats:
            under = map(self._under.__getitem__, places)
            below = sum(map(operator.mul, under, self._weights))
        else:
            below = sum(places)
        bisect.insort(self._treads, _Tread(shift, places, below), key=_shift)
        return self._height(below, self._own_ties)

    def _with_ties(self, shift: float) -> float:
        """The whole count, ties as halves, in case control and the experiment share a value."""
        shifted = [value - shift for value in self._experiment]
        below = statistics.wins(shifted, self._control)
        counts = collections.Counter(self._control + shifted)
        return self._height(below, _ties(counts.values()))

    def _height(self, below: float, ties: int) -> float:
        lead = below - self._pairs / 2
        total = self._total
        variance = self._pairs / 12 * (total + 1 - ties / (total * (total - 1)))
        if not variance > 0:
            raise AllTiedError
        return (lead - math.copysign(0.5, lead) if lead else 0.0) / math.sqrt(variance)


def _shift(tread: _Tread) -> float:
    return tread.shift


def _ties(counts: Iterable[int]) -> int:
    return sum(count**3 - count for count in counts)


def _is_infinite(*sides: list[float]) -> bool:
    return any(math.isinf(side[0]) or math.isinf(side[-1]) for side in sides)


def _is_close(ordered: list[float]) -> bool:
    gaps = map(operator.sub, itertools.islice(ordered, 1, None), ordered)
    return min(gaps, default=math.inf) <= max(abs(ordered[0]), abs(ordered[-1])) * CLOSE


def _bound(staircase: _Staircase, quantile: float) -> float:
    if staircase(staircase.left) - quantile <= 0:
        return staircase.left
    if staircase(staircase.right) - quantile >= 0:
        return staircase.right
    return _root(staircase, quantile)


def _root(staircase: _Staircase, quantile: float) -> float:
    return brent(lambda shift: staircase(shift) - quantile, staircase.left, staircase.right)


def brent(height: Callable[[float], float], left: float, right: float) -> float:
    """A zero between two ends, by Brent's method: interpolate if it gains enough, else halve."""
    # `best` is the guess, `last` the guess before it, `across` the end with the other sign.
    last, best, across = left, right, left
    last_height, best_height = height(left), height(right)
    across_height = last_height
    if last_height == 0:
        return left
    for _ in range(STEPS):
        before = best - last
        if abs(across_height) < abs(best_height):
            last, best, across = best, across, best
            last_height, best_height, across_height = best_height, across_height, best_height
        least = 2 * EPSILON * abs(best) + TOLERANCE / 2
        step = (across - best) / 2
        if abs(step) <= least or best_height == 0:
            return best
        if abs(before) >= least and abs(last_height) > abs(best_height):
            guess = _interpolate((last, best, across), (last_height, best_height, across_height))
            step = _accept(guess, step, before, across - best, least)
        if abs(step) < least:
            step = least if step > 0 else -least
        last, last_height = best, best_height
        best += step
        best_height = height(best)
        if min(best_height, across_height) > 0 or max(best_height, across_height) < 0:
            across, across_height = last, last_height
    return best


def _interpolate(
    places: tuple[float, float, float], heights: tuple[float, float, float]
) -> tuple[float, float]:
    """The next step as a fraction: a secant through two points, or an inverse parabola."""
    last, best, across = places
    last_height, best_height, across_height = heights
    width = across - best
    if last == across:
        rise = best_height / last_height
        above, under = width * rise, 1.0 - rise
    else:
        under = last_height / across_height
        first, second = best_height / across_height, best_height / last_height
        above = second * (width * under * (under - first) - (best - last) * (first - 1.0))
        under = (under - 1.0) * (first - 1.0) * (second - 1.0)
    return (above, -under) if above > 0 else (-above, under)


def _accept(
    guess: tuple[float, float], halving: float, before: float, width: float, least: float
) -> float:
    """The interpolated step if it stays inside and shrinks fast enough, else the halving."""
    above, under = guess
    inside = above < 0.75 * width * under - abs(least * under) / 2
    shrinks = above < abs(before * under / 2)
    return above / under if inside and shrinks else halving
