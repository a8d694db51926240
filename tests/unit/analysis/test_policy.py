"""What an answer means: too early, no data, too few samples, one-sided, or judged."""

from typing import Any

import pytest

from fairlead.analysis import conditions, policy
from fairlead.analysis.conditions import Answered, Bounds, Phase, Silent, Unanswered
from fairlead.analysis.policy import Counts, Criterion
from fairlead.analysis.samples import Series
from fairlead.analysis.verdict import Label, NoData

CONFIG: dict[str, Any] = {
    "metrics": [{"name": "latency"}],
    "scoreThresholds": {"marginal": 50, "pass": 90},
}
EQUAL = {"latency": [1.0, 2.0, 3.0] * 5}
WORSE = {"latency": [10.0, 20.0, 30.0] * 5}
NONE: dict[str, list[float | None]] = {"latency": [None] * 15}


def series(control: dict[str, Any], experiment: dict[str, Any]) -> Series:
    return Series(control, experiment)


@pytest.mark.parametrize("no_data", list(NoData))
def test_silence_before_the_window_is_over_is_no_news_whatever_the_policy(no_data: NoData) -> None:
    rule = Criterion(Bounds(high=1.0), no_data)

    then = policy.of_answer(Silent("no series fits"), rule, window_over=False)

    assert (then.phase, then.reason) == (None, "no data yet: no series fits")


def test_an_early_number_counts() -> None:
    then = policy.of_answer(
        Answered(3.0), Criterion(Bounds(high=1.0), NoData.WAIT), window_over=False
    )

    assert (then.phase, then.value, then.limit) == (Phase.FAILED, 3.0, 1.0)


def test_what_could_not_be_asked_is_an_error_at_any_time() -> None:
    rule = Criterion(conditions.Conditions(), NoData.WAIT)

    assert policy.of_answer(Unanswered("502"), rule, window_over=False).phase is Phase.ERROR


def test_an_infinite_number_decides_and_is_not_kept() -> None:
    then = policy.of_answer(Answered(float("inf")), Criterion(Bounds(high=1.0), NoData.WAIT))

    assert (then.phase, then.value, then.limit) == (Phase.FAILED, None, 1.0)


@pytest.mark.parametrize("no_data", list(NoData))
def test_the_judge_waits_for_enough_moments_whatever_the_policy(no_data: NoData) -> None:
    found = policy.summarize(Series({"latency": [1.0] * 4}, {"latency": [None] * 4}), CONFIG)

    then = policy.of_comparison(found, CONFIG, no_data)

    assert found.counts == Counts(moments=4, needed=5, control=4, experiment=0)
    assert (then.phase, then.reason) == (None, "no data yet: 4 of 5 samples")


@pytest.mark.parametrize(
    ("no_data", "phase"),
    [
        (NoData.WAIT, None),
        (NoData.PASS, Phase.SUCCESSFUL),
        (NoData.FAIL, Phase.FAILED),
        (NoData.INCONCLUSIVE, Phase.INCONCLUSIVE),
    ],
)
@pytest.mark.parametrize("sides", [(NONE, EQUAL), (EQUAL, NONE), (NONE, NONE)])
def test_a_side_without_samples_follows_the_policy(
    sides: tuple[Any, Any], no_data: NoData, phase: Phase | None
) -> None:
    found = policy.summarize(series(*sides), CONFIG)

    assert policy.of_comparison(found, CONFIG, no_data).phase is phase


def test_a_policy_of_the_metric_goes_before_that_of_the_check() -> None:
    metric = {"name": "latency", "analysisConfigurations": {"canary": {"noData": "pass"}}}
    config = {**CONFIG, "metrics": [metric]}

    found = policy.summarize(series(EQUAL, NONE), config)

    assert policy.of_comparison(found, config, NoData.FAIL).phase is Phase.SUCCESSFUL


def test_a_comparison_keeps_the_numbers_behind_its_labels() -> None:
    found = policy.summarize(series(EQUAL, WORSE), CONFIG)

    (latency,) = found.metrics
    assert found.counts == Counts(moments=15, needed=5, control=15, experiment=15)
    assert (latency.label, latency.control, latency.experiment) == (Label.HIGH, 2.0, 20.0)
    then = policy.of_comparison(found, CONFIG, NoData.WAIT)
    assert (then.phase, then.value, then.limit) == (Phase.FAILED, 0.0, 90.0)
    assert "latency is High" in then.reason


def test_no_metric_at_all_is_nothing_to_compare() -> None:
    assert policy.summarize(Series({}, {}), CONFIG).counts == Counts(0, 5, 0, 0)
