"""The picture of a run: its lines, thresholds, steps and verdicts, and the words for them."""

import dataclasses
import datetime as dt

import pytest

from fairlead.areas.rollouts import chart
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.history import Rule, RunMark, StepMark, Weight
from fairlead.areas.rollouts.measurements import CheckMark, CheckPoint, TrafficMark, TrafficPoint
from fairlead.checks.spec import SUCCESS_RATE

START = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
END = START + 100 * SECOND


def mark(check: str, value: float, limit: float, unit: str) -> CheckMark:
    points = (CheckPoint(30.0, 100.0, "Successful"), CheckPoint(50.0, value, "Failed"))
    return CheckMark(check, 1, "Failed", "", END, 2, 1, 1, value, limit, unit, None, points)


RUN = RunMark(
    *(3, "v3", "shop-3", "", START),
    stable="v2",
    stable_revision="shop-2",
    rules=(Rule("success", SUCCESS_RATE, False), Rule("queue", "", False)),
    steps=(StepMark(1, 10, START, START + 20 * SECOND),),
    weights=(Weight(START + 20 * SECOND, 10), Weight(START + 60 * SECOND, 0)),
    checks=(mark("success", 86.2, 99.0, "%"), mark("queue", 7.0, 5.0, "")),
    traffic=(
        TrafficMark(Slot.PRIMARY, 1, 260, 0, (TrafficPoint(50.0, 260, 0, 11.0),)),
        TrafficMark(Slot.BASELINE, 1, 30, 0, (TrafficPoint(50.0, 30, 0, 11.0),)),
        TrafficMark(Slot.CANARY, 1, 29, 4, (TrafficPoint(50.0, 29, 4, 12.0),)),
    ),
    ended=END,
    ending="RolledBack",
)


def row(run: RunMark, title: str) -> chart.Row:
    return next(each for each in chart.of(run, (), END).rows if each.title == title)


def test_each_version_has_its_line_and_its_own_numbers() -> None:
    lines = row(RUN, "Success rate").lines

    assert [(line.side, line.name, line.said) for line in lines] == [
        ("primary", "v2", "100 %, 0 of 260 failed"),
        ("canary", "v3", "86.2 %, 4 of 29 failed"),
        ("baseline", "v2 (baseline)", "100 %, 0 of 30 failed"),
    ]


def test_one_failure_of_many_is_not_called_all() -> None:
    canary = TrafficMark(Slot.CANARY, 1, 100_000, 1, (TrafficPoint(50.0, 100_000, 1, 12.0),))
    run = dataclasses.replace(RUN, traffic=(canary,))

    assert row(run, "Success rate").lines[0].said == "99.99 %, 1 of 100000 failed"


@pytest.mark.parametrize(
    ("value", "unit", "limit", "said"),
    [
        (98.96, "%", 99.0, "98.9 %"),
        (100 * 7 / 9, "%", 99.0, "77.7 %"),
        (0.29, "%", 1.0, "0.29 %"),
        (1.004, "%", 1.0, "1.004 %"),
        (500.4, "ms", 500.0, "500.4 ms"),
        (4.9812, "ms", 500.0, "4.98 ms"),
        (500.0, "ms", 500.0, "500 ms"),
        (0.05, "", None, "0.05"),
    ],
)
def test_no_number_reads_as_the_limit_that_it_breaks(
    value: float, unit: str, limit: float | None, said: str
) -> None:
    assert chart.number(value, unit, limit) == said


def test_the_threshold_is_drawn_where_its_value_lies() -> None:
    drawn = row(RUN, "Success rate")

    (limit,) = drawn.thresholds
    low, _, high = (y for y, _ in drawn.ticks)
    assert limit.said == "limit 99 %"
    assert limit.y is not None
    assert high < limit.y < low


def test_a_threshold_far_above_all_values_is_told_and_does_not_flatten_them() -> None:
    far = dataclasses.replace(RUN, checks=(mark("queue", 7.0, 1000.0, ""),))

    drawn = row(far, "queue")

    assert [(each.said, each.y) for each in drawn.thresholds] == [("limit 1000", None)]
    assert drawn.ticks[-1][1] == "100"


def test_verdicts_stand_at_their_time_and_value_with_a_sign_and_words() -> None:
    (verdict,) = row(RUN, "queue").marks

    assert (verdict.x, verdict.sign, verdict.tone) == (50.0, "✗", "bad")
    assert verdict.text == "queue failed at step 1, 7"


def test_a_check_that_asks_for_the_success_rate_is_drawn_with_the_versions() -> None:
    titles = [each.title for each in chart.of(RUN, (), END).rows]

    assert titles == ["Canary weight", "Success rate", "p99 latency", "Requests", "queue"]
    assert [each.text for each in row(RUN, "Success rate").marks] == [
        "success failed at step 1, 86.2 %"
    ]


def test_where_nobody_counts_requests_each_check_has_a_row() -> None:
    run = dataclasses.replace(RUN, traffic=())

    assert [each.title for each in chart.of(run, (), END).rows] == [
        "Canary weight",
        "success",
        "queue",
    ]


def test_the_words_of_a_row_tell_lines_thresholds_and_verdicts() -> None:
    assert row(RUN, "queue").label == "queue: v3 last 7; limit 5; queue failed at step 1, 7"


def test_steps_and_times_lie_along_the_run() -> None:
    drawn = chart.of(RUN, (), END)

    assert drawn.steps == ((20.0, "10 %"),)
    assert [text for _, text in drawn.times] == ["0 s", "25 s", "50 s", "1 min 15 s", "1 min 40 s"]


def test_the_weight_goes_up_and_down_in_steps() -> None:
    (line,) = row(RUN, "Canary weight").lines

    assert line.said == "up to 10 %"
    assert line.path.count("L") == 5


def test_a_line_is_broken_between_two_steps() -> None:
    again = TrafficMark(Slot.CANARY, 2, 50, 0, (TrafficPoint(90.0, 50, 0, 12.0),))
    run = dataclasses.replace(RUN, traffic=(*RUN.traffic, again))

    canary = next(line for line in row(run, "Success rate").lines if line.side == "canary")

    assert canary.path.count("M") == 2


def test_a_number_with_none_beside_it_is_a_dot() -> None:
    (primary, *_) = row(RUN, "Success rate").lines

    assert primary.dots == ((50.0, row(RUN, "Success rate").ticks[-1][0]),)
    assert row(RUN, "queue").lines[0].dots == ()


def test_a_step_that_was_left_at_once_has_no_label_under_the_next() -> None:
    soon = StepMark(2, 50, START, START + 25 * SECOND)
    run = dataclasses.replace(RUN, steps=(*RUN.steps, soon))

    assert chart.of(run, (), END).steps == ((20.0, ""), (25.0, "50 %"))


def test_a_run_without_numbers_has_no_rows_of_them() -> None:
    run = RunMark(1, "v2", "shop-2", "", START, stable="v1", stable_revision="shop-1")

    assert chart.of(run, (), END).rows == ()
