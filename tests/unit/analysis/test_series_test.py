"""Whether a centre moved: any shape, any order, what both sides share."""

import random

import pytest

from fairlead.analysis import series_test
from tests.unit.analysis.test_persistence import following

ALMOST = 0.009


def drawn(seed: int, shift: float = 0.0, count: int = 30) -> tuple[list[float], list[float]]:
    chance = random.Random(seed)
    return (
        [chance.lognormvariate(0, 0.5) for _ in range(count)],
        [chance.lognormvariate(shift, 0.5) for _ in range(count)],
    )


def alarms(correlation: float) -> int:
    found = 0
    for seed in range(300):
        chance = random.Random(seed)
        sides = following(chance, correlation, 30), following(chance, correlation, 30)
        found += series_test.test(*sides).chance <= ALMOST
    return found


@pytest.mark.parametrize("correlation", [0, 0.3, 0.5, 0.7])
def test_sides_alike_part_no_more_often_than_is_said(correlation: float) -> None:
    # Of 300, two in a hundred are six; the seeds are fixed, the bound leaves room for their luck.
    assert alarms(correlation) <= 9


def test_a_shift_is_seen_whatever_the_unit_and_however_wild_one_sample_is() -> None:
    control, experiment = drawn(3, shift=0.7)
    wild = [*control[:-1], 1e12]

    plain = series_test.test(control, experiment)
    scaled = series_test.test([value * 1e-9 for value in wild], [v * 1e-9 for v in experiment])

    assert plain.lead > 0
    assert plain.chance < 0.001
    assert scaled.chance < 0.01


def test_what_both_sides_share_cancels() -> None:
    chance = random.Random(4)
    load = following(chance, 0.7, 30)
    control = [each + chance.gauss(0, 0.2) for each in load]
    experiment = [each + 0.4 + chance.gauss(0, 0.2) for each in load]

    together = series_test.test(control, experiment)
    shuffled = series_test.test(control, random.Random(5).sample(experiment, 30))

    assert together.chance < 1e-4 < shuffled.chance


def test_five_samples_that_are_wholly_apart_and_far_are_as_sure_as_their_order() -> None:
    then = series_test.test([20.0, 21, 22, 23, 24], [400.0, 405, 410, 415, 420])

    # A trend on both sides would otherwise make one sample of five.
    assert then.chance == pytest.approx(1 / 252)
    assert series_test.fewest(5, 5) == then.chance


def test_a_rate_of_fewer_requests_is_more_often_nothing() -> None:
    quiet, busy = [0.0] * 27 + [0.05] * 3, [0.0, 0.0055, 0.011] * 10

    assert series_test.is_towards_a_crowd(busy, quiet)
    assert not series_test.is_towards_a_crowd(quiet, busy)
    assert not series_test.means_agree(busy, quiet, 9.0, ALMOST)
    # Requests that stopped are another matter.
    assert series_test.means_agree([90.0, 100, 110] * 10, [0.0] * 30, 19.0, ALMOST)
