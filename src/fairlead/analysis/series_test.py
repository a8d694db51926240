"""Two series of samples: did the centre of the experiment move, whatever the shape of the data?

All samples are ranked together and ranks become normal scores (van der Waerden), which no wild
sample and no unit can stretch and which lose nothing beside a t-test on well-behaved data. The
difference of the mean scores is then tested as Student does, with a variance that knows how
samples follow each other (`persistence`). Where both sides have the same moments and move
together, what they share cancels: differences are tested, moment by moment.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.analysis import persistence, statistics, tails
from fairlead.analysis.persistence import Persistence

TOGETHER = 2.0
"""From so many standard errors on two sides are said to move together."""

SURELY_TOGETHER = 0.9
"""The correlation from which on they are, however few samples there are."""

CROWDED = 0.25
"""A value that so many samples of a side share is a crowd: ranks then tell shapes apart too."""

GROSS = 2.0
"""How many times the wider side's range must fit between two sides that are wholly apart."""

TWENTIETH = 19.0
"""How many times more requests control may have where nobody says it."""


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """What the test says of one pair of series."""

    lead: float
    """Above 0 where the experiment is higher."""

    chance: float
    """How often two sides alike part so far in this direction."""

    persistence: Persistence


def test(control: Sequence[float], experiment: Sequence[float]) -> ShiftTest:
    return held_against(persistence.USUAL_LEVEL, control, experiment)


def held_against(
    level: float, control: Sequence[float], experiment: Sequence[float], least: float = 0.0
) -> ShiftTest:
    """The same, where it matters more; a mean varies `least` times as much, by what is known."""
    before, after = scores(control, experiment)
    centres = statistics.mean(before), statistics.mean(after)
    lead = centres[1] - centres[0]
    off = [value - centres[0] for value in before], [value - centres[1] for value in after]
    sizes = len(before), len(after)
    found = persistence.at_least(persistence.estimate(off, level=level), least, sum(sizes))
    spread = math.fsum(value * value for side in off for value in side)
    chance = _chance(abs(lead), spread, sizes, found)
    if len(before) == len(after) and _move_together(*off, found.factor):
        gaps = [one - other for one, other in zip(off[1], off[0], strict=True)]
        paired = persistence.estimate([gaps], level=level)
        inner = math.fsum(gap * gap for gap in gaps) / len(gaps)
        inner /= max(1 - paired.factor / len(gaps), _LEAST_LEFT)
        chance = _student(abs(lead), inner * paired.factor / len(gaps), paired.freedom)
        found = paired
    if _is_gross(control, experiment):
        return ShiftTest(lead, fewest(*sizes), found)
    return ShiftTest(lead, max(chance, _orders(*sizes, found.factor)), found)


def fewest(control: int, experiment: int) -> float:
    """The smallest chance that so many samples can show at all: sides wholly apart."""
    return _orders(control, experiment, 1.0)


def means_agree(
    control: Sequence[float], experiment: Sequence[float], times: float, level: float
) -> bool:
    """Whether the plain means part as well, of a side that may be `times` as restless.

    A rate of few requests is zero most of the time and then far out, with the same mean: ranks put
    it towards the crowd. So a move that way must show in the means too.
    """
    # Only the relation of the two counts; as parts of the largest, no square overflows.
    largest = max(map(abs, (*control, *experiment))) or 1.0
    control, experiment = ([value / largest for value in side] for side in (control, experiment))
    variances = [statistics.standard_deviation(side) ** 2 for side in (control, experiment)]
    noisy = max(variances[1], variances[0] * times)
    error = math.sqrt(variances[0] / len(control) + noisy / len(experiment))
    gap = abs(statistics.mean(experiment) - statistics.mean(control))
    return gap > tails.distance(level) * error


def is_towards_a_crowd(control: Sequence[float], experiment: Sequence[float]) -> bool:
    """Whether one value is common, and more so in the experiment."""
    values = sorted(experiment)
    crowd, most = 0.0, 0
    for value, run in itertools.groupby(values):
        length = len(list(run))
        if length > most:
            crowd, most = value, length
    part, before = most / len(experiment), list(control).count(crowd) / len(control)
    return part >= CROWDED and part > before


def scores(
    control: Sequence[float], experiment: Sequence[float]
) -> tuple[list[float], list[float]]:
    """The normal scores of all ranks; equal samples share the mean of their ranks."""
    ordered = sorted([*control, *experiment])
    table = _table(len(ordered))
    of: dict[float, float] = {}
    place = 0
    for value, run in itertools.groupby(ordered):
        length = sum(1 for _ in run)
        # The score of the middle rank, doubled ranks being whole numbers.
        of[value] = table[2 * place + length + 1]
        place += length
    return [of[value] for value in control], [of[value] for value in experiment]


_LEAST_LEFT = 0.05


def _chance(lead: float, spread: float, sizes: tuple[int, int], found: Persistence) -> float:
    one, other = sizes
    # Centres that were fitted to samples that follow each other took more of their spread.
    left = max(1 - 2 * found.factor / (one + other), _LEAST_LEFT)
    variance = spread / (one + other) / left
    return _student(lead, variance * found.factor * (1 / one + 1 / other), found.freedom)


def _student(lead: float, variance: float, freedom: float) -> float:
    if lead == 0:
        return 0.5
    distance = lead / math.sqrt(variance) if variance > 0 else math.inf
    return tails.student_upper(distance, freedom)


def _move_together(one: Sequence[float], other: Sequence[float], factor: float) -> bool:
    """Whether more than chance makes of two sides whose samples follow each other."""
    sizes = math.fsum(value * value for value in one) * math.fsum(value * value for value in other)
    if not sizes > 0:
        return False
    shared = math.fsum(a * b for a, b in zip(one, other, strict=True)) / math.sqrt(sizes)
    return shared > min(TOGETHER * math.sqrt(max(factor, 1.0) / len(one)), SURELY_TOGETHER)


def _is_gross(control: Sequence[float], experiment: Sequence[float]) -> bool:
    """Whether the sides lie so far apart that no following of each other explains it."""
    ends = min(control), max(control), min(experiment), max(experiment)
    if _lie_apart(*ends):
        return True
    return min(ends) > 0 and _lie_apart(*map(math.log, ends))


def _lie_apart(low: float, high: float, other_low: float, other_high: float) -> bool:
    gap = max(other_low - high, low - other_high)
    return gap > 0 and gap >= GROSS * max(high - low, other_high - other_low)


@functools.lru_cache(maxsize=8192)
def _orders(control: int, experiment: int, factor: float) -> float:
    """One over the number of ways to draw a side from all: no test of order can say less."""
    one, other = control / max(factor, 1.0), experiment / max(factor, 1.0)
    ways = math.lgamma(one + other + 1) - math.lgamma(one + 1) - math.lgamma(other + 1)
    return math.exp(-min(ways, 690.0))


@functools.lru_cache(maxsize=256)
def _table(count: int) -> tuple[float, ...]:
    """The score of each half rank; the first stands for no rank."""
    return tuple(
        0.0 if half == 0 else statistics.normal_quantile(half / 2 / (count + 1))
        for half in range(2 * count + 1)
    )
