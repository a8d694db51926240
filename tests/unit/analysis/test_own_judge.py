"""Series by our judge: looks, what is not enough, what is obvious, what fewer requests explain."""

import dataclasses
import random

import pytest

from fairlead.analysis import classify, judge, looks, verdict

RULE = classify.Rule("latency")
PLANNED = judge.Bench(plan=looks.Plan(samples=30, every=3))
GOOD = [20.0, 22, 21, 25, 19, 23, 20, 24, 21, 22, 23, 19]


def test_an_obviously_slow_version_is_seen_at_the_first_five_samples_of_one_look() -> None:
    slow = [value + 380 for value in GOOD[:5]]

    then = judge.find(RULE, GOOD[:5], slow, judge.Bench())

    assert then.label is verdict.Label.HIGH
    assert "chance alone does so once in 252" in then.reason


def test_it_is_seen_long_before_the_planned_end_too() -> None:
    slow = [value + 380 for value in GOOD]

    labels = [
        judge.find(RULE, GOOD[:count], slow[:count], PLANNED).label.value for count in range(5, 13)
    ]

    assert labels[0] == "Nodata"
    assert labels[-1] == "High"


def test_too_few_samples_are_not_enough_and_no_pass() -> None:
    then = judge.find(RULE, GOOD[:5], GOOD[5:10], PLANNED)

    assert (then.label, then.no_data) == (verdict.Label.NO_DATA, verdict.NoData.WAIT)
    assert then.reason == (
        "not enough samples yet: 5 so far, about 10 needed to see sides that are wholly apart"
        " (look 2 of 10 planned)"
    )


@pytest.mark.parametrize(
    ("policy", "label", "then_policy"),
    [
        (verdict.NoData.PASS, "Pass", None),
        (verdict.NoData.INCONCLUSIVE, "Nodata", verdict.NoData.INCONCLUSIVE),
        (verdict.NoData.FAIL, "Nodata", verdict.NoData.WAIT),
    ],
)
def test_the_policy_of_the_metric_says_what_not_enough_means(
    policy: verdict.NoData, label: str, then_policy: verdict.NoData | None
) -> None:
    rule = dataclasses.replace(RULE, no_data=policy)

    then = judge.find(rule, GOOD[:3], GOOD[3:6], judge.Bench())

    assert (then.label.value, then.no_data) == (label, then_policy)


def test_one_direction_has_the_whole_chance() -> None:
    slow = [value * 2 for value in GOOD[:4]]
    rule = dataclasses.replace(RULE, direction=classify.Direction.INCREASE)

    assert judge.find(rule, GOOD[:4], [*slow[:3], 400.0], judge.Bench()).label.value != "Nodata"
    assert judge.find(RULE, GOOD[:4], slow, judge.Bench()).label is verdict.Label.NO_DATA


def test_samples_that_follow_each_other_are_told_as_fewer() -> None:
    chance, load = random.Random(1), 100.0
    drifting = []
    for _ in range(60):
        load += chance.gauss(0, 1)
        drifting.append(load)

    then = judge.find(RULE, drifting[:30], drifting[30:], judge.Bench())

    assert "samples that follow each other count as" in then.reason


def test_an_error_ratio_of_a_tenth_of_the_requests_raises_no_alarm() -> None:
    chance = random.Random(2)
    control = [sum(chance.random() < 0.005 for _ in range(180)) / 180 for _ in range(30)]
    experiment = [sum(chance.random() < 0.005 for _ in range(20)) / 20 for _ in range(30)]

    for share in (None, 0.1):
        plan = looks.Plan(once=True, share=share)
        then = judge.find(RULE, control, experiment, judge.Bench(plan=plan))
        assert then.label is verdict.Label.PASS, then.reason


def test_a_tolerance_asks_for_more_than_a_difference() -> None:
    chance = random.Random(3)
    control = [chance.gauss(100, 10) for _ in range(30)]
    experiment = [chance.gauss(112, 10) for _ in range(30)]
    strict = dataclasses.replace(judge.OWN_STRICTNESS, tolerance=0.9)

    plain = judge.find(RULE, control, experiment, judge.Bench())
    tolerant = judge.find(RULE, control, experiment, judge.Bench(strictness=strict))

    assert (plain.label, tolerant.label) == (verdict.Label.HIGH, verdict.Label.PASS)
