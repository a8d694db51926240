"""The sentences of a finding: what was seen, against what, with the numbers."""

from collections.abc import Sequence

from fairlead.analysis import looks, ranksum, statistics

NEVER = 1e-9
FOLLOWING = 1.5
"""How many times more a mean must vary for it to be told."""


def figure(value: float) -> str:
    return f"{value:.4g}"


def percent(share: float) -> str:
    return f"{share * 100:g}%"


def between(interval: ranksum.Interval) -> str:
    low, high = sorted((interval.low, interval.high))
    return f"{figure(low)} to {figure(high)}"


def means(control: Sequence[float], experiment: Sequence[float]) -> str:
    above, below = statistics.mean(experiment), statistics.mean(control)
    return f"mean {figure(above)} against {figure(below)} of control"


def shifted(interval: ranksum.Interval, band: float, confidence: float) -> str:
    """High or Low: the interval lies outside the band."""
    return (
        f"shifted by {between(interval)} with {percent(confidence)} confidence,"
        f" beyond the tolerated {figure(band)}"
    )


def shift(interval: ranksum.Interval | None, look: looks.Look, factor: float, count: int) -> str:
    """What our judge says of a shift: how large, how sure, at which look, by how many samples."""
    told = "no shift can be told" if interval is None else f"a shift of {between(interval)}"
    told += f" ({percent(round(1 - look.chance, 6))} confidence, {look})"
    if factor > FOLLOWING:
        told += f"; {count} samples that follow each other count as {max(1, round(count / factor))}"
    return told


def unshifted(interval: ranksum.Interval, band: float, confidence: float) -> str:
    """Pass: the interval reaches into the band."""
    return (
        f"a shift of {between(interval)} ({percent(confidence)} confidence)"
        f" does not lie beyond the tolerated {figure(band)}"
    )


def small_effect(name: str, effect: float, limit: float) -> str:
    return f"shifted, but its {name} of {figure(effect)} is within the allowed {figure(limit)}"


def unwatched(direction: str) -> str:
    return f"shifted, but only a {direction} counts"


def odds(chance: float) -> str:
    """How often chance alone does such a thing; what never happens needs no digits."""
    if chance < NEVER:
        return "less than once in a billion"
    return f"once in {figure(1 / chance)}"


def few(control: int, experiment: int) -> str:
    return (
        f"; with {experiment} and {control} samples chance alone parts two equal sides like this"
        f" once in {round(0.5 / statistics.exceedance(experiment, experiment, control))}"
    )
