"""One metric: is the experiment higher than control, lower, or neither?

The rules and their order are those of Kayenta's judge, so that a metric gets the label it would
get there. `own_judge` shares the words, and has tests of its own.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

from fairlead.analysis import ranksum, reasons, samples, statistics, verdict

NOISE = 1e-5
# Where the search is quick: its absolute tolerance is then a hundred-thousandth of the range.
RANGE_BITS = 2


class Direction(enum.Enum):
    """Which change is a bad one."""

    INCREASE = "increase"
    DECREASE = "decrease"
    EITHER = "either"


class Measure(enum.Enum):
    """How large a difference is told."""

    MEAN_RATIO = "meanRatio"
    COMMON_LANGUAGE = "cles"


@dataclasses.dataclass(frozen=True, slots=True)
class EffectLimits:
    """A difference counts only from these sizes on, and is critical only from those on."""

    measure: Measure = Measure.MEAN_RATIO
    allowed_increase: float = 1.0
    allowed_decrease: float = 1.0
    critical_increase: float = 1.0
    critical_decrease: float = 1.0
    detectable: float = 2.0
    """How many times as many events must be visible for their absence to say anything."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """How one metric is judged."""

    name: str
    groups: tuple[str, ...] = ("default",)
    direction: Direction = Direction.EITHER
    missing: samples.Missing = samples.Missing.REMOVE
    outliers: samples.Outliers = samples.KEEP_ALL
    effect: EffectLimits = EffectLimits()
    critical: bool = False
    must_have_data: bool = False
    muted: bool = False
    no_data: verdict.NoData | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Strictness:
    """How sure we must be, and which part of the estimated shift is tolerated."""

    confidence: float = 0.98
    tolerance: float = 0.25
    # Kayenta searches the shift to 0.0001 in the metric's own unit, which is too coarse for
    # metrics of that size, and takes ratios of negative means. Only its twin must do so too.
    as_kayenta: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Sides:
    """The samples of both sides, cleaned."""

    control: list[float]
    experiment: list[float]

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.control), len(self.experiment)


def prepare(rule: Rule, control: Sequence[float], experiment: Sequence[float]) -> Sides:
    return Sides(
        control=samples.clean(control, rule.missing, rule.outliers),
        experiment=samples.clean(experiment, rule.missing, rule.outliers),
    )


def classify(rule: Rule, sides: Sides, strictness: Strictness) -> verdict.Finding:
    if not sides.control or not sides.experiment:
        return without_data(rule, sides)
    if sorted(sides.control) == sorted(sides.experiment):
        return finding(rule, verdict.Label.PASS, "both sides are identical", ratio=1.0)
    if len({*sides.control, *sides.experiment}) == 1:
        return finding(rule, verdict.Label.PASS, "all samples are equal", ratio=1.0)
    try:
        interval = shift(sides, strictness)
    except ranksum.AllTiedError:
        reason = "too few different samples to rank"
        return finding(rule, verdict.Label.ERROR, reason)
    return _compare(rule, sides, interval, strictness)


def without_data(rule: Rule, sides: Sides) -> verdict.Finding:
    """The metric's own policy if it has one, else what Kayenta makes of it."""
    empty = [name for name in ("control", "experiment") if not getattr(sides, name)]
    reason = f"no data on {' and '.join(empty)}"
    if rule.no_data is not None:
        return _by_policy(rule, rule.no_data, reason)
    if rule.missing is samples.Missing.REPLACE:
        return finding(rule, verdict.Label.PASS, f"{reason}, which counts as zero", ratio=1.0)
    if rule.must_have_data and not rule.critical:
        return finding(rule, verdict.Label.NO_DATA_FAILS, f"{reason}, which it must have")
    return finding(rule, verdict.Label.NO_DATA, reason, critical=rule.critical)


def finding(
    rule: Rule,
    label: verdict.Label,
    reason: str,
    *,
    critical: bool = False,
    ratio: float | None = None,
) -> verdict.Finding:
    return verdict.Finding(
        name=rule.name,
        label=label,
        reason=reason,
        groups=rule.groups,
        critical=critical,
        muted=rule.muted,
        ratio=ratio,
    )


def shift(sides: Sides, strictness: Strictness) -> ranksum.Interval:
    """The interval of the shift, searched in the metric's unit or free of it."""
    control, experiment = _distinct(sides)
    if strictness.as_kayenta:
        return ranksum.shift_interval(control, experiment, strictness.confidence)
    width = max(*control, *experiment) - min(*control, *experiment)
    if not 0 < width < math.inf:
        return ranksum.shift_interval(control, experiment, strictness.confidence)
    # A power of two changes no digit, so ties stay ties.
    power = RANGE_BITS - math.frexp(width)[1]
    found = ranksum.shift_interval(
        [math.ldexp(value, power) for value in control],
        [math.ldexp(value, power) for value in experiment],
        strictness.confidence,
    )
    return ranksum.Interval(
        low=_scaled_back(found.low, power),
        high=_scaled_back(found.high, power),
        estimate=_scaled_back(found.estimate, power),
    )


def _scaled_back(value: float, power: int) -> float:
    try:
        return math.ldexp(value, -power)
    except OverflowError:
        return math.copysign(math.inf, value)


def effect_of(rule: Rule, sides: Sides, strictness: Strictness) -> float:
    """The size of the difference; not a number if it cannot be told."""
    if rule.effect.measure is Measure.COMMON_LANGUAGE:
        return statistics.common_language(sides.control, sides.experiment)
    if (
        not strictness.as_kayenta
        and min(map(statistics.mean, (sides.control, sides.experiment))) < 0
    ):
        # -9 is three times -3, and yet less.
        return math.nan
    return statistics.mean_ratio(sides.control, sides.experiment)


def is_allowed(rule: Rule, label: verdict.Label, effect: float) -> bool:
    """Whether a difference of this size is none; one that cannot be told always counts."""
    if label is verdict.Label.HIGH:
        return effect < rule.effect.allowed_increase
    return effect > rule.effect.allowed_decrease


def is_critical(rule: Rule, label: verdict.Label, effect: float) -> bool:
    if not rule.critical:
        return False
    if label is verdict.Label.HIGH:
        return not effect < rule.effect.critical_increase
    return not effect > rule.effect.critical_decrease


def watches(rule: Rule, label: verdict.Label) -> bool:
    unwatched = Direction.DECREASE if label is verdict.Label.HIGH else Direction.INCREASE
    return rule.direction is not unwatched


def _by_policy(rule: Rule, policy: verdict.NoData, reason: str) -> verdict.Finding:
    reason = f"{reason}; its policy is {policy.value}"
    match policy:
        case verdict.NoData.PASS:
            return finding(rule, verdict.Label.PASS, reason)
        case verdict.NoData.FAIL:
            label = verdict.Label.NO_DATA_FAILS
            return finding(rule, label, reason, critical=rule.critical)
        case verdict.NoData.WAIT | verdict.NoData.INCONCLUSIVE:
            told = finding(rule, verdict.Label.NO_DATA, reason)
            return dataclasses.replace(told, no_data=policy)


def _distinct(sides: Sides) -> tuple[list[float], list[float]]:
    """Two constants have no ranks inside; a little spread gives them some."""
    if len(set(sides.control)) > 1 or len(set(sides.experiment)) > 1:
        return sides.control, sides.experiment
    return (
        ranksum.spread_out(sides.control[0], len(sides.control), NOISE),
        ranksum.spread_out(sides.experiment[0], len(sides.experiment), NOISE),
    )


def _compare(
    rule: Rule, sides: Sides, interval: ranksum.Interval, strictness: Strictness
) -> verdict.Finding:
    band = strictness.tolerance * abs(interval.estimate)
    effect = effect_of(rule, sides, strictness)
    label = verdict.Label.PASS
    reason = reasons.unshifted(interval, band, strictness.confidence)
    for candidate, outside in (
        (verdict.Label.HIGH, interval.low > band),
        (verdict.Label.LOW, interval.high < -band),
    ):
        # High is asked first: with ties both ends may lie outside.
        if outside and label is verdict.Label.PASS:
            label, reason = _weigh(rule, candidate, effect)
    if label is not verdict.Label.PASS:
        reason = reasons.shifted(interval, band, strictness.confidence)
        if not are_enough(sides, strictness.confidence):
            reason += reasons.few(*sides.counts)
    told = finding(
        rule,
        label,
        f"{reasons.means(sides.control, sides.experiment)}; {reason}",
        critical=label is not verdict.Label.PASS and is_critical(rule, label, effect),
        ratio=statistics.mean_ratio(sides.control, sides.experiment),
    )
    return dataclasses.replace(told, interval=interval)


def are_enough(sides: Sides, confidence: float) -> bool:
    """Whether so many samples could reach this confidence in any order at all."""
    control, experiment = sides.counts
    return 2 * statistics.exceedance(experiment, experiment, control) <= 1 - confidence


def _weigh(rule: Rule, label: verdict.Label, effect: float) -> tuple[verdict.Label, str]:
    """A shift outside the band counts if its direction is watched and it is large enough."""
    if not watches(rule, label):
        return verdict.Label.PASS, reasons.unwatched(rule.direction.value)
    if is_allowed(rule, label, effect):
        high = label is verdict.Label.HIGH
        limit = rule.effect.allowed_increase if high else rule.effect.allowed_decrease
        told = reasons.small_effect(rule.effect.measure.value, effect, limit)
        return verdict.Label.PASS, told
    return label, ""
