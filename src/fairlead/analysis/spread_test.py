"""The same centre, but far wider or far narrower: what a test of ranks cannot see.

Distances from each side's median are compared as any samples are. Fewer requests make a mean more
restless by themselves, so the limit grows with them, and nothing is said where nobody knows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.analysis import classify, persistence, reasons, series_test, statistics, verdict


@dataclass(frozen=True, slots=True)
class SpreadLimits:
    """What it takes to speak up."""

    strictness: classify.Strictness
    level: float
    """The chance of a false alarm in one direction."""

    times: float
    """How many times wider or narrower a spread must be."""

    restless: float = 1.0
    """How many times the variance of control the experiment's fewer requests explain."""

    follow: float = 1.0
    """How many times more a mean varies, as samples follow each other: so do their distances."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A label instead of Pass, and why."""

    label: verdict.Label
    reason: str
    critical: bool


def look(rule: classify.Rule, sides: classify.Sides, limits: SpreadLimits) -> Sight | None:
    """What is seen, or None."""
    if not _reaches_out(rule, sides, TOLERANCE):
        return None
    return _spread(rule, sides, limits)


TOLERANCE = 0.25
"""The change of distances that is tolerated, as a part of control's median."""


FOLLOWING = 2.0
"""How many times more a mean must vary for samples to be said to follow each other here."""


def _spread(
    rule: classify.Rule,
    sides: classify.Sides,
    limits: SpreadLimits,
) -> Sight | None:
    centre = statistics.percentile(sides.control, 50)
    # Each side's own: one whose samples follow each other may have wandered off, no wider.
    apart = classify.Sides(_distances(sides.control), _distances(sides.experiment))
    before, after = statistics.mean(apart.control), statistics.mean(apart.experiment)
    if not abs(after - before) > TOLERANCE * abs(centre):
        return None
    label = _spread_label(rule, before, after, limits.times)
    if label is None:
        return None
    # What is allowed of the values is allowed of their distances: both are as many times as far.
    wider_is_low = label is verdict.Label.LOW and after > before
    seen = classify.Sides(apart.experiment, apart.control) if wider_is_low else apart
    effect = classify.effect_of(rule, seen, limits.strictness)
    if classify.is_allowed(rule, label, effect) or _is_in_reach(rule, label, seen, abs(centre)):
        return None
    follow = limits.follow if limits.follow > FOLLOWING else 0.0
    found = series_test.held_against(
        persistence.USUAL_LEVEL, apart.control, apart.experiment, follow
    )
    if found.chance > limits.level or not _is_real(apart, limits):
        return None
    told = f"typical distance from the median {reasons.figure(after)}"
    told += f" against {reasons.figure(before)} of control"
    change = "grew" if after > before else "shrank"
    critical = classify.is_critical(rule, label, effect)
    return Sight(label, f"spread {change}: {told}", critical)


def _is_in_reach(
    rule: classify.Rule, label: verdict.Label, apart: classify.Sides, centre: float
) -> bool:
    """Whether samples stay within the values that are allowed of them, counted from zero.

    Control may be as good as constant (an answer's time is only as fine as its bucket): every
    other spread is then any number of times as wide.
    """
    if rule.effect.measure is not classify.Measure.MEAN_RATIO:
        return False
    control, experiment = (
        [centre + value for value in side] for side in (apart.control, apart.experiment)
    )
    return classify.is_allowed(rule, label, statistics.mean_ratio(control, experiment))


def _distances(side: Sequence[float]) -> list[float]:
    middle = statistics.percentile(side, 50)
    return [abs(value - middle) for value in side]


def _is_real(apart: classify.Sides, limits: SpreadLimits) -> bool:
    """Whether distances part by more than few requests do, whose rates are mostly one value."""
    sides = apart.control, apart.experiment
    if not series_test.is_towards_a_crowd(*sides):
        return True
    return series_test.means_agree(*sides, limits.restless, limits.level)


def _reaches_out(rule: classify.Rule, sides: classify.Sides, tolerance: float) -> bool:
    """Whether samples went further out on the side that is watched.

    As they are, not aligned: of a side that got better by leaps, the samples that stayed where
    control is would then lie far out.
    """
    if rule.direction is classify.Direction.EITHER:
        return True
    sign = 1 if rule.direction is classify.Direction.INCREASE else -1
    centre = statistics.percentile(sides.control, 50)
    before, after = (
        statistics.mean([max(0.0, sign * (value - centre)) for value in side])
        for side in (sides.control, sides.experiment)
    )
    # Half of what both sides together must show: a spread that grows evenly has half of it here.
    return after - before > tolerance * abs(centre) / 2


def _spread_label(
    rule: classify.Rule, before: float, after: float, limit: float
) -> verdict.Label | None:
    """A wider spread is bad news on the watched side; a narrower one only if any change is."""
    if after > before:
        wider = rule.direction is not classify.Direction.DECREASE
        label = verdict.Label.HIGH if wider else verdict.Label.LOW
        return label if after >= limit * before else None
    if rule.direction is not classify.Direction.EITHER:
        return None
    return verdict.Label.LOW if after * limit <= before else None
