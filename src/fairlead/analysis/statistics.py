"""Numbers about one side, and sizes of an effect between two; the rank test is in `ranksum`."""

import bisect
import itertools
import math
import operator
from collections.abc import Sequence

SQRT_2 = math.sqrt(2)
SQRT_2_PI = math.sqrt(2 * math.pi)
QUANTILE_STEPS = 200


def mean(values: Sequence[float]) -> float:
    """The mean in two passes, so that the second takes the rounding of the first back."""
    count = len(values)
    if not count:
        return math.nan
    rough = sum(values) / count
    lost: float = sum(map(operator.sub, values, itertools.repeat(rough)))
    return rough + lost / count


def standard_deviation(values: Sequence[float]) -> float:
    """Of a sample (n - 1); one value has none."""
    count = len(values)
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return 0.0 if count else math.nan
    centre = mean(values)
    return math.sqrt(squares(values, centre) / (count - 1))


def squares(values: Sequence[float], centre: float) -> float:
    """Squared distances, summed; a product overflows to infinity where a power would raise."""
    return sum((value - centre) * (value - centre) for value in values)


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear between the two nearest order statistics (type 7 of Hyndman and Fan)."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (position - below) * (ordered[below + 1] - ordered[below])


def normal_quantile(probability: float) -> float:
    """Where the standard normal distribution has this much to its left."""
    if not 0 < probability < 1:
        return math.nan
    if probability > 0.5:  # noqa: PLR2004 - symmetry keeps Newton on the convex half
        return -normal_quantile(1 - probability)
    # On the left half the distribution is convex, so Newton from 0 falls towards the root and
    # never past it; it ends when rounding leaves nothing to gain.
    place = 0.0
    for _ in range(QUANTILE_STEPS):
        excess = math.erfc(-place / SQRT_2) / 2 - probability
        step = excess * SQRT_2_PI * math.exp(place * place / 2)
        if abs(step) <= 1e-16 * max(1.0, abs(place)):
            break
        place -= step
    return place


def mean_ratio(control: Sequence[float], experiment: Sequence[float]) -> float:
    """Experiment's mean over control's; not a number when either mean is zero."""
    below, above = mean(control), mean(experiment)
    if below == 0 or above == 0:
        return math.nan
    return above / below


def common_language(control: Sequence[float], experiment: Sequence[float]) -> float:
    """How often a sample of the experiment exceeds one of control; ties count half."""
    return wins(experiment, sorted(control)) / (len(control) * len(experiment))


def wins(one: Sequence[float], other: Sequence[float]) -> float:
    """The U statistic of `one` over `other`, which is sorted: pairs won, ties as halves."""
    below = sum(map(bisect.bisect_left, itertools.repeat(other), one))
    not_above = sum(map(bisect.bisect_right, itertools.repeat(other), one))
    return (below + not_above) / 2


def binomial_upper(successes: int, trials: int, chance: float) -> float:
    """The mid-p chance of at least this many successes: the observed number counts half."""
    exact = _binomial(successes, trials, chance)
    return exact / 2 + sum(_binomial(k, trials, chance) for k in range(successes + 1, trials + 1))


def exceedance(beyond: int, experiment: int, control: int) -> float:
    """The chance that so many samples lie past all of control, if both sides are alike."""
    chance = 1.0
    for taken in range(beyond):
        chance *= (experiment - taken) / (experiment + control - taken)
    return chance


def _binomial(successes: int, trials: int, chance: float) -> float:
    if not 0 < chance < 1:
        return 1.0 if successes == (trials if chance >= 1 else 0) else 0.0
    log = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    log += successes * math.log(chance) + (trials - successes) * math.log1p(-chance)
    return math.exp(log)
