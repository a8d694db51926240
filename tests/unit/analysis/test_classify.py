"""Labels at the edges of what can be measured, and the reasons given."""

import math

import pytest

from fairlead.analysis import classify, judge, samples, verdict

NAN, INFINITE = math.nan, math.inf
RULE = classify.Rule("metric")
BOTH = pytest.mark.parametrize("bench", [judge.Bench(), judge.KAYENTA], ids=["ours", "kayenta"])


@BOTH
@pytest.mark.parametrize(
    ("control", "experiment", "expected"),
    [
        pytest.param([], [], "Nodata", id="nothing"),
        pytest.param([NAN], [1.0], "Nodata", id="only missing samples"),
        pytest.param([5.0] * 9, [5.0] * 4, "Pass", id="all equal, other length"),
        pytest.param([0.0] * 9, [0.0] * 9, "Pass", id="all zero"),
        pytest.param(
            [1.0, NAN, 2.0, 3.0, 4.0, 5.0],
            [3.0, 2.0, NAN, 1.0, 5.0, 4.0],
            "Pass",
            id="gaps on both sides",
        ),
        pytest.param([1e300] * 3 + [2e300] * 3, [2e300] * 3 + [1e300] * 3, "Pass", id="huge"),
        pytest.param([1e300] * 5, [1e308] * 5, "High", id="huge and apart"),
        pytest.param([1e-300] * 5, [1e16] * 5, "High", id="further apart than a float is long"),
    ],
)
def test_edges(
    control: list[float], experiment: list[float], expected: str, bench: judge.Bench
) -> None:
    assert judge.find(RULE, control, experiment, bench).label.value == expected


@pytest.mark.parametrize(
    ("control", "experiment", "expected"),
    [
        ([-3.0, -2, -4, -3, -2], [-9.0, -8, -9, -8, -9], "Low"),
        ([-3.0, -2, -4, -3, -2], [9.0, 8, 9, 8, 9], "High"),
        ([-1e307] * 5, [1e307] * 5, "High"),
    ],
)
def test_a_ratio_of_negative_means_does_not_hide_a_shift_from_us(
    control: list[float], experiment: list[float], expected: str
) -> None:
    theirs = judge.find(RULE, control, experiment, judge.KAYENTA)
    ours = judge.find(RULE, control, experiment, judge.Bench())

    assert theirs.label is verdict.Label.PASS
    assert ours.label.value == expected


def test_kayenta_makes_something_of_infinity_without_falling_over() -> None:
    then = judge.find(RULE, [1.0, 2, 3, 4, 5], [INFINITE, 2, 3, 4, INFINITE], judge.KAYENTA)

    assert then.label in set(verdict.Label)


@pytest.mark.parametrize(
    ("policy", "label", "critical"),
    [
        (verdict.NoData.WAIT, verdict.Label.NO_DATA, False),
        (verdict.NoData.PASS, verdict.Label.PASS, False),
        (verdict.NoData.FAIL, verdict.Label.NO_DATA_FAILS, True),
        (verdict.NoData.INCONCLUSIVE, verdict.Label.NO_DATA, False),
    ],
)
def test_no_data_follows_the_policy_of_the_metric(
    policy: verdict.NoData,
    label: verdict.Label,
    critical: bool,  # noqa: FBT001 - a column of the table
) -> None:
    rule = classify.Rule("metric", critical=True, no_data=policy)

    then = judge.find(rule, [1.0, 2.0], [], judge.Bench())

    assert (then.label, then.critical) == (label, critical)
    assert then.reason == f"no data on experiment; its policy is {policy.value}"


def test_a_metric_that_must_have_data_fails_without() -> None:
    rule = classify.Rule("metric", must_have_data=True)

    then = judge.find(rule, [], [], judge.KAYENTA)

    assert then.label is verdict.Label.NO_DATA_FAILS
    assert then.reason == "no data on control and experiment, which it must have"


def test_missing_samples_may_count_as_zero() -> None:
    rule = classify.Rule("metric", missing=samples.Missing.REPLACE)

    then = judge.find(rule, [NAN] * 5, [9.0, 9.1, 9.2, 9.3, 9.4], judge.KAYENTA)

    assert then.label is verdict.Label.HIGH


def test_outliers_may_be_left_out() -> None:
    steady = [10.0 + number / 100 for number in range(60)]
    spiky = [*steady[:59], 1e6]
    rule = classify.Rule("metric", outliers=samples.Outliers(remove=True))

    kept = judge.find(RULE, steady, spiky, judge.KAYENTA)
    cut = judge.find(rule, steady, spiky, judge.KAYENTA)

    assert kept.ratio is not None
    assert cut.ratio is not None
    assert kept.ratio > 1000
    assert cut.ratio == pytest.approx(1, abs=0.01)


def test_the_reason_tells_means_interval_confidence_look_and_odds() -> None:
    control = [100.0, 102, 98, 101, 99, 100, 103, 97, 100, 101]

    then = judge.find(RULE, control, [value + 30 for value in control], judge.Bench())

    assert then.reason == (
        "mean 130.1 against 100.1 of control; a shift of 27 to 33 (98.264% confidence, one look);"
        " chance alone does so once in 1.848e+05"
    )


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            classify.Rule("metric", direction=classify.Direction.DECREASE),
            "shifted, but only a decrease counts",
        ),
        (
            classify.Rule("metric", effect=classify.EffectLimits(allowed_increase=1.5)),
            "shifted, but its meanRatio of 1.3 is within the allowed 1.5",
        ),
    ],
)
def test_a_pass_tells_why_a_shift_did_not_count(rule: classify.Rule, told: str) -> None:
    control = [100.0, 102, 98, 101, 99, 100, 103, 97, 100, 101]

    then = judge.find(rule, control, [value + 30 for value in control], judge.Bench())

    assert then.label is verdict.Label.PASS
    assert told in then.reason


def test_common_language_is_the_other_measure() -> None:
    limits = classify.EffectLimits(
        measure=classify.Measure.COMMON_LANGUAGE,
        allowed_increase=0.99,
        allowed_decrease=0.01,
        critical_increase=0.5,
        critical_decrease=0.5,
    )
    rule = classify.Rule("metric", effect=limits, critical=True)
    control = [float(number) for number in range(30)]

    near = judge.find(rule, control, [value + 15 for value in control], judge.KAYENTA)
    far = judge.find(rule, control, [value + 100 for value in control], judge.KAYENTA)

    assert near.label is verdict.Label.PASS
    assert (far.label, far.critical) == (verdict.Label.HIGH, True)


def test_the_same_input_has_the_same_finding() -> None:
    # Kayenta adds random noise to two constants; we must not.
    first = judge.find(RULE, [1.0] * 5, [10.0] * 5, judge.KAYENTA)

    assert all(judge.find(RULE, [1.0] * 5, [10.0] * 5, judge.KAYENTA) == first for _ in range(5))
    assert first.ratio == 10.0
