"""Many measurements: the counting of Argo Rollouts (canary §3.2)."""

import datetime as dt

import pytest

from fairlead import errors
from fairlead.analysis import limits
from fairlead.analysis.conditions import Phase
from fairlead.analysis.limits import Limits, MetricStanding, Standing, Tally

MINUTE = dt.timedelta(minutes=1)
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
LETTERS = {
    "S": Phase.SUCCESSFUL,
    "F": Phase.FAILED,
    "I": Phase.INCONCLUSIVE,
    "E": Phase.ERROR,
}


def tally(letters: str) -> Tally:
    counted = Tally()
    for letter in letters:
        counted = counted.add(LETTERS[letter])
    return counted


def endless(**given: int) -> Limits:
    return Limits(interval=MINUTE, **given)  # type: ignore[arg-type] # numbers only


def times(count: int, **given: int) -> Limits:
    return Limits(count=count, interval=MINUTE, **given)  # type: ignore[arg-type] # numbers only


@pytest.mark.parametrize(
    ("given", "letters", "expected"),
    [
        (Limits(), "", "Pending"),
        (Limits(), "S", "Successful"),
        (Limits(), "F", "Failed"),
        (Limits(), "I", "Inconclusive"),
        (Limits(), "E", "Running"),
        (Limits(), "EEEE", "Running"),
        (Limits(), "EEEEE", "Error"),
        (Limits(), "EEEES", "Successful"),
        (times(3), "SS", "Running"),
        (times(3), "SSS", "Successful"),
        (times(3), "SEES", "Running"),
        (times(3), "SEESS", "Successful"),
        (times(3, failure_limit=1), "FSS", "Successful"),
        (times(3, failure_limit=1), "FF", "Failed"),
        (times(3, failure_limit=-1), "FFF", "Successful"),
        (times(3, inconclusive_limit=1), "ISS", "Successful"),
        (times(3, inconclusive_limit=1), "II", "Inconclusive"),
        (times(9, consecutive_error_limit=1), "EE", "Error"),
        (times(9, consecutive_error_limit=1), "ESESE", "Running"),
        (times(9), "FI", "Inconclusive"),
        (times(9, consecutive_error_limit=0), "FIE", "Error"),
        (times(9, consecutive_success_limit=3), "SSS", "Successful"),
        (times(9, failure_limit=5, consecutive_success_limit=3), "SSFSS", "Running"),
        (times(9, failure_limit=5, consecutive_success_limit=3), "SSESS", "Running"),
        (times(5, failure_limit=5, consecutive_success_limit=3), "SSFSS", "Inconclusive"),
        (times(5, failure_limit=-1, consecutive_success_limit=3), "SSFSS", "Failed"),
        (endless(), "S" * 100, "Running"),
    ],
)
def test_a_metric_stands(given: Limits, letters: str, expected: str) -> None:
    then = limits.stand(given, tally(letters))

    assert then.phase.value == expected
    assert then.reason


@pytest.mark.parametrize(
    ("letters", "expected"), [("", "Successful"), ("SSS", "Successful"), ("F", "Failed")]
)
def test_an_endless_metric_ends_well_unless_a_limit_is_broken(letters: str, expected: str) -> None:
    assert limits.stand(endless(), tally(letters), ending=True).phase.value == expected


def test_the_reason_tells_the_count_and_the_limit() -> None:
    assert limits.stand(times(5, failure_limit=1), tally("FSF")) == Standing(
        Phase.FAILED, "2 of 3 measurements failed, limit 1"
    )


@pytest.mark.parametrize(
    ("given", "letters", "expected"),
    [
        (Limits(initial_delay=MINUTE), "", START + MINUTE),
        (times(2), "S", START + 2 * MINUTE),
        (times(2), "SS", None),
        (times(2), "E", START + MINUTE + limits.RETRY_AFTER_ERROR),
        (Limits(), "E", START + MINUTE + limits.RETRY_AFTER_ERROR),
        (Limits(), "S", None),
        (endless(), "F", None),
        (endless(), "SSSS", START + 2 * MINUTE),
    ],
)
def test_the_next_measurement_is_due(
    given: Limits, letters: str, expected: dt.datetime | None
) -> None:
    measured = START + MINUTE if letters else None

    assert limits.next_due(given, tally(letters), START, measured) == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"count": 0}, "count below 1: 0"),
        ({"count": 2}, "count without an interval: 2"),
        ({"interval": dt.timedelta()}, "interval not above 0"),
        ({"initial_delay": -MINUTE}, "delay below 0"),
        ({"failure_limit": -2}, "failure limit too low: -2"),
        ({"inconclusive_limit": -1}, "inconclusive limit too low: -1"),
        ({"consecutive_error_limit": -1}, "consecutive error limit too low: -1"),
        ({"consecutive_success_limit": -1}, "consecutive success limit too low: -1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given: dict[str, object], problem: str) -> None:
    with pytest.raises(errors.Rejected, match=problem):
        Limits(**given)  # type: ignore[arg-type] # one field at a time


def metric(name: str, phase: str, *, dry_run: bool = False) -> MetricStanding:
    return MetricStanding(name, Standing(Phase(phase), "why"), dry_run)


@pytest.mark.parametrize(
    ("phases", "expected", "asked"),
    [
        (["Successful", "Successful"], "Successful", limits.Action.GO_ON),
        (["Successful", "Running"], "Running", None),
        (["Running", "Pending"], "Pending", None),
        (["Running", "Inconclusive"], "Inconclusive", limits.Action.PAUSE),
        (["Error", "Inconclusive"], "Error", limits.Action.ABORT),
        (["Error", "Failed", "Successful"], "Failed", limits.Action.ABORT),
    ],
)
def test_a_run_is_its_worst_metric(
    phases: list[str], expected: str, asked: limits.Action | None
) -> None:
    then = limits.conclude([metric(str(number), phase) for number, phase in enumerate(phases)])

    assert then.phase.value == expected
    assert limits.asked(then.phase) is asked


def test_a_dry_run_is_not_counted_and_the_worst_is_named() -> None:
    then = limits.conclude(
        [metric("slow", "Failed", dry_run=True), metric("errors", "Inconclusive")]
    )

    assert then == Standing(Phase.INCONCLUSIVE, "errors: why")
    assert limits.conclude([metric("slow", "Failed", dry_run=True)]).phase is Phase.SUCCESSFUL


def test_only_finished_measurements_are_counted() -> None:
    with pytest.raises(errors.Rejected, match="Running"):
        Tally().add(Phase.RUNNING)
