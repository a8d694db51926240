"""Tails of the distributions that the tests of the judge need: normal, Student's, binomial."""

import functools
import math

from fairlead.analysis import statistics

LEAST = 1e-300
"""What no chance is below: its logarithm and its quantile still exist."""

_STEPS = 500
_TINY = 1e-30

normal_quantile = functools.lru_cache(maxsize=4096)(statistics.normal_quantile)


def normal_upper(z: float) -> float:
    return max(math.erfc(z / statistics.SQRT_2) / 2, LEAST)


def distance(chance: float) -> float:
    """How many standard deviations a one-sided chance is worth."""
    return -normal_quantile(min(max(chance, LEAST), 1 - 1e-15))


def student_upper(t: float, freedom: float) -> float:
    """The chance of more than `t`, with so many degrees of freedom."""
    if math.isinf(t):
        return LEAST if t > 0 else 1.0
    half = beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return max(half if t > 0 else 1 - half, LEAST)


def binomial_upper(successes: int, trials: int, chance: float) -> float:
    """The mid-p chance of at least so many successes: the observed number counts half."""
    if trials <= 0 or successes < 0:
        return 1.0
    least = _at_least(successes, trials, chance)
    return max((least + _at_least(successes + 1, trials, chance)) / 2, LEAST)


def binomial_lower(successes: int, trials: int, chance: float) -> float:
    return binomial_upper(trials - successes, trials, 1 - chance)


def beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if not 0 < x < 1:
        return 0.0 if x <= 0 else 1.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log1p(-x))
    # The fraction converges fast on this side of the mean; the other follows by symmetry.
    if x < (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(a, b, x) / a)
    return max(0.0, 1 - front * _fraction(b, a, 1 - x) / b)


def _at_least(successes: int, trials: int, chance: float) -> float:
    if successes <= 0:
        return 1.0
    if successes > trials:
        return 0.0
    return beta(successes, trials - successes + 1, chance)


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's way through the continued fraction of the incomplete beta function."""
    above, under = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = under
    for step in range(1, _STEPS):
        twice = 2 * step
        even = step * (b - step) * x / ((a + twice - 1) * (a + twice))
        odd = -(a + step) * (a + b + step) * x / ((a + twice) * (a + twice + 1))
        for term in (even, odd):
            under = 1 / _away(1 + term * under)
            above = _away(1 + term / above)
            value *= under * above
        if abs(under * above - 1) < 1e-12:  # noqa: PLR2004 - what rounding leaves
            break
    return value


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
