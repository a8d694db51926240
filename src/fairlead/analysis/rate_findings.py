"""What our judge says of events among requests, and of requests past the edges of a histogram."""

import dataclasses
import math

from fairlead.analysis import (
    classify,
    count_test,
    histogram_test,
    looks,
    own_judge,
    ranksum,
    reasons,
    statistics,
    verdict,
)
from fairlead.analysis.classify import Rule
from fairlead.analysis.count_test import Split
from fairlead.analysis.own_judge import Manner
from fairlead.analysis.samples import Counted, Histogram

PERCENT = 100.0


def find_in_counts(
    rule: Rule, control: Counted, experiment: Counted, manner: Manner
) -> verdict.Finding:
    found = count_test.test(control, experiment)
    silent = _without_requests(rule, found)
    if silent is not None:
        return silent
    look = looks.look(manner.plan, len(experiment), manner.chance, looks.COUNTS)
    level = own_judge.level(rule, look)
    higher = found.is_higher is not experiment.of_failures
    label = verdict.Label.HIGH if higher else verdict.Label.LOW
    effect = _effect(rule, control, experiment, found)
    is_sure = found.chance <= level
    told = _split(found, level, look, failed=experiment.of_failures)
    if is_sure and classify.watches(rule, label) and not classify.is_allowed(rule, label, effect):
        reason = f"{told}; equal rates split so {reasons.odds(found.chance)}"
        critical = classify.is_critical(rule, label, effect)
    else:
        needed = count_test.needed(found, rule.effect.detectable, level)
        if not is_sure and found.requests < needed:
            return own_judge.not_enough(rule, "requests", _short_of(rule, found, needed))
        label, reason, critical = verdict.Label.PASS, told, False
        if is_sure:
            reason = f"{told}; allowed, or not the direction that counts"
    made = classify.finding(rule, label, reason, critical=critical, ratio=_ratio(found, experiment))
    return dataclasses.replace(made, interval=_difference(found, level, experiment))


def find_in_histograms(
    rule: Rule, control: Histogram, experiment: Histogram, manner: Manner
) -> verdict.Finding:
    edges = histogram_test.test(control, experiment)
    before, after = histogram_test.mean(control), histogram_test.mean(experiment)
    if before is None or after is None:
        sides = classify.Sides([before] if before else [], [after] if after else [])
        return classify.without_data(rule, sides)
    if not edges:
        return classify.finding(
            rule, verdict.Label.PASS, "all requests lie between the same two edges", ratio=1.0
        )
    look = looks.look(manner.plan, len(experiment), manner.chance, looks.COUNTS)
    level = own_judge.level(rule, look) / len(edges)
    effect = after / before if before > 0 else math.nan
    for edge in sorted(edges, key=lambda each: each.found.chance):
        label = verdict.Label.HIGH if edge.found.is_higher else verdict.Label.LOW
        counts = classify.watches(rule, label) and not classify.is_allowed(rule, label, effect)
        if edge.found.chance <= level and counts:
            reason = (
                f"{_beyond(edge, level, look)}; chance does so {reasons.odds(edge.found.chance)}"
            )
            critical = classify.is_critical(rule, label, effect)
            return classify.finding(rule, label, reason, critical=critical, ratio=effect)
    middle = edges[len(edges) // 2]
    needed = count_test.needed(middle.found, rule.effect.detectable, level)
    if middle.found.chance > level and middle.found.requests < needed:
        return own_judge.not_enough(rule, "requests", _short_of(rule, middle.found, needed))
    return classify.finding(rule, verdict.Label.PASS, _beyond(middle, level, look), ratio=effect)


def _without_requests(rule: Rule, found: Split) -> verdict.Finding | None:
    if found.requests and found.other_requests:
        return None
    sides = classify.Sides([0.0] * bool(found.other_requests), [0.0] * bool(found.requests))
    return classify.without_data(rule, sides)


def _effect(rule: Rule, control: Counted, experiment: Counted, found: Split) -> float:
    """As the rule measures it: the ratio of the rates, or how often a moment exceeds another."""
    if rule.effect.measure is classify.Measure.COMMON_LANGUAGE:
        sides = ([rate for rate in side.rates if rate == rate] for side in (control, experiment))  # noqa: PLR0124 - NaN only
        return statistics.common_language(*sides)
    return _ratio(found, experiment)


def _ratio(found: Split, side: Counted) -> float:
    rate, other = found.rate, found.other_rate
    if side.of_failures:
        rate, other = 1 - rate, 1 - other
    return rate / other if rate and other else math.nan


def _difference(found: Split, level: float, side: Counted) -> ranksum.Interval:
    """The rate minus control's, in the metric's unit."""
    low, high = (ratio * found.other_rate for ratio in count_test.ratio_interval(found, level))
    gaps = [min(rate, 1.0) - found.other_rate for rate in (low, high)]
    estimate = found.rate - found.other_rate
    gaps = [min(gaps[0], estimate), max(gaps[1], estimate)]
    if side.of_failures:
        return ranksum.Interval(-PERCENT * gaps[1], -PERCENT * gaps[0], -PERCENT * estimate)
    return ranksum.Interval(gaps[0], gaps[1], estimate)


def _split(found: Split, level: float, look: looks.Look, *, failed: bool) -> str:
    word = "failed" if failed else "counted"
    told = f"{found.events:,} of {found.requests:,} requests {word}"
    told += f" against {found.others:,} of {found.other_requests:,} of control"
    return f"{told}{_times(found, level, look)}"


def _beyond(edge: histogram_test.Beyond, level: float, look: looks.Look) -> str:
    found = edge.found
    told = f"{reasons.percent(round(found.rate, 4))} of {found.requests:,} requests lie above"
    told += f" {reasons.figure(edge.edge)}, against {reasons.percent(round(found.other_rate, 4))}"
    return f"{told} of {found.other_requests:,} of control{_times(found, level, look)}"


def _times(found: Split, level: float, look: looks.Look) -> str:
    low, high = count_test.ratio_interval(found, level)
    sure = reasons.percent(round(1 - look.chance, 6))
    told = f": {reasons.figure(low)} to {reasons.figure(high)} times ({sure} confidence, {look})"
    if found.restless > 1:
        told += f"; they vary {reasons.figure(found.restless)} times as much as chance explains"
    return told


def _short_of(rule: Rule, found: Split, needed: int) -> str:
    times = rule.effect.detectable
    change = "a doubling" if times == 2 else f"{times:g} times as many"  # noqa: PLR2004 - a word
    return (
        f"{found.requests:,} so far, about {_rounded(needed):,} needed to see {change}"
        f" ({found.events:,} against {found.others:,} of {found.other_requests:,} of control)"
    )


def _rounded(count: int) -> int:
    """To two digits, upwards: it is an estimate."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return math.ceil(count / step) * step
