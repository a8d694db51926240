"""Samples that follow each other say less than their number."""

import random

import pytest

from fairlead.analysis import persistence


def following(chance: random.Random, correlation: float, count: int) -> list[float]:
    values = [chance.gauss(0, 1)]
    rest = (1 - correlation**2) ** 0.5
    while len(values) < count:
        values.append(correlation * values[-1] + rest * chance.gauss(0, 1))
    return values


@pytest.mark.parametrize(("correlation", "low", "high"), [(0, 0.9, 1.3), (0.7, 4.0, 8.0)])
def test_the_factor_is_what_the_correlation_makes_of_it(
    correlation: float, low: float, high: float
) -> None:
    sides = [following(random.Random(seed), correlation, 400) for seed in (1, 2)]

    then = persistence.estimate(sides)

    # (1 + 0.7) / (1 - 0.7) is 5.7.
    assert low < then.factor < high


def test_what_follows_each_other_has_less_freedom() -> None:
    free, bound = (
        persistence.estimate([following(random.Random(1), correlation, 60)]).freedom
        for correlation in (0, 0.7)
    )

    assert bound < free / 2


def test_samples_that_do_not_vary_follow_nothing() -> None:
    assert persistence.estimate([[0.0] * 9, [0.0] * 9]) == persistence.Persistence(1.0, 16)


def test_a_factor_is_never_much_below_that_of_independent_samples() -> None:
    seesaw = [(-1.0) ** number for number in range(40)]

    assert persistence.estimate([seesaw]).factor > 0.85


def test_rare_events_are_not_corrected_twice() -> None:
    """Ties alone make the test calm; Kendall's correction is for samples that differ."""
    rare = [0.9 if number in (3, 4, 17) else -0.1 for number in range(30)]
    dense = [value + 1e-6 * number for number, value in enumerate(rare)]

    assert persistence.estimate([rare]).factor < 0.9 * persistence.estimate([dense]).factor


def test_neighbours_are_no_more_alike_than_they_can_be() -> None:
    series = following(random.Random(1), 0.7, 60)

    assert persistence.estimate([series], most=0.0) == persistence.Persistence(1.0, 59.0)
    assert persistence.estimate([series], most=0.2).factor < 1.5


def test_the_more_sure_a_test_must_be_the_more_an_estimate_may_be_too_low() -> None:
    centred = following(random.Random(3), 0.3, 30)

    usual, careful = persistence.estimate([centred]), persistence.estimate([centred], level=1e-6)

    assert careful.factor > usual.factor
    assert careful.freedom <= usual.freedom


def test_what_is_known_to_follow_itself_is_not_said_to_do_so_less() -> None:
    found = persistence.Persistence(1.5, 20.0)

    assert persistence.at_least(found, 1.2, 60) is found
    assert persistence.at_least(found, 4.0, 60).factor == 4.0
    assert persistence.at_least(found, 4.0, 60).freedom < 20.0
