"""Requests past the edges of a histogram."""

import pytest

from fairlead.analysis import histogram_test
from fairlead.analysis.samples import Counted, Histogram

EDGES = (10.0, 100.0, 1000.0)


def histogram(*counts: int, moments: int = 5) -> Histogram:
    return Histogram(EDGES, (counts,) * moments)


def test_each_asked_edge_is_a_count_with_its_requests() -> None:
    then = histogram_test.test(histogram(50, 40, 9, 1), histogram(50, 30, 19, 1))

    assert [each.edge for each in then] == [10, 100, 1000]
    assert (then[1].found.events, then[1].found.requests) == (100, 500)
    assert then[1].found.is_higher
    assert then[1].found.chance < 0.001 < then[0].found.chance


def test_an_edge_that_nobody_passes_is_not_asked() -> None:
    assert [
        each.edge for each in histogram_test.test(histogram(5, 5, 0, 0), histogram(5, 5, 0, 0))
    ] == [10]
    assert histogram_test.test(histogram(0, 0, 0, 0), histogram(0, 0, 0, 0)) == []


def test_what_lies_past_an_edge() -> None:
    assert histogram_test.past(histogram(1, 2, 3, 4, moments=2), 1) == Counted((7, 7), (10, 10))


def test_the_mean_is_that_of_the_middles() -> None:
    assert histogram_test.mean(histogram(1, 1, 0, 0)) == pytest.approx((5 + 55) / 2)
    assert histogram_test.mean(histogram(0, 0, 0, 0)) is None
