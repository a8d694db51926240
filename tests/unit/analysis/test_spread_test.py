"""The same centre, far wider or narrower, beyond what the traffic explains."""

import math
import random

import pytest

from fairlead.analysis import classify, judge, looks, statistics, verdict

EQUAL = looks.Plan(once=True, share=0.5)
RULE = classify.Rule("metric")


def wide(seed: int, spread: float) -> list[float]:
    """The same centre to the last digit, in an order of its own."""
    values = [100 + spread * statistics.normal_quantile((place + 0.5) / 60) for place in range(60)]
    return random.Random(seed).sample(values, 60)


def find(
    before: float, after: float, rule: classify.Rule = RULE, plan: looks.Plan = EQUAL
) -> verdict.Finding:
    return judge.find(rule, wide(1, before), wide(2, after), judge.Bench(plan=plan))


@pytest.mark.parametrize(
    ("direction", "wider", "narrower"),
    [("either", "High", "Low"), ("increase", "High", "Pass"), ("decrease", "Low", "Pass")],
)
def test_spread_counts_on_the_side_that_is_watched(
    direction: str, wider: str, narrower: str
) -> None:
    rule = classify.Rule("metric", direction=classify.Direction(direction))

    assert find(4, 60, rule).label.value == wider
    assert find(60, 4, rule).label.value == narrower


def test_the_reason_tells_both_spreads() -> None:
    assert "spread shrank: typical distance from the median" in find(60, 4).reason


def test_fewer_requests_explain_a_wider_spread() -> None:
    tenth, unknown = looks.Plan(once=True, share=0.1), looks.ONCE

    assert find(20, 100).label is verdict.Label.HIGH
    assert find(20, 100, plan=tenth).label is verdict.Label.PASS
    assert find(20, 100, plan=unknown).label is verdict.Label.PASS


def test_an_allowed_increase_holds_for_spread_too() -> None:
    large, small = (
        classify.EffectLimits(allowed_increase=allowed, critical_increase=100.0)
        for allowed in (10.0, 1.2)
    )

    four_times = find(20, 80, classify.Rule("metric", effect=large, critical=True))
    fifteen_times = find(5, 75, classify.Rule("metric", effect=small, critical=True))

    assert four_times.label is verdict.Label.PASS
    assert (fifteen_times.label, fifteen_times.critical) == (verdict.Label.HIGH, False)


def test_samples_that_stay_within_the_allowed_values_are_no_spread() -> None:
    """As times that control's buckets make equal: any other spread is many times as wide."""
    limits = classify.EffectLimits(allowed_increase=1.5)
    rule = classify.Rule(
        "metric", direction=classify.Direction.INCREASE, effect=limits, critical=True
    )
    control = [399.0] * 9
    near = [399.0, 520.0, 399.0, 740.0, 399.0, 685.0, 399.0, 460.0, 660.0]
    far = [399.0, 900.0, 399.0, 1400.0, 399.0, 1500.0, 399.0, 399.0, 1200.0]

    bench = judge.Bench(plan=EQUAL)

    then = [judge.find(rule, 3 * control, 3 * side, bench) for side in (near, far)]

    assert [each.label for each in then] == [verdict.Label.PASS, verdict.Label.HIGH]


def test_a_spread_that_is_small_beside_the_level_is_none() -> None:
    assert find(0.1, 2).label is verdict.Label.PASS


def test_a_side_that_is_often_better_is_not_worse_for_being_uneven() -> None:
    """As a version that gets warm while it is held against one that was cold all the time."""
    rule = classify.Rule("metric", direction=classify.Direction.INCREASE)
    uneven = [99.7, 22.9, 98.4, 31.2, 97.4, 26.9, 99.7, 22.9, 98.4]

    then = judge.find(rule, [99.75] * 9, uneven, judge.Bench(plan=EQUAL))

    assert then.label is verdict.Label.PASS


def test_no_error_among_few_requests_is_no_narrower_spread() -> None:
    """Of twenty requests a sample; one release in twenty has no error on such a side at all."""
    control = [1 / 180] * 14 + [0.0] * 16
    random.Random(0).shuffle(control)
    many = looks.Plan(30, 3, parts=16, share=0.1)

    found = judge.find(RULE, control, [0.0] * 30, judge.Bench(plan=many))

    assert found.label is verdict.Label.PASS


def following(chance: random.Random) -> list[float]:
    """Samples of which each resembles the one before, far out now and then."""
    values = [chance.gauss(0, 1)]
    while len(values) < 30:
        values.append(0.7 * values[-1] + 0.714 * chance.gauss(0, 1))
    return [math.exp(value) for value in values]


def test_a_side_that_wandered_off_is_no_wider() -> None:
    chance = random.Random(275)
    sides = following(chance), following(chance)

    found = judge.find(RULE, *sides, judge.Bench(plan=looks.Plan(30, 3, share=0.5)))

    assert found.label is verdict.Label.PASS
