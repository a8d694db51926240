"""What our judge sees beyond ranks, and what it must not see."""

import dataclasses
import random

import pytest

from fairlead.domain.analysis import classify, judge, second_look, verdict

RULE = classify.Rule("metric")


def find(
    control: list[float],
    experiment: list[float],
    rule: classify.Rule = RULE,
    bench: judge.Bench | None = None,
) -> verdict.Finding:
    return judge.find(rule, control, experiment, bench or judge.Bench())


def directed(direction: str) -> classify.Rule:
    return classify.Rule("metric", direction=classify.Direction(direction))


def test_four_errors_where_there_were_none_are_high() -> None:
    then = find([0.0] * 6, [0.0, 1, 2, 1, 0, 0])

    assert then.label is verdict.Label.HIGH
    assert "4 events against 0 of control" in then.reason
    assert "once in 32" in then.reason


def test_three_errors_where_there_were_none_are_not_enough() -> None:
    assert find([0.0] * 6, [0.0, 1, 1, 1, 0, 0]).label is verdict.Label.PASS


def test_errors_that_went_away_are_low_only_if_that_is_watched() -> None:
    control, experiment = [0.0, 1, 2, 1, 0, 0], [0.0] * 6

    assert find(control, experiment).label is verdict.Label.LOW
    assert find(control, experiment, directed("increase")).label is verdict.Label.PASS


def test_one_burst_is_one_event() -> None:
    quiet, burst = [0.0] * 60, [0.0] * 59 + [100.0]

    assert find(quiet, burst).label is verdict.Label.PASS


def test_many_events_need_the_confidence_of_the_judge() -> None:
    # 11 to 4 would be enough at 90 %, but with fifteen events there is no need to be so quick.
    control = [0.0] * 56 + [1.0] * 4
    experiment = [0.0] * 49 + [1.0] * 11

    assert find(control, experiment).label is verdict.Label.PASS


def test_sides_of_different_length_are_counted_by_their_length() -> None:
    # Four events in sixty samples against none in five is what chance gives.
    assert find([0.0] * 5, [0.0] * 56 + [1.0] * 4).label is verdict.Label.PASS


def test_events_beyond_number_are_weighed_too() -> None:
    control = [0.0] * 30 + [1e9, 1.1e9] * 15
    experiment = [0.0] * 30 + [3e9, 3.1e9] * 15

    assert find(control, experiment).label in set(verdict.Label)


def test_an_allowed_increase_holds_for_counts_too() -> None:
    limits = classify.EffectLimits(
        measure=classify.Measure.COMMON_LANGUAGE, allowed_increase=0.9, allowed_decrease=0.1
    )

    then = find([0.0] * 6, [0.0, 1, 2, 1, 0, 0], classify.Rule("metric", effect=limits))

    assert then.label is verdict.Label.PASS


def test_a_part_that_jumped_is_high_with_its_numbers() -> None:
    then = find([1.0] * 10, [100.0] * 7 + [1.0] * 3)

    assert then.label is verdict.Label.HIGH
    assert "7 of 10 samples lie above all of control (1)" in then.reason


@pytest.mark.parametrize("count", [60, 2000])
def test_what_chance_never_does_needs_no_digits(count: int) -> None:
    half = count // 2
    control = [1.0 + number / count for number in range(count)]
    experiment = [100.0 + number for number in range(half)] + control[:half]

    then = find(control, experiment, bench=only(second_look.Look.JUMP))

    assert then.label is verdict.Label.HIGH
    assert "chance does this less than once in a billion" in then.reason


def test_a_part_that_fell_is_low() -> None:
    then = find([100.0] * 10, [1.0] * 7 + [100.0] * 3)

    assert then.label is verdict.Label.LOW
    assert "below all of control" in then.reason


def test_a_jump_within_tolerance_is_none() -> None:
    chance = random.Random(4)
    control = [chance.uniform(100, 101) for _ in range(40)]
    experiment = control[:25] + [102.0 + number / 100 for number in range(15)]

    assert find(control, experiment).label is verdict.Label.PASS


def test_a_jump_of_a_critical_metric_is_critical() -> None:
    rule = classify.Rule("metric", critical=True)

    assert find([1.0] * 10, [100.0] * 7 + [1.0] * 3, rule).critical


def wide(seed: int, spread: float) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(100, spread) for _ in range(60)]


@pytest.mark.parametrize(
    ("direction", "wider", "narrower"),
    [("either", "High", "Low"), ("increase", "High", "Pass"), ("decrease", "Low", "Pass")],
)
def test_spread_counts_on_the_side_that_is_watched(
    direction: str, wider: str, narrower: str
) -> None:
    rule = directed(direction)
    bench = only(second_look.Look.SPREAD)

    assert find(wide(1, 4), wide(2, 60), rule, bench).label.value == wider
    assert find(wide(1, 60), wide(2, 4), rule, bench).label.value == narrower


def test_the_reason_tells_both_spreads() -> None:
    then = find(wide(1, 60), wide(2, 4))

    assert "spread shrank: typical distance from the median" in then.reason


def test_a_spread_that_is_small_beside_the_level_is_none() -> None:
    assert find(wide(1, 0.1), wide(2, 2)).label is verdict.Label.PASS


def test_a_spread_below_the_limit_is_none() -> None:
    bench = judge.Bench(attention=second_look.Attention(spread=50.0))

    assert find(wide(1, 4), wide(2, 60), directed("decrease"), bench).label is verdict.Label.PASS


def test_a_side_that_moved_as_allowed_is_not_wider() -> None:
    limits = classify.EffectLimits(allowed_increase=2.0)
    control = wide(1, 0.5)

    then = find(control, [value * 1.5 for value in control], classify.Rule("metric", effect=limits))

    assert then.label is verdict.Label.PASS


def test_halves_of_few_samples_are_not_a_spread() -> None:
    assert find([1.0] * 6, [1.0, 2, 2, 2, 1, 1]).label is verdict.Label.PASS


def test_a_critical_metric_with_another_spread_is_critical() -> None:
    rule = classify.Rule("metric", critical=True)

    assert find(wide(1, 60), wide(2, 4), rule).critical


def only(*looks: second_look.Look) -> judge.Bench:
    return judge.Bench(attention=second_look.Attention(looks=looks))


def test_looks_can_be_left_out() -> None:
    assert find([0.0] * 6, [0.0, 1, 2, 1, 0, 0], bench=only()).label is verdict.Label.PASS


def test_a_metric_below_a_ten_thousandth_is_judged_as_any_other() -> None:
    chance = random.Random(7)
    control = [chance.gauss(1, 0.1) * 1e-5 for _ in range(60)]
    experiment = [chance.gauss(1.3, 0.1) * 1e-5 for _ in range(60)]

    theirs = find(control, experiment, bench=judge.KAYENTA)
    ours = find(control, experiment)

    # Kayenta searches to 0.0001, which is more than all of this metric.
    assert (theirs.label, ours.label) == (verdict.Label.PASS, verdict.Label.HIGH)
    assert ours.interval is not None
    assert 0 < ours.interval.low < ours.interval.estimate < ours.interval.high < 1e-5


def test_infinite_samples_are_left_out_and_told() -> None:
    infinite = float("inf")

    then = find([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, infinite, 4.0, 5.0, -infinite, 3.1])

    assert then.label is verdict.Label.PASS
    assert then.reason.endswith("left out 2 infinite")


def test_what_cannot_be_ranked_counts_as_no_data() -> None:
    theirs = find([1.0], [10.0], bench=judge.KAYENTA)
    ours = find([1.0], [10.0])
    failing = find([1.0], [10.0], dataclasses.replace(RULE, no_data=verdict.NoData.FAIL))

    assert theirs.label is verdict.Label.ERROR
    assert ours.label is verdict.Label.NO_DATA
    assert failing.label is verdict.Label.NO_DATA_FAILS
    assert "too few different samples to rank" in ours.reason


def test_few_samples_are_judged_but_the_odds_are_told() -> None:
    then = find([1.0, 2.0], [10.0, 11.0])

    assert then.label is verdict.Label.HIGH
    assert "with 2 and 2 samples chance alone parts two equal sides like this once in 3" in (
        then.reason
    )
