"""Tails of distributions, held against numbers that are known."""

import math

import pytest

from fairlead.analysis import tails


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [(0.0, 5, 0.5), (2.015, 5, 0.05), (3.365, 5, 0.01), (1.0, 1, 0.25), (-2.015, 5, 0.95)],
)
def test_students_distribution(t: float, freedom: float, expected: float) -> None:
    assert tails.student_upper(t, freedom) == pytest.approx(expected, abs=1e-4)


def test_with_many_degrees_of_freedom_student_is_normal() -> None:
    assert tails.student_upper(2.3263, 1e6) == pytest.approx(tails.normal_upper(2.3263), rel=1e-4)


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("chance", [0.05, 0.5, 0.9])
def test_the_binomial_tail_is_the_sum_of_its_terms(trials: int, chance: float) -> None:
    for successes in range(trials + 1):
        terms = [
            math.comb(trials, each) * chance**each * (1 - chance) ** (trials - each)
            for each in range(successes, trials + 1)
        ]
        expected = sum(terms) - terms[0] / 2

        assert tails.binomial_upper(successes, trials, chance) == pytest.approx(expected, rel=1e-9)


def test_both_tails_are_everything() -> None:
    upper = tails.binomial_upper(3, 20, 0.2)

    assert upper + tails.binomial_lower(3, 20, 0.2) == pytest.approx(1)


def test_nothing_is_impossible() -> None:
    assert tails.student_upper(math.inf, 3) == tails.LEAST
    assert tails.binomial_upper(0, 0, 0.5) == 1
    assert tails.distance(0.0) > 10
    assert tails.binomial_upper(10**6, 10**6, 0.5) == tails.LEAST
