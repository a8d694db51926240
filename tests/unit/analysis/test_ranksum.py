"""The rank test beside slow and plain oracles."""

import itertools
import math
import statistics as oracle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.analysis import ranksum, statistics

VALUES = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
SIDE = st.lists(VALUES, min_size=1, max_size=12)
FEW = st.lists(st.integers(0, 4).map(float), min_size=2, max_size=12)


def plain_height(control: list[float], experiment: list[float], shift: float) -> float:
    """The statistic by its definition: average ranks, tie-corrected deviation."""
    shifted = [value - shift for value in experiment]
    every = sorted(shifted + control)
    ranks = [
        sum(other < value for other in every) + (every.count(value) + 1) / 2 for value in shifted
    ]
    n, m = len(experiment), len(control)
    lead = sum(ranks) - n * (n + 1) / 2 - n * m / 2
    ties = sum(len(list(run)) ** 3 - every.count(key) for key, run in itertools.groupby(every))
    sigma = math.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    if sigma == 0:
        raise ranksum.AllTiedError
    return (lead - 0.5 * ((lead > 0) - (lead < 0))) / sigma


def height_or_none(control: list[float], experiment: list[float], shift: float) -> float | None:
    try:
        return plain_height(control, experiment, shift)
    except ranksum.AllTiedError:
        return None


@given(SIDE, SIDE, st.lists(VALUES, min_size=1, max_size=30))
def test_the_statistic_is_the_plain_one_at_every_shift_in_any_order(
    control: list[float], experiment: list[float], shifts: list[float]
) -> None:
    staircase = ranksum._Staircase(control, experiment)

    for shift in shifts:
        expected = height_or_none(control, experiment, shift)
        if expected is not None:
            assert staircase(shift) == pytest.approx(expected, abs=1e-12)


@given(FEW, FEW)
def test_the_interval_of_tied_sides_is_that_of_the_plain_statistic(
    control: list[float], experiment: list[float]
) -> None:
    left, right = min(experiment) - max(control), max(experiment) - min(control)

    def bound(quantile: float) -> float:
        def height(shift: float) -> float:
            return plain_height(control, experiment, shift) - quantile

        if height(left) <= 0:
            return left
        return right if height(right) >= 0 else ranksum.brent(height, left, right)

    quantile = oracle.NormalDist().inv_cdf((1 - 0.98) / 2)
    try:
        expected = (bound(-quantile), bound(quantile))
    except ranksum.AllTiedError:
        return
    found = ranksum.shift_interval(control, experiment, 0.98)

    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_many_samples_take_the_narrow_way_and_stay_exact() -> None:
    control = [math.sin(number * 1.7) * 10 for number in range(80)]
    experiment = [math.cos(number * 2.3) * 10 + 1 for number in range(70)]
    staircase = ranksum._Staircase(control, experiment)

    for step in range(400):
        shift = 1 + math.sin(step * 12.9898) * 20 / (1 + step)
        assert staircase(shift) == plain_height(control, experiment, shift)
    assert staircase._window.pairs


@given(st.floats(1e-12, 1 - 1e-12))
def test_quantiles_are_those_of_the_standard_library(probability: float) -> None:
    expected = oracle.NormalDist().inv_cdf(probability)

    assert statistics.normal_quantile(probability) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0, -1.0, math.nan])
def test_there_is_no_quantile_outside_of_zero_and_one(probability: float) -> None:
    assert math.isnan(statistics.normal_quantile(probability))


@pytest.mark.parametrize("root", [-3.0, 0.0, 0.7, 5.0])
def test_brent_finds_a_root(root: float) -> None:
    found = ranksum.brent(lambda place: (root - place) ** 3, -4.0, 6.0)

    assert found == pytest.approx(root, abs=1e-1)
    assert ranksum.brent(lambda place: root - place, -4.0, 6.0) == pytest.approx(root, abs=1e-4)


@pytest.mark.parametrize(("left", "right"), [(0.0, 1.0), (-1.0, 0.0)])
def test_brent_takes_an_end_that_is_a_root(left: float, right: float) -> None:
    assert ranksum.brent(lambda place: -place, left, right) == 0.0


@given(SIDE, SIDE)
def test_common_language_counts_pairs(control: list[float], experiment: list[float]) -> None:
    pairs = list(itertools.product(experiment, control))
    won = sum((one > other) + (one == other) / 2 for one, other in pairs)

    assert statistics.common_language(control, experiment) == pytest.approx(won / len(pairs))


@given(st.lists(VALUES, min_size=2, max_size=30))
def test_mean_deviation_and_median_are_those_of_the_standard_library(values: list[float]) -> None:
    assert statistics.mean(values) == pytest.approx(oracle.fmean(values), rel=1e-9, abs=1e-9)
    assert statistics.standard_deviation(values) == pytest.approx(
        oracle.stdev(values), rel=1e-6, abs=1e-6
    )
    assert statistics.percentile(values, 50) == pytest.approx(oracle.median(values))


def test_nothing_has_no_mean_and_no_deviation() -> None:
    assert math.isnan(statistics.mean([]))
    assert math.isnan(statistics.standard_deviation([]))


@pytest.mark.parametrize(("successes", "trials"), [(0, 4), (2, 4), (4, 4), (9, 12)])
def test_the_mid_p_chance_is_the_sum_of_its_terms(successes: int, trials: int) -> None:
    exact = [math.comb(trials, k) * 0.3**k * 0.7 ** (trials - k) for k in range(trials + 1)]
    expected = exact[successes] / 2 + sum(exact[successes + 1 :])

    assert statistics.binomial_upper(successes, trials, 0.3) == pytest.approx(expected)


def test_the_chance_of_lying_past_all_of_control_is_combinatorial() -> None:
    expected = math.comb(10, 7) / math.comb(20, 7)

    assert statistics.exceedance(7, 10, 10) == pytest.approx(expected)
