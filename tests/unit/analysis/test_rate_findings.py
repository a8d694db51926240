"""What is said of counts and histograms: estimate, how sure, which look, and what it takes."""

from typing import Any

import pytest

from fairlead.analysis import classify, judge, looks, verdict
from fairlead.analysis.samples import Counted, Histogram

BENCH = judge.Bench(plan=looks.Plan(samples=30, every=3))


def counted(events: int, requests: int, moments: int = 30, *, failures: bool = False) -> Counted:
    return Counted((events,) * moments, (requests,) * moments, failures)


def rule(direction: str = "either", **effect: Any) -> classify.Rule:
    limits = classify.EffectLimits(**effect)
    return classify.Rule("errors", direction=classify.Direction(direction), effect=limits)


def test_a_tripled_rate_is_high_with_its_estimate_and_the_look_that_was_paid() -> None:
    then = judge.find(rule(), counted(9, 1800), counted(3, 200), BENCH)

    assert then.label is verdict.Label.HIGH
    assert then.reason.startswith(
        "90 of 6,000 requests counted against 270 of 54,000 of control: 2.2"
    )
    assert "look 10 of 10 planned" in then.reason
    assert then.interval is not None
    assert 0 < then.interval.low < then.interval.estimate < then.interval.high


def test_a_success_rate_falls_where_failures_rise() -> None:
    good, bad = counted(1, 200, failures=True), counted(20, 200, failures=True)

    then = judge.find(rule("decrease"), good, bad, BENCH)

    assert then.label is verdict.Label.LOW
    assert judge.find(rule("increase"), good, bad, BENCH).label is verdict.Label.PASS


def test_an_allowed_increase_holds_for_counts_too() -> None:
    sides = counted(9, 1800), counted(3, 200)

    assert judge.find(rule(allowed_increase=10.0), *sides, BENCH).label is verdict.Label.PASS


def test_so_few_requests_that_nobody_can_know_are_told_with_how_many_it_takes() -> None:
    then = judge.find(rule(), counted(2, 380), counted(0, 20), BENCH)

    assert (then.label, then.no_data) == (verdict.Label.NO_DATA, verdict.NoData.WAIT)
    assert then.reason.startswith("not enough requests yet: 600 so far, about ")
    assert " needed to see a doubling" in then.reason


def test_who_is_content_with_seeing_less_needs_fewer() -> None:
    few = counted(2, 200, moments=10)

    doubled = judge.find(rule(), few, few, judge.Bench())
    tenfold = judge.find(rule(detectable=10.0), few, few, judge.Bench())

    assert (doubled.label, tenfold.label) == (verdict.Label.NO_DATA, verdict.Label.PASS)


@pytest.mark.parametrize(
    ("control", "experiment", "told"),
    [
        (counted(0, 0), counted(1, 9), "no data on control"),
        (counted(0, 0), counted(0, 0), "no data on control and experiment"),
    ],
)
def test_no_request_is_no_data(control: Counted, experiment: Counted, told: str) -> None:
    assert judge.find(rule(), control, experiment, BENCH).reason == told


def histogram(*counts: int) -> Histogram:
    return Histogram((100.0, 250.0), (counts,) * 30)


def test_a_slower_tail_is_high_and_says_its_edge() -> None:
    then = judge.find(rule("increase"), histogram(900, 80, 20), histogram(80, 10, 10), BENCH)

    assert then.label is verdict.Label.HIGH
    assert "10% of 3,000 requests lie above 250, against 2% of 30,000 of control" in then.reason


def test_histograms_alike_pass_and_an_allowed_increase_holds() -> None:
    alike = judge.find(rule(), histogram(900, 80, 20), histogram(90, 8, 2), BENCH)
    allowed = judge.find(
        rule(allowed_increase=5.0), histogram(900, 80, 20), histogram(80, 10, 10), BENCH
    )

    assert (alike.label, allowed.label) == (verdict.Label.PASS, verdict.Label.PASS)


def test_histograms_without_a_request_have_no_data() -> None:
    then = judge.find(rule(), histogram(900, 80, 20), histogram(0, 0, 0), BENCH)

    assert (then.label, then.reason) == (verdict.Label.NO_DATA, "no data on experiment")
