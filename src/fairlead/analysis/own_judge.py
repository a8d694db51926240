"""One metric by our own judge: which test its data calls for, and what is said of the outcome.

    series ─────► series_test ─┬─► spread_test
    counts ─────► count_test   ├─► label, estimate with interval, how sure, which look
    histogram ──► histogram_test

Every test is held against what this look may spend (`looks`), so that the promise on false alarms
is one for the whole release. Where so little came that nobody could have seen a change, the
finding says so and what it takes, and waits: that is no Pass.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.analysis import (
    classify,
    looks,
    ranksum,
    reasons,
    series_test,
    spread_test,
    statistics,
    tails,
    verdict,
)
from fairlead.analysis.classify import Direction, Rule, Sides, Strictness
from fairlead.analysis.series_test import fewest


@dataclass(frozen=True, slots=True)
class Manner:
    """How one metric is looked at."""

    strictness: Strictness
    plan: looks.Plan = looks.ONCE
    spread: float = 3.0
    """How many times wider or narrower a spread must be."""

    @property
    def chance(self) -> float:
        """Of a false alarm, in a whole release."""
        return 1 - self.strictness.confidence


def find_in_series(
    rule: Rule, control: Sequence[float], experiment: Sequence[float], manner: Manner
) -> verdict.Finding:
    # An infinite sample is the fault of a query (a division by zero), not a measurement.
    infinite = sum(map(math.isinf, control)) + sum(map(math.isinf, experiment))
    if infinite:
        control = [value for value in control if not math.isinf(value)]
        experiment = [value for value in experiment if not math.isinf(value)]
    sides = classify.prepare(rule, control, experiment)
    told = _find(rule, sides, manner)
    if infinite:
        told = dataclasses.replace(told, reason=f"{told.reason}; left out {infinite} infinite")
    return told


def level(rule: Rule, look: looks.Look) -> float:
    """What one direction may spend: all of it where only that one is watched."""
    return look.chance / 2 if rule.direction is Direction.EITHER else look.chance


def not_enough(rule: Rule, of: str, why: str) -> verdict.Finding:
    """Nobody could know yet: wait, unless the metric's policy is to leave it open or to pass."""
    reason = f"{verdict.NOT_ENOUGH}{of} yet: {why}"
    if rule.no_data is verdict.NoData.PASS:
        return classify.finding(rule, verdict.Label.PASS, reason)
    left_open = rule.no_data is verdict.NoData.INCONCLUSIVE
    policy = verdict.NoData.INCONCLUSIVE if left_open else verdict.NoData.WAIT
    told = classify.finding(rule, verdict.Label.NO_DATA, reason)
    return dataclasses.replace(told, no_data=policy)


def _find(rule: Rule, sides: Sides, manner: Manner) -> verdict.Finding:
    if not sides.control or not sides.experiment:
        return classify.without_data(rule, sides)
    look = looks.look(manner.plan, min(sides.counts), manner.chance)
    if fewest(*sides.counts) > level(rule, look):
        return not_enough(rule, "samples", _what_it_takes(rule, sides, look))
    found = series_test.held_against(level(rule, look), sides.control, sides.experiment)
    if sorted(sides.control) == sorted(sides.experiment):
        return classify.finding(rule, verdict.Label.PASS, "both sides are identical", ratio=1.0)
    told = _labelled(rule, sides, manner, (look, found))
    if told.label is not verdict.Label.PASS:
        return told
    return _spread(rule, sides, manner, (told, found.persistence.factor))


def _labelled(
    rule: Rule,
    sides: Sides,
    manner: Manner,
    seen: tuple[looks.Look, series_test.ShiftTest],
) -> verdict.Finding:
    look, found = seen
    interval = _interval(sides, look, found, manner.strictness)
    label = verdict.Label.HIGH if found.lead > 0 else verdict.Label.LOW
    effect = classify.effect_of(rule, sides, manner.strictness)
    is_sure = found.chance <= level(rule, look) and _is_real(rule, sides, manner, look)
    band = manner.strictness.tolerance * abs(interval.estimate) if interval else 0.0
    if is_sure and interval and band:
        is_sure = interval.low > band or interval.high < -band
    reason = reasons.shift(interval, look, found.persistence.factor, len(sides.experiment))
    if not is_sure:
        label = verdict.Label.PASS
    elif not classify.watches(rule, label):
        label, reason = verdict.Label.PASS, reasons.unwatched(rule.direction.value)
    elif classify.is_allowed(rule, label, effect):
        high = label is verdict.Label.HIGH
        limit = rule.effect.allowed_increase if high else rule.effect.allowed_decrease
        reason = reasons.small_effect(rule.effect.measure.value, effect, limit)
        label = verdict.Label.PASS
    else:
        reason = f"{reason}; chance alone does so {reasons.odds(found.chance)}"
    told = classify.finding(
        rule,
        label,
        f"{reasons.means(sides.control, sides.experiment)}; {reason}",
        critical=label is not verdict.Label.PASS and classify.is_critical(rule, label, effect),
        ratio=statistics.mean_ratio(sides.control, sides.experiment),
    )
    return dataclasses.replace(told, interval=interval)


def _is_real(rule: Rule, sides: Sides, manner: Manner, look: looks.Look) -> bool:
    """Whether a shift is more than fewer requests make of the same rate."""
    share = manner.plan.share
    times = series_test.TWENTIETH if share is None else max((1 - share) / max(share, 0.001), 1.0)
    if not series_test.is_towards_a_crowd(sides.control, sides.experiment):
        return True
    return series_test.means_agree(sides.control, sides.experiment, times, level(rule, look))


def _spread(
    rule: Rule, sides: Sides, manner: Manner, passed: tuple[verdict.Finding, float]
) -> verdict.Finding:
    """A Pass, unless the same centre has become far wider or narrower than its traffic makes it."""
    (told, follow), share = passed, manner.plan.share
    if share is None or told.interval is None:
        return told
    look = looks.apart(looks.look(manner.plan, min(sides.counts), manner.chance))
    restless = max((1 - share) / max(share, 0.001), 1.0)
    limits = spread_test.SpreadLimits(
        manner.strictness, level(rule, look), manner.spread * math.sqrt(restless), restless, follow
    )
    spread = spread_test.look(rule, sides, limits)
    if spread is None:
        return told
    reason = f"{reasons.means(sides.control, sides.experiment)}; {spread.reason}"
    return dataclasses.replace(told, label=spread.label, reason=reason, critical=spread.critical)


def _interval(
    sides: Sides, look: looks.Look, found: series_test.ShiftTest, strictness: Strictness
) -> ranksum.Interval | None:
    """The shift with this look's confidence, as wide as samples that follow each other need."""
    reach = tails.distance(look.chance / 2) * math.sqrt(max(found.persistence.factor, 1.0))
    confidence = 1 - 2 * tails.normal_upper(reach)
    try:
        return classify.shift(sides, dataclasses.replace(strictness, confidence=confidence))
    except ranksum.AllTiedError:
        return None


def _what_it_takes(rule: Rule, sides: Sides, look: looks.Look) -> str:
    have, enough = min(sides.counts), level(rule, look)
    numbers = (count for count in range(have + 1, MOST_TOLD) if fewest(count, count) <= enough)
    needed = next(numbers, MOST_TOLD)
    return f"{have} so far, about {needed} needed to see sides that are wholly apart ({look})"


MOST_TOLD = 500
"""Samples up to which it is said how many it takes."""
