"""The reference vectors V1 to V16 (canary §3.5): the kayenta judge says what Kayenta says."""

import math

import pytest

from fairlead.analysis import classify, judge, looks, ranksum, samples, score, statistics, verdict
from tests.unit.analysis import vectors

A, B, C, D = vectors.NORMAL_A, vectors.NORMAL_B, vectors.NORMAL_C, vectors.NORMAL_D
USUAL = classify.Strictness(confidence=0.95, tolerance=0.10)


def rule(direction: str = "either", *, critical: bool = False, **given: object) -> classify.Rule:
    allowed, limits = given.pop("allowed", (1.0, 1.0)), given.pop("limits", (1.0, 1.0))
    assert isinstance(allowed, tuple)
    assert isinstance(limits, tuple)
    replace = given.pop("replace", False)
    assert not given
    return classify.Rule(
        name="metric",
        direction=classify.Direction(direction),
        critical=critical,
        missing=samples.Missing.REPLACE if replace else samples.Missing.REMOVE,
        effect=classify.EffectLimits(
            allowed_decrease=allowed[0],
            allowed_increase=allowed[1],
            critical_decrease=limits[0],
            critical_increase=limits[1],
        ),
    )


def label(
    given: classify.Rule,
    experiment: list[float],
    control: list[float],
    strictness: classify.Strictness = USUAL,
) -> verdict.Finding:
    return classify.classify(given, classify.prepare(given, control, experiment), strictness)


def test_v1_interval_of_separate_sides() -> None:
    found = ranksum.shift_interval([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], 0.95)

    assert found.low == pytest.approx(6.0, abs=1e-6)
    assert found.high == pytest.approx(39.0, abs=1e-6)
    assert found.estimate == pytest.approx(22.5, abs=1e-6)


def test_v2_interval_of_tied_sides_stops_where_r_stops() -> None:
    found = ranksum.shift_interval(vectors.TIED_CONTROL, vectors.TIED_EXPERIMENT, 0.95)

    assert found.low == pytest.approx(-0.500002521696696, abs=1e-6)
    assert found.high == pytest.approx(-3.486287505871302e-5, abs=1e-6)
    assert found.estimate == pytest.approx(-0.4999393907180323, abs=1e-4)


def test_v3_quantile() -> None:
    assert statistics.normal_quantile((1 - 0.98) / 2) == pytest.approx(-2.326348, abs=1e-6)


@pytest.mark.parametrize(
    ("experiment", "control", "given", "expected"),
    [
        pytest.param(A, B, rule(), "Pass", id="same"),
        pytest.param(C, B, rule(), "High", id="high"),
        pytest.param(A, D, rule(), "Low", id="low"),
        pytest.param(A, D, rule("increase"), "Pass", id="low where increases count"),
        pytest.param(C, B, rule("decrease"), "Pass", id="high where decreases count"),
        pytest.param(C, B, rule("increase"), "High", id="high where increases count"),
        pytest.param(A, D, rule("decrease"), "Low", id="low where decreases count"),
        pytest.param(A, D, rule("decrease", allowed=(0.8, 1.2)), "Low", id="low and large"),
    ],
)
def test_v4_direction(
    experiment: list[float], control: list[float], given: classify.Rule, expected: str
) -> None:
    then = label(given, experiment, control)

    assert then.label.value == expected
    assert not then.critical


@pytest.mark.parametrize(
    ("given", "expected", "critical"),
    [
        (rule(allowed=(0.8, 1.2)), "High", False),
        (rule(critical=True, limits=(1.0, 1.2)), "High", True),
        (rule(critical=True, allowed=(1.0, 5.0), limits=(1.0, 13.0)), "High", False),
        (rule(critical=True, allowed=(1.0, 13.0), limits=(1.0, 15.0)), "Pass", False),
        (rule(critical=True), "High", True),
    ],
)
def test_v5_effect_sizes_and_critical_sizes(
    given: classify.Rule,
    expected: str,
    critical: bool,  # noqa: FBT001 - a column of the table
) -> None:
    then = label(given, [20.0, 22.0, 21.0, 25.0, 30.0], [1.0, 2.2, 1.1, 2.5, 3.0])

    assert (then.label.value, then.critical) == (expected, critical)


def test_v6_critical_decrease() -> None:
    given = rule(critical=True, limits=(1.2, 1.0))

    then = label(given, [2.0, 2.0, 2.0, 2.0, 3.0], [10.0, 20.2, 10.1, 20.5, 30.0])

    assert (then.label, then.critical) == (verdict.Label.LOW, True)


def test_v7_allowed_decrease() -> None:
    given = rule(allowed=(0.5, 1.0))

    then = label(given, [10.0, 12.2, 10.1, 12.5, 23.0], [20.0, 22.0, 21.0, 25.0, 30.0])

    assert then.label is verdict.Label.PASS


@pytest.mark.parametrize(
    ("experiment", "control", "given", "expected"),
    [
        ([10.0] * 5, [1.0] * 5, rule(), "High"),
        ([10.0] * 5, [0.0] * 5, rule(), "High"),
        ([1.0, 1.0, 1.0, 1.0, 10.0], [1.0] * 5, rule(), "Pass"),
        ([0.0, 1.0, 1.0, 1.0, 1.0], [1.0] * 5, rule("decrease"), "Pass"),
        ([1.0] * 3, [1.0] * 2, rule("decrease"), "Pass"),
        ([1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0], rule("decrease"), "Pass"),
        ([0.0] * 5, [0.0] * 5, rule(allowed=(0.8, 1.2)), "Pass"),
    ],
)
def test_v8_ties(
    experiment: list[float], control: list[float], given: classify.Rule, expected: str
) -> None:
    assert label(given, experiment, control).label.value == expected


def test_v8_identical_sides_have_the_ratio_one() -> None:
    assert label(rule(allowed=(0.8, 1.2)), [0.0] * 5, [0.0] * 5).ratio == 1.0


def test_v9_no_ratio_to_a_zero_mean_yet_a_label() -> None:
    high, zero, given = [54.9, 54.5, 55.1, 55.6, 57.4], [0.0] * 5, rule(allowed=(0.8, 1.2))

    up, down = label(given, high, zero), label(given, zero, high)

    assert (up.label, down.label) == (verdict.Label.HIGH, verdict.Label.LOW)
    assert up.ratio is not None
    assert down.ratio is not None
    assert math.isnan(up.ratio)
    assert math.isnan(down.ratio)


def test_v10_small_errors_where_control_has_none_are_critical() -> None:
    experiment = [
        *(0.05000000074505806, 0.05000000074505806, 0.01666666753590107, 0.01666666753590107),
        *(0.01666666753590107, 0.05000000074505806, 0.03333333507180214, 0.05000000260770321),
        *(0.05000000260770321, 0.13333333656191826),
    ]

    given = rule(critical=True, limits=(0.8, 1.2), replace=True)
    then = label(given, experiment, [0.0] * 10)

    assert (then.label, then.critical) == (verdict.Label.HIGH, True)


@pytest.mark.parametrize(
    ("given", "expected", "critical"),
    [
        (rule("decrease"), "Nodata", False),
        (rule("decrease", critical=True), "Nodata", True),
        (rule("decrease", replace=True), "Pass", False),
    ],
)
def test_v11_no_data(
    given: classify.Rule,
    expected: str,
    critical: bool,  # noqa: FBT001 - a column of the table
) -> None:
    then = label(given, [], [1.0, 2.0, 3.0, 4.0, 5.0])

    assert (then.label.value, then.critical) == (expected, critical)


def findings(groups: dict[str, str]) -> list[verdict.Finding]:
    told = []
    for group, words in groups.items():
        for number, word in enumerate(words.split()):
            name = word.removesuffix("!")
            told.append(
                verdict.Finding(
                    name=f"{group}-{number}",
                    label=verdict.Label(name),
                    reason="",
                    groups=(group,),
                    critical=word.endswith("!"),
                )
            )
    return told


@pytest.mark.parametrize(
    ("groups", "weights", "expected"),
    [
        ({"g": "Pass"}, {}, 100),
        ({"g": "High"}, {}, 0),
        ({"g": "Nodata"}, {}, 0),
        ({"g1": "Pass Pass", "g2": "Nodata"}, {}, 100),
        ({"g": "Pass High"}, {}, 50),
        ({"g": "Pass High Low"}, {}, 33.33),
        ({"g1": "Pass Pass", "g2": "High"}, {"g1": 75, "g2": 25}, 75),
        ({"g1": "Pass High", "g2": "High"}, {"g1": 50, "g2": 50}, 25),
        ({"g1": "Pass Nodata", "g2": "High"}, {"g1": 50, "g2": 50}, 50),
        ({"g": "Pass High!"}, {}, 0),
        ({"g": "Low Pass!"}, {}, 50),
        ({"g": "Pass Nodata!"}, {}, 0),
        ({"g1": "High Low Pass", "g2": "High"}, {"g1": 15, "g2": 85}, 5),
    ],
)
def test_v12_score(groups: dict[str, str], weights: dict[str, float], expected: float) -> None:
    assert score.score(findings(groups), weights).value == expected


def test_v12_a_group_without_data_shows_zero_but_costs_nothing() -> None:
    then = score.score(findings({"g1": "Pass Pass", "g2": "Nodata"}), {})

    assert [group.score for group in then.groups] == [100, 0]


def picked(values: list[float], far: list[bool]) -> list[float]:
    return [value for value, is_far in zip(values, far, strict=True) if is_far]


def test_v14_outliers() -> None:
    one = [21.0, 23.0, 24.0, 25.0, 50.0, 29.0, 23.0, 21.0]
    two = [1.0, 1.0, 1.0, 5.0, -1.0, -1.0, -1.0, -5.0]

    assert picked(one, samples.beyond_fences(one, 1.5)) == [50.0]
    assert picked(two, samples.beyond_fences(two, 1.5)) == [5.0, -5.0]


def test_v15_statistics() -> None:
    steps = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]
    halves = [1.0, 1, 1, 10, 10, 10]

    assert statistics.percentile(steps, 5) == pytest.approx(0.175, abs=1e-4)
    assert statistics.percentile(steps, 50) == 1.75
    assert statistics.percentile(steps, 100) == 3.5
    assert statistics.mean(halves) == 5.5
    assert statistics.standard_deviation(halves) == pytest.approx(4.9295, abs=1e-4)


PARTIAL = [100.0] * 7 + [1.0] * 3
NARROW = [10.0, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6]
NARROW += [17.0, 17.1, 17.2, 17.3, 17.4, 17.5, 17.6, 17.7]
WIDE = [1.0, 100, 4, 101, 5, 102, 6, 103, 7, 104, 8, 105, 9, 106, 17]
SPARSE = [0.0, 1.0, 2.0, 1.0, 0.0, 0.0]


def test_v16_partial_shift_passes_at_kayenta_with_its_very_numbers() -> None:
    given = rule(allowed=(1.0, 1.05))

    seven = judge.find(given, [1.0] * 10, PARTIAL, judge.KAYENTA)
    eight = judge.find(given, [1.0] * 10, [100.0] * 8 + [1.0] * 2, judge.KAYENTA)

    assert (seven.label, eight.label) == (verdict.Label.PASS, verdict.Label.HIGH)
    assert seven.interval is not None
    assert seven.interval.low == pytest.approx(6.825022991538781e-5, rel=1e-9)
    assert seven.interval.high == 99.0
    assert seven.interval.estimate == pytest.approx(98.99992904170193, rel=1e-12)
    assert seven.ratio == pytest.approx(70.3)


# Here and there, not in one stretch, which a slow start would be as well.
MORE_SPARSE = [1.0, 0, 2, 1, 0, 1, 1, 0, 2, 1, 1, 2]
SCATTERED = [100.0, 1, 100, 100, 1, 100, 100, 100, 1, 100]


@pytest.mark.parametrize(
    ("experiment", "control", "ours"),
    [
        # Four events against none is what chance does once in eight, so it is no alarm any more.
        pytest.param(SPARSE, [0.0] * 6, "Pass", id="sparse counts"),
        pytest.param(MORE_SPARSE, [0.0] * 12, "High", id="more sparse counts"),
        pytest.param(NARROW, WIDE, "Low", id="changed variance"),
        pytest.param(SCATTERED, [1.0] * 10, "High", id="partial shift"),
    ],
)
def test_v16_what_kayenta_passes_our_judge_sees(
    experiment: list[float], control: list[float], ours: str
) -> None:
    theirs = judge.find(rule(), control, experiment, judge.KAYENTA)
    equal_traffic = judge.Bench(plan=looks.Plan(once=True, share=0.5))

    then = judge.find(rule(), control, experiment, equal_traffic)

    assert theirs.label is verdict.Label.PASS
    assert then.label.value == ours
    assert "; " in then.reason
