"""A second look at a Pass: what a test of ranks cannot see.

Ranks answer one question, whether all of a side moved. Three changes that people care about
leave the middle of the ranks where it was, and each has a look of its own here:

- `counts`: a few events where there were none (most samples are zero on both sides);
- `jump`: a part of the samples lies past everything that control ever showed;
- `spread`: the same centre, but far wider or far narrower.

Every look can only turn a Pass into High or Low, never the other way round, and more tolerance
never adds one. docs/explanation/judge.md tells the price of each.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

from fairlead.domain.analysis import classify, ranksum, reasons, statistics, verdict

FEW_EVENTS = 10
MANY_EVENTS = 10_000
# Beyond this a float skips whole numbers, and nobody counted so far.
MOST_EVENTS = 2.0**53
# Counts vary by chance; only beyond so many standard deviations of it do we call them bursty.
BURSTY = 2.33


class Look(enum.Enum):
    """The looks, in the order in which they are taken."""

    COUNTS = "counts"
    JUMP = "jump"
    SPREAD = "spread"


@dataclasses.dataclass(frozen=True, slots=True)
class Attention:
    """Which looks are taken, and what each needs to speak up."""

    looks: tuple[Look, ...] = tuple(Look)
    # For fewer than ten events in all: at 98 % no fewer than seven could ever count.
    counts_confidence: float = 0.90
    # How many times wider or narrower a spread must be.
    spread: float = 3.0


EVERYTHING = Attention()
NOTHING = Attention(looks=())


@dataclasses.dataclass(frozen=True, slots=True)
class Sight:
    """What a look saw: a label instead of Pass, and why."""

    label: verdict.Label
    reason: str
    critical: bool


def look_again(
    told: verdict.Finding,
    rule: classify.Rule,
    sides: classify.Sides,
    strictness: classify.Strictness,
    attention: Attention,
) -> verdict.Finding:
    """The finding as it stands, or as the first look that sees more would have it."""
    if told.label is not verdict.Label.PASS or told.interval is None:
        return told
    for look in attention.looks:
        match look:
            case Look.COUNTS:
                sight = _counts(rule, sides, strictness, attention.counts_confidence)
            case Look.JUMP:
                sight = _jump(rule, sides, strictness)
            case Look.SPREAD:
                sight = _spread(rule, _aligned(sides, told.interval), strictness, attention.spread)
        if sight is not None:
            reason = f"{reasons.means(sides.control, sides.experiment)}; {sight.reason}"
            return dataclasses.replace(
                told, label=sight.label, reason=reason, critical=sight.critical
            )
    return told


def _counts(
    rule: classify.Rule, sides: classify.Sides, strictness: classify.Strictness, few: float
) -> Sight | None:
    if not _are_sparse_counts(sides):
        return None
    # Events come in bursts; a burst is one piece of news, not a hundred.
    burst = _dispersion(sides.control, sides.experiment)
    effect = classify.effect_of(rule, sides, strictness)
    for label, more, fewer in (
        (verdict.Label.HIGH, sides.experiment, sides.control),
        (verdict.Label.LOW, sides.control, sides.experiment),
    ):
        if not classify.watches(rule, label) or classify.is_allowed(rule, label, effect):
            continue
        events, others = math.floor(sum(more) / burst), math.ceil(sum(fewer) / burst)
        chance = _chance(events, events + others, len(more) / (len(more) + len(fewer)))
        sure = few if events + others < FEW_EVENTS else strictness.confidence
        if chance < (1 - sure) / 2:
            told = f"{sum(sides.experiment):g} events against {sum(sides.control):g} of control"
            odds = f"chance gives so uneven a split {reasons.odds(chance)}"
            critical = classify.is_critical(rule, label, effect)
            return Sight(label, f"sparse counts: {told}; {odds}", critical)
    return None


def _are_sparse_counts(sides: classify.Sides) -> bool:
    every = [*sides.control, *sides.experiment]
    if every.count(0.0) * 2 < len(every) or not sum(every) < MOST_EVENTS:
        return False
    return all(value >= 0 and value % 1 == 0 for value in every)


def _dispersion(*sides: Sequence[float]) -> float:
    """How much more the counts vary than independent events would; 1 if chance explains it."""
    excess, free = 0.0, 0
    for side in sides:
        centre = statistics.mean(side)
        if centre > 0:
            excess += statistics.squares(side, centre) / centre
            free += len(side) - 1
    if not free or excess / free <= 1 + BURSTY * math.sqrt(2 / free):
        return 1.0
    return excess / free


def _chance(events: int, total: int, share: float) -> float:
    """The chance of so many events on this side, if an event falls on either side alike."""
    expected = total * share
    if events <= expected:
        return 1.0
    if total > MANY_EVENTS:
        distance = (events - expected) / math.sqrt(expected * (1 - share))
        return math.erfc(distance / statistics.SQRT_2) / 2
    return statistics.binomial_upper(events, total, share)


def _jump(
    rule: classify.Rule, sides: classify.Sides, strictness: classify.Strictness
) -> Sight | None:
    control, experiment = statistics.mean(sides.control), statistics.mean(sides.experiment)
    if not abs(experiment - control) > strictness.tolerance * abs(control):
        return None
    effect = classify.effect_of(rule, sides, strictness)
    if experiment > control:
        label, edge, word = verdict.Label.HIGH, max(sides.control), "above"
        beyond = sum(value > edge for value in sides.experiment)
    else:
        label, edge, word = verdict.Label.LOW, min(sides.control), "below"
        beyond = sum(value < edge for value in sides.experiment)
    if not classify.watches(rule, label) or classify.is_allowed(rule, label, effect):
        return None
    count = len(sides.experiment)
    chance = statistics.exceedance(beyond, count, len(sides.control))
    if not chance < (1 - strictness.confidence) / 2:
        return None
    told = f"{beyond} of {count} samples lie {word} all of control ({reasons.figure(edge)})"
    odds = f"chance does this {reasons.odds(chance)}"
    critical = classify.is_critical(rule, label, effect)
    return Sight(label, f"a part jumped: {told}; {odds}", critical)


def _spread(
    rule: classify.Rule,
    sides: classify.Sides,
    strictness: classify.Strictness,
    limit: float,
) -> Sight | None:
    centre = statistics.percentile(sides.control, 50)
    apart = classify.Sides(
        control=[abs(value - centre) for value in sides.control],
        experiment=[abs(value - centre) for value in sides.experiment],
    )
    before, after = statistics.mean(apart.control), statistics.mean(apart.experiment)
    if not abs(after - before) > strictness.tolerance * abs(centre):
        return None
    label = _spread_label(rule, before, after, limit)
    if label is None or not classify.are_enough(apart, strictness.confidence):
        return None
    if not _is_shifted(apart, strictness):
        return None
    told = f"typical distance from the median {reasons.figure(after)}"
    told += f" against {reasons.figure(before)} of control"
    change = "grew" if after > before else "shrank"
    return Sight(label, f"spread {change}: {told}", rule.critical)


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


def _aligned(sides: classify.Sides, interval: ranksum.Interval) -> classify.Sides:
    """With a shift that is sure taken off: a side that moved is not a wider one."""
    if not (interval.low > 0 or interval.high < 0) or math.isinf(interval.estimate):
        return sides
    moved = interval.estimate
    return classify.Sides(sides.control, [value - moved for value in sides.experiment])


def _is_shifted(apart: classify.Sides, strictness: classify.Strictness) -> bool:
    try:
        interval = classify.shift(apart, strictness)
    except ranksum.AllTiedError:
        return False
    band = strictness.tolerance * abs(interval.estimate)
    return interval.low > band or interval.high < -band
