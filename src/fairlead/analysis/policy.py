"""What an answer means: too early, no data, too few samples, one-sided, or good or bad.

Everything is decided from counts and summaries and nothing from series, so that a verdict can be
decided again from what an event keeps.

    answer ──────────────────────────► of_answer ──────► Ruling
    series ──► summarize ──► Comparison ──► of_comparison ──► Ruling
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairlead.analysis import (
    classify,
    conditions,
    document,
    histogram_test,
    judge,
    looks,
    requests,
    samples,
    statistics,
    verdict,
)
from fairlead.analysis.conditions import Phase
from fairlead.analysis.requests import Requests
from fairlead.analysis.samples import Counted, Histogram, Measured, Series

LEAST_SAMPLES = 5
"""Moments that the judge waits for: of fewer, chance says more than the version does."""

MOST_REASON = 300
"""Letters of one metric's reason in a summary."""

PHASES = {
    verdict.Verdict.PASS: Phase.SUCCESSFUL,
    verdict.Verdict.MARGINAL: Phase.INCONCLUSIVE,
    verdict.Verdict.FAIL: Phase.FAILED,
    verdict.Verdict.INCONCLUSIVE: Phase.INCONCLUSIVE,
    verdict.Verdict.WAIT: None,
}


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there was to compare."""

    moments: int
    """Samples that each side could have had, and how many are needed."""

    needed: int
    control: int
    """Samples with a number, over all metrics of the side."""

    experiment: int


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric of a comparison: its label, and the numbers behind it."""

    name: str
    label: verdict.Label
    reason: str = ""
    control: float | None = None
    """The mean of the side; None where it has no samples."""

    experiment: float | None = None
    ratio: float | None = None
    critical: bool = False
    """Whether this label alone decides."""

    no_data: verdict.NoData | None = None
    """The policy that holds, where there is no data to label."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides in short; no metrics where there was too little to look at."""

    counts: Counts
    metrics: tuple[MetricSummary, ...] = ()


@dataclass(frozen=True, slots=True)
class Ruling:
    """How an answer counts, why, and by which numbers; no phase: there is nothing to count yet."""

    phase: Phase | None
    reason: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a value is held against."""

    criteria: conditions.Criteria
    no_data: verdict.NoData
    metric: conditions.MetricLabel = conditions.UNNAMED
    min_requests: int | None = None
    """Of how many requests the value must be; None: as many as its limit needs."""


def of_answer(answer: conditions.Answer, rule: Criterion, *, window_over: bool = True) -> Ruling:
    """Silence before the window is over is no news, whatever the policy."""
    if isinstance(answer, conditions.Silent) and not window_over:
        return _nothing_yet(answer.reason)
    if isinstance(answer, conditions.Answered) and answer.requests is not None:
        return _of_requests(answer, answer.requests, rule)
    return _measured(answer, rule)


def _of_requests(answer: conditions.Answered, counted: Requests, rule: Criterion) -> Ruling:
    low = rule.criteria.low if isinstance(rule.criteria, conditions.Bounds) else None
    why = requests.undecided(counted, low, rule.min_requests)
    if why is not None:
        return Ruling(None, f"not enough requests yet: {why}", _finite(answer.value), low)
    ruling = _measured(answer, rule)
    if low is None or counted.failed is None or ruling.limit != low:
        return replace(ruling, reason=f"{ruling.reason}; of {counted.total} requests")
    # Counts that were estimated may lie on the other side of the limit than the rate does.
    if (counted.success_rate < low) is (ruling.phase is Phase.FAILED):
        return replace(ruling, reason=requests.told(counted, low))
    return replace(ruling, reason=f"{ruling.reason}; of {counted.total} requests")


def _measured(answer: conditions.Answer, rule: Criterion) -> Ruling:
    found = conditions.measure(answer, rule.criteria, rule.no_data, rule.metric)
    if found is None:
        return _nothing_yet(answer.reason if isinstance(answer, conditions.Silent) else "")
    return Ruling(found.phase, found.reason, _finite(found.value), _finite(found.limit))


def summarize(
    series: Series, config: Mapping[str, Any], plan: looks.Plan | None = None
) -> Comparison:
    """The numbers of both sides by which the judge's configuration decides.

    `plan` holds where the configuration has none of its own.
    """
    counts = _count(series)
    if counts.moments < counts.needed:
        return Comparison(counts)
    case = document.read(
        {"config": config, "control": series.control, "experiment": series.experiment}
    )
    if plan is not None and case.bench.plan is looks.ONCE:
        case = replace(case, bench=replace(case.bench, plan=plan))
    pairs = zip(case.rules, judge.find_all(case), strict=True)
    return Comparison(counts, tuple(_summary(case, rule, found) for rule, found in pairs))


def of_comparison(found: Comparison, config: Mapping[str, Any], no_data: verdict.NoData) -> Ruling:
    """The judge's verdict by the labels of its metrics."""
    counts = found.counts
    if counts.moments < counts.needed:
        return _nothing_yet(f"{counts.moments} of {counts.needed} samples")
    case = document.read({"config": config, "control": {}, "experiment": {}})
    one_sided = not (counts.control and counts.experiment)
    if one_sided and all(rule.no_data is None for rule in case.rules):
        silence = conditions.Silent("one side has no samples")
        return of_answer(silence, Criterion(conditions.Conditions(), no_data))
    labels = {metric.name: metric for metric in found.metrics}
    findings = [_finding(rule, labels[rule.name]) for rule in case.rules if rule.name in labels]
    judged = judge.conclude(case, findings)
    limit = case.thresholds.passing
    return Ruling(PHASES[judged.verdict], judged.reason, judged.score, limit)


def _nothing_yet(why: str) -> Ruling:
    return Ruling(None, f"no data yet: {why}" if why else "no data yet")


def _count(series: Series) -> Counts:
    sides = (*series.control.values(), *series.experiment.values())
    return Counts(
        moments=max((len(side) for side in sides), default=0),
        needed=LEAST_SAMPLES,
        control=_numbers(series.control),
        experiment=_numbers(series.experiment),
    )


def _numbers(side: Mapping[str, Measured]) -> int:
    return sum(map(_present, side.values()))


def _present(side: Measured) -> int:
    """Moments that say something."""
    match side:
        case Counted():
            return sum(map(bool, side.requests))
        case Histogram():
            return sum(any(moment) for moment in side.counts)
        case _:
            return sum(value is not None for value in side)


def _summary(case: judge.Case, rule: classify.Rule, found: verdict.Finding) -> MetricSummary:
    return MetricSummary(
        name=rule.name,
        label=found.label,
        reason=found.reason[:MOST_REASON],
        control=_mean(rule, case.control.get(rule.name, ())),
        experiment=_mean(rule, case.experiment.get(rule.name, ())),
        ratio=_finite(found.ratio),
        critical=found.critical,
        no_data=found.no_data,
    )


def _mean(rule: classify.Rule, side: judge.Samples) -> float | None:
    match side:
        case Counted():
            total = sum(side.requests)
            rate = sum(side.events) / total if total else math.nan
            return _finite(100 * (1 - rate) if side.of_failures else rate)
        case Histogram():
            return _finite(histogram_test.mean(side))
        case _:
            kept = samples.clean(side, rule.missing, rule.outliers)
            return _finite(statistics.mean(kept))


def _finding(rule: classify.Rule, kept: MetricSummary) -> verdict.Finding:
    return verdict.Finding(
        name=rule.name,
        label=kept.label,
        reason=kept.reason,
        groups=rule.groups,
        critical=kept.critical,
        muted=rule.muted,
        ratio=kept.ratio,
        no_data=kept.no_data,
    )


def _finite(value: float | None) -> float | None:
    """JSON has no word for an infinite number, and a page cannot draw one."""
    return value if value is not None and math.isfinite(value) else None
