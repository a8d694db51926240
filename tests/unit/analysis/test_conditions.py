"""One measurement: conditions, bounds, no data and errors, with what is told."""

import math
from typing import Any

import pytest

from fairlead.analysis import conditions, verdict
from fairlead.analysis.conditions import Answered, Bounds, Conditions, Phase, Silent

SUCCESS = conditions.read("result[0] >= 0.95")
FAILURE = conditions.read("result[0] < 0.90")
NOTHING = Conditions()


@pytest.mark.parametrize(
    ("given", "value", "expected"),
    [
        (Conditions(success=SUCCESS), 0.97, Phase.SUCCESSFUL),
        (Conditions(success=SUCCESS), 0.92, Phase.FAILED),
        (Conditions(failure=FAILURE), 0.92, Phase.SUCCESSFUL),
        (Conditions(failure=FAILURE), 0.80, Phase.FAILED),
        (Conditions(SUCCESS, FAILURE), 0.97, Phase.SUCCESSFUL),
        (Conditions(SUCCESS, FAILURE), 0.92, Phase.INCONCLUSIVE),
        (Conditions(SUCCESS, FAILURE), 0.80, Phase.FAILED),
        (Conditions(SUCCESS, SUCCESS), 0.97, Phase.FAILED),
        (NOTHING, 0.1, Phase.SUCCESSFUL),
    ],
)
def test_success_and_failure(given: Conditions, value: float, expected: Phase) -> None:
    then = conditions.measure(Answered([value]), given)

    assert then is not None
    assert then.phase is expected


def test_a_measurement_tells_the_result_and_the_condition() -> None:
    then = conditions.measure(Answered([0.92]), Conditions(success=SUCCESS))

    assert then is not None
    assert then.reason == "result 0.92 does not meet result[0] >= 0.95"


@pytest.mark.parametrize(
    ("bounds", "value", "then"),
    [
        (Bounds(99, None), 99.0, (Phase.SUCCESSFUL, "result 99, limit 99", 99.0, 99)),
        (Bounds(99, None), 98.5, (Phase.FAILED, "result 98.5, limit 99", 98.5, 99)),
        (Bounds(None, 500), [400, 501], (Phase.FAILED, "result 501, limit 500", 501.0, 500)),
        (Bounds(None, 500), [9, 499], (Phase.SUCCESSFUL, "result 499, limit 500", 499.0, 500)),
        (Bounds(2, 5), 4, (Phase.SUCCESSFUL, "result 4, limits 2 to 5", 4.0, 5)),
        (Bounds(None, 500), "x", (Phase.ERROR, "limits need numbers, and the result is 'x'")),
        (Bounds(0, 1), True, (Phase.ERROR, "limits need numbers, and the result is True")),
        (Bounds(0, 1), math.inf, (Phase.FAILED, "result inf, limit 1", math.inf, 1)),
        (Bounds(), 3, (Phase.SUCCESSFUL, "result 3, no limit")),
    ],
)
def test_bounds(bounds: Bounds, value: Any, then: tuple[Any, ...]) -> None:
    assert conditions.measure(Answered(value), bounds) == conditions.Measurement(*then)


def test_a_number_is_told_with_its_name_and_its_unit() -> None:
    latency = conditions.MetricLabel("p99 latency", "ms")

    then = conditions.measure(Answered(529.0), Bounds(high=200), metric=latency)

    assert then is not None
    assert then.reason == "p99 latency 529 ms, limit 200 ms"


@pytest.mark.parametrize(
    ("condition", "value", "limit"),
    [
        ("result < 1", 3.0, 1.0),
        ("result[0] >= 0.95", [0.92], 0.95),
        ("result < 1 && result > 0", 3.0, None),
        ("len(result) < 2", [1.0, 2.0, 3.0], 2.0),
        ("result == 'up'", "down", None),
    ],
)
def test_a_condition_that_is_one_comparison_tells_its_limit(
    condition: str, value: Any, limit: float | None
) -> None:
    then = conditions.measure(Answered(value), Conditions(success=conditions.read(condition)))

    assert then is not None
    assert then.limit == limit


@pytest.mark.parametrize(
    "answer", [Silent(), Answered([]), Answered(None), Answered(math.nan), Answered([math.nan])]
)
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (verdict.NoData.WAIT, None),
        (verdict.NoData.PASS, Phase.SUCCESSFUL),
        (verdict.NoData.FAIL, Phase.FAILED),
        (verdict.NoData.INCONCLUSIVE, Phase.INCONCLUSIVE),
    ],
)
def test_no_data_is_a_policy(
    answer: conditions.Answer, policy: verdict.NoData, expected: Phase | None
) -> None:
    then = conditions.measure(answer, Conditions(success=SUCCESS), policy)

    assert (then.phase if then else None) is expected


def test_without_a_policy_the_condition_decides_about_no_data() -> None:
    empty = Conditions(success=conditions.read("len(result) == 0 || result[0] > 1"))
    unknown = Conditions(success=conditions.read("isNaN(result[0])"))

    silent = conditions.measure(Silent(), empty, no_data=None)
    nan = conditions.measure(Answered([math.nan]), unknown, no_data=None)
    bounded = conditions.measure(Silent(), Bounds(0, 1), no_data=None)

    assert silent is not None
    assert silent.phase is Phase.SUCCESSFUL
    assert nan is not None
    assert nan.phase is Phase.SUCCESSFUL
    assert bounded is not None
    assert bounded.phase is Phase.FAILED


def test_no_answer_is_an_error_and_not_a_failure() -> None:
    then = conditions.measure(conditions.Unanswered("connection refused"), NOTHING)

    assert then is not None
    assert then.phase is Phase.ERROR
    assert then.reason == "the metric could not be read: connection refused"


def test_a_condition_that_makes_no_sense_of_the_result_is_an_error() -> None:
    given = Conditions(success=conditions.read("result > 1"))

    then = conditions.measure(Answered([1.0, 2.0]), given)

    assert then is not None
    assert then.phase is Phase.ERROR
    assert "a list > a number makes no sense" in then.reason


def test_a_long_result_is_told_short() -> None:
    told = conditions.shown([1234567.0] * 1000)

    assert len(told) <= 81


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("result < 1", True),
        ("isNaN(result) or abs(result) > 3", True),
        ("default(result, 0) < 1", True),
        ("result[0] < 1", False),
        ("1 > 2 ? true : result[-1] == 0", False),
        ("all(result, {# < 0.5})", False),
        ("len(result) == 0 || sum(result) > 1", False),
        ("!(3 in result)", False),
        ("result.rate < 1", False),
    ],
)
def test_a_condition_shows_whether_it_is_about_one_number(source: str, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    read = conditions.read(source)

    assert conditions.one_number(Conditions(success=read)) is expected
    assert conditions.one_number(Conditions(failure=read)) is expected


def test_bounds_hold_for_every_number() -> None:
    assert not conditions.one_number(Bounds(0, 1))


def test_no_data_says_what_was_missing() -> None:
    then = conditions.measure(Silent("no series matches"), NOTHING, verdict.NoData.FAIL)

    assert then == conditions.Measurement(
        Phase.FAILED, "no data: no series matches; the policy is fail"
    )
