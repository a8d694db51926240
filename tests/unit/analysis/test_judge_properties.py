"""What holds for every judgement, whatever was measured."""

import dataclasses
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.analysis import (
    classify,
    document,
    judge,
    samples,
    score,
    verdict,
)

RULE = classify.Rule("metric")
ANY = st.floats(allow_nan=True, allow_infinity=True)
SERIES = st.lists(ANY, max_size=12)
CALM = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=15)
BENCHES = st.sampled_from([judge.Bench(), judge.KAYENTA])
LABELS = st.sampled_from(list(verdict.Label))
GROUPS = ("a", "b", "c")


def strict(tolerance: float, bench: judge.Bench) -> judge.Bench:
    strictness = dataclasses.replace(bench.strictness, tolerance=tolerance)
    return dataclasses.replace(bench, strictness=strictness)


@given(SERIES, SERIES, BENCHES)
def test_every_sample_there_is_gets_a_judgement(
    control: list[float], experiment: list[float], bench: judge.Bench
) -> None:
    case = judge.Case((RULE,), {"metric": control}, {"metric": experiment}, bench=bench)

    then = judge.judge(case)
    told = document.told(then)

    assert 0 <= then.score <= 100
    assert then.reason
    assert all(finding.reason for finding in then.findings)
    numbers = [told["metrics"][0][name] for name in ("ratio", "low", "high", "estimate")]
    assert all(number is None or math.isfinite(number) for number in numbers)


EXTREME = st.lists(
    st.sampled_from(
        [0.0, -0.0, 1.0, 2.0, 5e-324, 1e-300, 1e16, 1e154, 1e300, 1.7e308, -1.7e308, math.inf]
    ),
    max_size=14,
)
RULES = st.builds(
    classify.Rule,
    st.just("metric"),
    direction=st.sampled_from(list(classify.Direction)),
    missing=st.sampled_from(list(samples.Missing)),
    outliers=st.sampled_from([samples.KEEP_ALL, samples.Outliers(remove=True)]),
    effect=st.sampled_from(
        [classify.EffectLimits(), classify.EffectLimits(classify.Measure.COMMON_LANGUAGE, 0.5, 0.5)]
    ),
    critical=st.booleans(),
)


@given(EXTREME, EXTREME, RULES, BENCHES)
@settings(max_examples=300)
def test_no_number_is_too_large_or_too_small(
    control: list[float], experiment: list[float], rule: classify.Rule, bench: judge.Bench
) -> None:
    then = judge.find(rule, control, experiment, bench)

    assert then.reason
    assert then.label in set(verdict.Label)


@given(
    st.lists(st.tuples(LABELS, st.sampled_from(GROUPS), st.booleans(), st.booleans()), max_size=9),
    st.dictionaries(st.sampled_from(GROUPS), st.floats(0, 33)),
    st.sampled_from(list(score.Sharing)),
)
def test_a_score_is_a_percentage(
    given_labels: list[tuple[verdict.Label, str, bool, bool]],
    weights: dict[str, float],
    sharing: score.Sharing,
) -> None:
    findings = [
        verdict.Finding("m", label, "why", groups=(group,), critical=critical, muted=muted)
        for label, group, critical, muted in given_labels
    ]

    then = score.score(findings, weights, sharing)

    assert 0 <= then.value <= 100
    assert all(0 <= group.score <= 100 for group in then.groups)


@given(st.lists(LABELS, min_size=1, max_size=9))
def test_our_judge_gives_every_group_a_share_of_the_whole(labels: list[verdict.Label]) -> None:
    findings = [
        verdict.Finding(f"m{number}", label, "why", groups=(GROUPS[number % 3],))
        for number, label in enumerate(labels)
    ]

    then = score.score(findings, {"a": 20.0}, score.Sharing.AMONG_PRESENT)

    assert sum(group.weight for group in then.groups) == pytest.approx(100)


@given(CALM, BENCHES, st.randoms(use_true_random=False))
def test_samples_in_another_order_pass(
    values: list[float], bench: judge.Bench, chance: random.Random
) -> None:
    shuffled = chance.sample(values, len(values))

    # Of fewer than five samples ours says that they are not enough.
    calm = (verdict.Label.PASS, verdict.Label.NO_DATA)
    assert judge.find(RULE, values, shuffled, bench).label in calm
    assert judge.find(RULE, shuffled, values, bench).label in calm


@given(CALM, CALM, BENCHES)
def test_swapping_sides_that_do_not_differ_passes_as_well(
    control: list[float], experiment: list[float], bench: judge.Bench
) -> None:
    if len(set(control)) < 2 or len(set(experiment)) < 2:
        return
    there = judge.find(RULE, control, experiment, bench)
    back = judge.find(RULE, experiment, control, bench)

    assert (there.label is verdict.Label.HIGH) <= (back.label is not verdict.Label.HIGH)


@given(CALM, CALM, st.integers(-60, 60))
def test_our_label_does_not_depend_on_the_unit(
    control: list[float], experiment: list[float], power: int
) -> None:
    factor = 2.0**power

    plain = judge.find(RULE, control, experiment, judge.Bench())
    scaled = judge.find(
        RULE,
        [value * factor for value in control],
        [value * factor for value in experiment],
        judge.Bench(),
    )

    assert scaled.label is plain.label


@given(CALM, CALM, BENCHES, st.floats(0, 3), st.floats(0, 3))
@settings(max_examples=200)
def test_more_tolerance_never_turns_a_pass_into_a_failure(
    control: list[float],
    experiment: list[float],
    bench: judge.Bench,
    one: float,
    other: float,
) -> None:
    less, more = sorted((one, other))

    before = judge.find(RULE, control, experiment, strict(less, bench))
    after = judge.find(RULE, control, experiment, strict(more, bench))

    if before.label is verdict.Label.PASS:
        assert after.label is verdict.Label.PASS


def test_equal_sides_rarely_fail() -> None:
    chance = random.Random(20)
    rounds = 300

    failed = sum(
        judge.find(
            RULE,
            [chance.gauss(100, 15) for _ in range(60)],
            [chance.gauss(100, 15) for _ in range(60)],
            judge.Bench(),
        ).label
        is not verdict.Label.PASS
        for _ in range(rounds)
    )

    assert failed <= rounds * 0.04
