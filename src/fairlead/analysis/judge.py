"""Runs the whole judgement: every metric's label, the score, the verdict, and the reasons."""

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence

from fairlead.domain.analysis import classify, samples, second_look, verdict
from fairlead.domain.analysis import score as scoring

# From here on Kayenta calls a comparison well founded; below it, it warns.
WELL_FOUNDED = 50


class Name(enum.Enum):
    """Who judges."""

    FAIRLEAD = "fairlead"
    KAYENTA = "kayenta"


OWN_STRICTNESS = classify.Strictness(as_kayenta=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Bench:
    """The judge: its name, how sure it must be, and what it looks at twice."""

    name: Name = Name.FAIRLEAD
    strictness: classify.Strictness = OWN_STRICTNESS
    attention: second_look.Attention = second_look.EVERYTHING


KAYENTA = Bench(Name.KAYENTA, classify.Strictness(), second_look.NOTHING)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """What is to be judged: the rules, and the samples of both sides by metric."""

    rules: tuple[classify.Rule, ...]
    control: Mapping[str, Sequence[float]]
    experiment: Mapping[str, Sequence[float]]
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    thresholds: verdict.Thresholds = verdict.USUAL
    bench: Bench = Bench()


def judge(case: Case) -> verdict.Judgement:
    findings = tuple(
        find(rule, case.control.get(rule.name, ()), case.experiment.get(rule.name, ()), case.bench)
        for rule in case.rules
    )
    as_stated = case.bench.name is Name.KAYENTA
    sharing = scoring.Sharing.AS_STATED if as_stated else scoring.Sharing.AMONG_PRESENT
    score = scoring.score(findings, case.weights, sharing)
    decided, reason = verdict.decide(score, case.thresholds, findings)
    return verdict.Judgement(
        verdict=decided,
        score=score.value,
        reason=reason,
        groups=score.groups,
        findings=findings,
        warnings=tuple(_warnings(case, score)),
    )


def find(
    rule: classify.Rule, control: Sequence[float], experiment: Sequence[float], bench: Bench
) -> verdict.Finding:
    """One metric's finding, by this judge."""
    if bench.name is Name.KAYENTA:
        return classify.classify(
            rule, classify.prepare(rule, control, experiment), bench.strictness
        )
    # An infinite sample is the fault of a query (a division by zero), not a measurement.
    infinite = sum(map(math.isinf, control)) + sum(map(math.isinf, experiment))
    if infinite:
        control = [value for value in control if not math.isinf(value)]
        experiment = [value for value in experiment if not math.isinf(value)]
    sides = classify.prepare(rule, control, experiment)
    told = classify.classify(rule, sides, bench.strictness)
    if told.label is verdict.Label.ERROR:
        # What cannot be compared is not known, and must not vanish from the score.
        counted = dataclasses.replace(rule, missing=samples.Missing.REMOVE)
        lost = classify.without_data(counted, classify.Sides([], []))
        told = dataclasses.replace(lost, reason=f"{told.reason}; treated as no data")
    told = second_look.look_again(told, rule, sides, bench.strictness, bench.attention)
    if infinite:
        told = dataclasses.replace(told, reason=f"{told.reason}; left out {infinite} infinite")
    return told


def _warnings(case: Case, score: verdict.Score) -> list[str]:
    warnings = [
        f"group weight without a metric that is heard: {name}"
        for name in case.weights
        if name not in {group.name for group in score.groups}
    ]
    total = sum(group.weight for group in score.groups)
    if score.groups and total < scoring.FULL and not math.isclose(total, scoring.FULL):
        warnings.append(f"group weights allow no score above: {total:g}")
    idle = [group.name for group in score.groups if group.weight <= 0]
    if idle:
        warnings.append(f"groups that weigh nothing: {', '.join(idle)}")
    short = [
        rule.name for rule in case.rules if 0 < len(case.control.get(rule.name, ())) < WELL_FOUNDED
    ]
    if short:
        warnings.append(
            f"metrics with fewer than {WELL_FOUNDED} samples of control: {len(short)}"
            f" of {len(case.rules)}"
        )
    return warnings
