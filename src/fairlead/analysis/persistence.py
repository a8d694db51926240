"""How much less than their number samples say that follow each other.

Minutes of one service resemble the minutes before. The mean of such samples varies more than that
of independent ones, by a factor that is estimated from neighbours (an autoregression of one step)
and corrected for what an estimate from few samples misses. The rule was chosen by measurement:
docs/explanation/judge.md has the table, and decision 0043 what else was tried.
"""

import collections
import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.analysis import tails

LEAST, MOST = -0.05, 0.97
"""Below and above no estimate from so few samples is believed."""

CROWDED = 0.5
"""Where a larger part of a side's samples is one value, ties leave the test calmer than it says.
The estimate is then taken as it is; correcting it would be careful twice."""

_CAUTION = 0.5
"""Standard errors that are added once an estimate is two of them above nothing."""

USUAL_LEVEL = 0.0085
"""What one direction of one metric may spend at the planned end of a release of one step."""

_FREEDOM_POWER = 2.2
"""An estimated factor costs degrees of freedom, the more the larger it is."""


@dataclass(frozen=True, slots=True)
class Persistence:
    """What is made of the samples' order."""

    factor: float
    """How many times more the mean varies than that of independent samples."""

    freedom: float
    """Degrees of freedom that are left of `count` samples."""


def estimate(
    sides: Sequence[Sequence[float]], most: float = MOST, level: float = USUAL_LEVEL
) -> Persistence:
    """From deviations from each side's own centre, in the order of time.

    `most` is how far neighbours can be alike at all. The smaller the level that a test is held
    against, the more an estimate that is too low by chance would matter.
    """
    count = sum(map(len, sides))
    squares = math.fsum(value * value for side in sides for value in side)
    if not squares > 0:
        return Persistence(1.0, max(count - len(sides), 1))
    pairs = (itertools.pairwise(side) for side in sides)
    neighbours = math.fsum(one * next_ for side in pairs for one, next_ in side) / squares
    length = max(1, count // len(sides))
    corrected = neighbours
    if _crowd(sides) <= CROWDED * count:
        # Kendall's correction: neighbours of a short series look less alike than they are.
        corrected += (1 + 3 * neighbours) / length
    error = 1 / math.sqrt(count)
    corrected += _CAUTION * error * min(max(corrected / error - 1, 0.0), 1.0)
    further = tails.distance(level) - tails.distance(USUAL_LEVEL) if level < USUAL_LEVEL else 0.0
    corrected += _CAUTION * error * further
    found = factor(round(min(max(corrected, LEAST), most, MOST), 3), length)
    return Persistence(found, max(left_of(count, found) - len(sides), 1.0))


def left_of(count: int, times: float) -> float:
    """How many samples are left of so many, where their mean varies so many times more."""
    return count / math.pow(max(times, 1.0), _FREEDOM_POWER)


def _crowd(sides: Sequence[Sequence[float]]) -> int:
    """How many samples have the most common value of their side."""
    return sum(max(collections.Counter(side).values(), default=0) for side in sides)


def at_least(found: Persistence, times: float, count: int) -> Persistence:
    """Where something else already said how samples follow each other."""
    if times <= found.factor:
        return found
    return Persistence(times, max(left_of(count, times) - 2, 1.0))


@functools.lru_cache(maxsize=8192)
def factor(correlation: float, length: int) -> float:
    """How many times more the mean of so many samples varies, by the correlation of neighbours."""
    rest, total = 1.0, 1.0
    for lag in range(1, length):
        rest *= correlation
        total += 2 * (1 - lag / length) * rest
        if abs(rest) < 1e-6:  # noqa: PLR2004 - nothing follows that could be seen
            break
    return max(total, 0.5)
