"""Whole judgements: score, verdict, policies for no data, warnings."""

import dataclasses

import pytest

from fairlead import errors
from fairlead.analysis import classify, judge, samples, score, verdict

GOOD = [10.0, 11.0, 12.0, 10.5, 11.5, 12.5]
BAD = [value + 100 for value in GOOD]


def case(
    *metrics: tuple[classify.Rule, list[float]],
    bench: judge.Bench = judge.KAYENTA,
    weights: dict[str, float] | None = None,
    thresholds: verdict.Thresholds = verdict.USUAL,
) -> judge.Case:
    return judge.Case(
        rules=tuple(rule for rule, _ in metrics),
        control={rule.name: GOOD for rule, _ in metrics},
        experiment={rule.name: values for rule, values in metrics},
        weights=weights or {},
        thresholds=thresholds,
        bench=bench,
    )


def rule(name: str, group: str = "g", **given: bool) -> classify.Rule:
    return classify.Rule(name, groups=(group,), **given)  # type: ignore[arg-type] # flags only


def waiting(name: str, policy: str) -> classify.Rule:
    return classify.Rule(name, groups=("g",), no_data=verdict.NoData(policy))


@pytest.mark.parametrize(
    ("thresholds", "expected", "told"),
    [
        ((10, 50), "Pass", "score 50 reaches the pass limit of 50"),
        (
            (50, 60),
            "Marginal",
            "score 50 reaches the marginal limit of 50 but not the pass limit of 60: b is High",
        ),
        ((51, 60), "Fail", "score 50 is below the marginal limit of 51: b is High"),
    ],
)
def test_limits_are_reached_at_their_very_number(
    thresholds: tuple[float, float], expected: str, told: str
) -> None:
    given = case((rule("a"), GOOD), (rule("b"), BAD), thresholds=verdict.Thresholds(*thresholds))

    then = judge.judge(given)

    assert (then.verdict.value, then.score, then.reason) == (expected, 50, told)


def test_a_critical_failure_is_the_reason() -> None:
    then = judge.judge(case((rule("a"), GOOD), (rule("b", critical=True), BAD)))

    assert (then.verdict, then.score) == (verdict.Verdict.FAIL, 0)
    assert then.reason.startswith("critical metric b is High: mean 111.2 against 11.25")


def test_a_muted_metric_is_told_but_not_counted() -> None:
    then = judge.judge(case((rule("a"), GOOD), (rule("b", critical=True, muted=True), BAD)))

    assert (then.verdict, then.score) == (verdict.Verdict.PASS, 100)
    assert [finding.label.value for finding in then.findings] == ["Pass", "High"]


def test_nothing_to_hear_is_no_pass() -> None:
    then = judge.judge(case((rule("a", muted=True), GOOD)))

    assert (then.verdict, then.reason) == (verdict.Verdict.FAIL, "every metric is muted")


def test_half_of_the_metrics_without_data_is_no_basis() -> None:
    then = judge.judge(case((rule("a"), GOOD), (rule("b"), [])))

    assert (then.verdict, then.score) == (verdict.Verdict.FAIL, 0)
    assert then.reason == "1 of 2 metrics have no data, which is half or more"


def test_two_samples_pass_at_kayenta_and_are_not_enough_for_us() -> None:
    metric = rule("a")
    given = judge.Case((metric,), {"a": [1.0]}, {"a": [9.0]}, bench=judge.KAYENTA)
    ours = judge.Case((metric,), {"a": [1.0]}, {"a": [9.0]})

    then = judge.judge(ours)

    assert judge.judge(given).verdict is verdict.Verdict.PASS
    assert then.verdict is verdict.Verdict.WAIT
    assert then.reason.startswith("a: not enough samples yet: 1 so far, about 5 needed")


def test_kayenta_judges_counts_by_their_rates() -> None:
    """A source may know more than its judge: the verdict is that on the same samples."""
    control = samples.Counted((1, 0, 2, 1) * 5, (100,) * 20)
    experiment = samples.Counted((9, 8, 7, 9) * 5, (100,) * 20)
    rule = classify.Rule("errors")

    counted = judge.find(rule, control, experiment, judge.KAYENTA)

    assert counted == judge.find(rule, control.rates, experiment.rates, judge.KAYENTA)
    assert counted.label is verdict.Label.HIGH


def test_ten_metrics_alike_share_one_chance_of_a_false_alarm() -> None:
    alone = judge.Case((rule("a"),), {"a": GOOD}, {"a": BAD})
    ten = dataclasses.replace(alone, rules=tuple(rule(letter) for letter in "abcdefghij"))

    # 6 samples a side part once in 924, which one metric may say and ten may not yet.
    assert judge.find_all(alone)[0].label is verdict.Label.HIGH
    assert judge.find_all(ten)[0].label is verdict.Label.NO_DATA


def test_a_side_without_samples_has_no_kind() -> None:
    counted = samples.Counted((1,), (9,))

    assert judge.find(rule("a"), counted, [], judge.Bench()).label is verdict.Label.NO_DATA
    with pytest.raises(errors.Rejected, match="sides of metric a are of two kinds"):
        judge.find(rule("a"), counted, [1.0], judge.Bench())


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("wait", "Wait"), ("inconclusive", "Inconclusive"), ("pass", "Pass"), ("fail", "Fail")],
)
def test_no_data_is_a_policy_of_the_metric(policy: str, expected: str) -> None:
    then = judge.judge(case((rule("a"), GOOD), (waiting("b", policy), []), bench=judge.Bench()))

    assert then.verdict.value == expected


def test_waiting_goes_before_leaving_open_and_names_the_metric() -> None:
    then = judge.judge(case((waiting("a", "inconclusive"), []), (waiting("b", "wait"), [])))

    assert then.verdict is verdict.Verdict.WAIT
    assert then.reason == "no data yet for b, whose policy is wait"


def test_what_is_known_to_fail_does_not_wait() -> None:
    then = judge.judge(case((rule("a"), BAD), (waiting("b", "wait"), [])))

    assert then.verdict is verdict.Verdict.FAIL


def test_a_metric_in_two_groups_counts_in_both() -> None:
    both = classify.Rule("a", groups=("g", "h"))

    then = judge.judge(case((both, BAD), (rule("b"), GOOD)))

    assert {group.name: group.score for group in then.groups} == {"g": 50, "h": 0}


def test_unweighted_groups_share_what_is_left() -> None:
    then = judge.judge(
        case(
            (rule("a"), GOOD),
            (rule("b", "h"), BAD),
            (rule("c", "i"), GOOD),
            weights={"g": 50.0},
        )
    )

    assert {group.name: group.weight for group in then.groups} == {"g": 50, "h": 25, "i": 25}
    assert then.score == 75


def test_weights_below_a_hundred_cost_at_kayenta_and_are_shared_with_us() -> None:
    metrics = [(rule("a"), GOOD), (rule("b", "h"), GOOD)]
    weights = {"g": 30.0, "h": 30.0}

    theirs = judge.judge(case(*metrics, weights=weights))
    ours = judge.judge(case(*metrics, bench=judge.Bench(), weights=weights))

    assert (theirs.score, ours.score) == (60, 100)
    assert "group weights allow no score above: 60" in theirs.warnings
    assert [group.weight for group in ours.groups] == [50, 50]


def test_a_weight_of_a_muted_group_costs_at_kayenta_and_is_warned_of() -> None:
    given = case(
        (rule("a"), GOOD),
        (rule("b", "h", muted=True), GOOD),
        weights={"g": 50.0, "h": 50.0},
    )

    then = judge.judge(given)

    assert then.score == 50
    assert "group weight without a metric that is heard: h" in then.warnings


def test_a_group_that_weighs_nothing_is_warned_of() -> None:
    given = case((rule("a"), GOOD), (rule("b", "h"), BAD), weights={"g": 100.0})

    assert "groups that weigh nothing: h" in judge.judge(given).warnings


def test_all_weights_zero_weigh_alike_with_us() -> None:
    findings = [
        verdict.Finding("a", verdict.Label.PASS, "why", groups=("g",)),
        verdict.Finding("b", verdict.Label.HIGH, "why", groups=("h",)),
    ]

    then = score.score(findings, {"g": 0.0, "h": 0.0}, score.Sharing.AMONG_PRESENT)

    assert then.value == 50


def test_few_samples_of_control_are_warned_of() -> None:
    then = judge.judge(case((rule("a"), GOOD)))

    assert then.warnings == ("metrics with fewer than 50 samples of control: 1 of 1",)


def test_a_score_is_rounded_half_up() -> None:
    findings = [
        verdict.Finding(str(number), label, "why", groups=("g",))
        for number, label in enumerate([verdict.Label.PASS] * 2 + [verdict.Label.HIGH])
    ]

    assert score.score(findings, {}).value == 66.67
    assert score._rounded(0.125) == 0.13
    assert score._rounded(66.665) == 66.67


def test_many_names_are_cut_short() -> None:
    metrics = [(rule(f"m{number}"), BAD) for number in range(8)]

    then = judge.judge(case(*metrics))

    assert then.reason.endswith("m4 is High and 3 more")
