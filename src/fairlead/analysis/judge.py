"""Runs the whole judgement: every metric's label, the score, the verdict, and the reasons."""

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence

from fairlead import errors
from fairlead.analysis import classify, looks, own_judge, rate_findings, verdict
from fairlead.analysis import score as scoring
from fairlead.analysis.samples import Counted, Histogram

# From here on Kayenta calls a comparison well founded; below it, it warns.
WELL_FOUNDED = 50


class Name(enum.Enum):
    """Who judges."""

    FAIRLEAD = "fairlead"
    KAYENTA = "kayenta"


OWN_STRICTNESS = classify.Strictness(tolerance=0.0, as_kayenta=False)
Samples = Sequence[float] | Counted | Histogram


@dataclasses.dataclass(frozen=True, slots=True)
class Bench:
    """The judge: its name, how sure it must be, and how often it looks."""

    name: Name = Name.FAIRLEAD
    strictness: classify.Strictness = OWN_STRICTNESS
    plan: looks.Plan = looks.ONCE
    spread: float = 3.0


KAYENTA = Bench(Name.KAYENTA, classify.Strictness())


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """What is to be judged: the rules, and the samples of both sides by metric."""

    rules: tuple[classify.Rule, ...]
    control: Mapping[str, Samples]
    experiment: Mapping[str, Samples]
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    thresholds: verdict.Thresholds = verdict.USUAL
    bench: Bench = Bench()


def judge(case: Case) -> verdict.Judgement:
    return conclude(case, find_all(case))


def find_all(case: Case) -> list[verdict.Finding]:
    """Each metric of the case; all that can fail the release share its chance of a false alarm."""
    heard = sum(not each.muted for each in case.rules)
    plan = dataclasses.replace(case.bench.plan, parts=case.bench.plan.parts * max(1, heard))
    bench = dataclasses.replace(case.bench, plan=plan)
    return [
        find(rule, case.control.get(rule.name, ()), case.experiment.get(rule.name, ()), bench)
        for rule in case.rules
    ]


def conclude(case: Case, findings: Sequence[verdict.Finding]) -> verdict.Judgement:
    """The judgement on metrics that have their labels."""
    as_stated = case.bench.name is Name.KAYENTA
    sharing = scoring.Sharing.AS_STATED if as_stated else scoring.Sharing.AMONG_PRESENT
    score = scoring.score(findings, case.weights, sharing)
    decided, reason = verdict.decide(score, case.thresholds, findings)
    return verdict.Judgement(
        verdict=decided,
        score=score.value,
        reason=reason,
        groups=score.groups,
        findings=tuple(findings),
        warnings=tuple(_warnings(case, score)),
    )


def find(
    rule: classify.Rule, control: Samples, experiment: Samples, bench: Bench
) -> verdict.Finding:
    """One metric's finding, by this judge."""
    manner = own_judge.Manner(bench.strictness, bench.plan, bench.spread)
    if bench.name is Name.KAYENTA:
        control, experiment = _as_rates(control), _as_rates(experiment)
    match control, experiment:
        case Counted(), Counted():
            return rate_findings.find_in_counts(rule, control, experiment, manner)
        case Histogram(), Histogram():
            return rate_findings.find_in_histograms(rule, control, experiment, manner)
        case (Counted() | Histogram(), _) | (_, Counted() | Histogram()):
            return _of_two_kinds(rule, control, experiment)
        case _:
            pass
    if bench.name is Name.KAYENTA:
        sides = classify.prepare(rule, control, experiment)
        return classify.classify(rule, sides, bench.strictness)
    return own_judge.find_in_series(rule, control, experiment, manner)


def _as_rates(side: Samples) -> Samples:
    """What Kayenta's judge knows of counts: the rate of each moment."""
    return side.rates if isinstance(side, Counted) else side


def _of_two_kinds(rule: classify.Rule, control: Samples, experiment: Samples) -> verdict.Finding:
    """A side that has nothing has no kind; two different kinds cannot be compared."""
    if len(control) and len(experiment):
        raise errors.Rejected(
            f"sides of metric {rule.name} are of two kinds",
            hint="give both as samples, as counts with requests, or as histograms",
        )
    sides = classify.Sides([0.0] * bool(len(control)), [0.0] * bool(len(experiment)))
    return classify.without_data(rule, sides)


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
    # Ours says by itself where there is too little.
    if short and case.bench.name is Name.KAYENTA:
        warnings.append(
            f"metrics with fewer than {WELL_FOUNDED} samples of control: {len(short)}"
            f" of {len(case.rules)}"
        )
    return warnings
