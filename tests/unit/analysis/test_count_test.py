"""Events among requests: any split of the traffic, bursts, and what it takes."""

import random

import pytest

from fairlead.analysis import count_test
from fairlead.analysis.samples import Counted

ALMOST = 0.009


def counted(chance: random.Random, rate: float, requests: int, moments: int = 30) -> Counted:
    events = tuple(sum(chance.random() < rate for _ in range(requests)) for _ in range(moments))
    return Counted(events, (requests,) * moments)


@pytest.mark.parametrize(("requests", "others"), [(50, 50), (20, 180), (10, 190)])
def test_equal_rates_do_not_part_however_uneven_the_traffic(requests: int, others: int) -> None:
    chance = random.Random(8)

    found = [
        count_test.test(counted(chance, 0.02, others), counted(chance, 0.02, requests)).chance
        for _ in range(60)
    ]

    assert sum(each <= ALMOST for each in found) <= 2


def test_a_rate_ten_times_as_high_is_seen_in_a_few_moments() -> None:
    chance = random.Random(9)

    then = count_test.test(counted(chance, 0.005, 380, 8), counted(chance, 0.05, 20, 8))

    assert then.is_higher
    assert then.chance < ALMOST
    assert (then.requests, then.other_requests) == (160, 3040)


def test_the_share_of_the_traffic_may_change_from_moment_to_moment() -> None:
    control = Counted((9, 9, 1, 1), (900, 900, 100, 100))
    experiment = Counted((1, 1, 9, 9), (100, 100, 900, 900))

    assert count_test.test(control, experiment).chance > 0.3


def test_events_in_bursts_count_for_less() -> None:
    requests = (100,) * 12
    steady = count_test.test(Counted((1,) * 12, requests), Counted((3,) * 12, requests))
    burst = count_test.test(
        Counted((0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0), requests),
        Counted((36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), requests),
    )

    assert steady.chance < 0.001
    assert burst.restless > 3
    assert burst.chance > 0.05


def bursts(chance: random.Random, requests: int, moments: int = 30) -> Counted:
    """Errors of 0.5 % in the mean, at another rate in each moment."""
    rates = [chance.gammavariate(1, 0.005) for _ in range(moments)]
    return Counted(
        tuple(sum(chance.random() < rate for _ in range(requests)) for rate in rates),
        (requests,) * moments,
    )


def test_bursts_that_each_side_has_for_itself_do_not_part_sides_alike() -> None:
    chance = random.Random(24)

    found = [count_test.test(bursts(chance, 200), bursts(chance, 200)) for _ in range(600)]

    # Of 600, two in a hundred are twelve; the seed is fixed, the bound leaves room for its luck.
    assert sum(each.chance <= ALMOST for each in found) <= 13


FEW, MANY = (200,) * 12, (1800,) * 12
QUIET = Counted((1, 0, 1, 2, 1, 1, 0, 1, 2, 1, 1, 1), FEW)


def test_the_side_with_more_events_tells_how_restless_both_are() -> None:
    scattered = (3, 20, 2, 9, 1, 17, 14, 5, 12, 18, 3, 4)
    rhythm = (3, 4, 2, 9, 14, 17, 20, 18, 12, 5, 3, 1)

    by_chance = count_test.test(Counted((9, 8, 12, 10, 6, 9, 11, 9, 5, 12, 8, 9), MANY), QUIET)
    bursts_, waves = (count_test.test(Counted(each, MANY), QUIET) for each in (scattered, rhythm))

    assert by_chance.restless == 1.0
    assert bursts_.restless > 1.5
    assert waves.restless > 3 * bursts_.restless


def test_a_side_that_bursts_for_itself_alone_counts_for_less_too() -> None:
    calm = Counted((9, 8, 10, 9, 9, 8, 10, 9, 9, 8, 10, 9), MANY)

    assert count_test.test(calm, Counted((0,) * 4 + (12,) + (0,) * 7, FEW)).restless > 5


def test_bursts_that_both_sides_share_cancel_in_the_split() -> None:
    rates = [0, 1, 14, 2, 0, 9, 0, 21, 1, 0, 3, 17]
    requests = (1000,) * 12
    together = Counted(tuple(rates), requests), Counted(tuple(rates), requests)
    alone = together[0], Counted(tuple(reversed(rates)), requests)

    assert count_test.test(*together).restless < 1.1
    assert count_test.test(*alone).restless > 5


def test_what_chance_explains_is_not_said_to_follow_each_other() -> None:
    # Neighbours on one side of their mean by turns, yet no more restless than counts are.
    requests = (200,) * 12
    control = Counted((2, 2, 3, 1, 1, 0, 0, 1, 1, 2, 3, 2), requests)
    experiment = Counted((0, 1, 1, 2, 2, 3, 3, 2, 2, 1, 0, 1), requests)

    assert count_test.test(control, experiment).restless < 1.1


def test_fewer_requests_of_one_side_need_more_in_all() -> None:
    even = count_test.Split(10, 10, 1000, 1000, 0.5, 1.0)
    uneven = count_test.Split(2, 18, 200, 1800, 0.5, 1.0)

    assert count_test.needed(even, 2.0, ALMOST) == pytest.approx(3100, rel=0.1)
    assert count_test.needed(uneven, 2.0, ALMOST) < count_test.needed(even, 2.0, ALMOST)
    assert count_test.needed(even, 10.0, ALMOST) < count_test.needed(even, 2.0, ALMOST) / 9


def test_no_event_at_all_is_looked_at_as_one_in_a_hundred() -> None:
    none = count_test.Split(0, 0, 1000, 1000, 0.5, 1.0)

    assert count_test.needed(none, 2.0, ALMOST) == count_test.needed(
        count_test.Split(10, 10, 1000, 1000, 0.5, 1.0), 2.0, ALMOST
    )


def test_the_interval_holds_the_ratio() -> None:
    low, high = count_test.ratio_interval(count_test.Split(60, 30, 6000, 6000, 0.001, 1.0), ALMOST)

    assert 1 < low < 2 < high < 4
