"""What is kept of a run's measurements: every count, and a bounded number of points."""

import datetime as dt

import msgspec

from fairlead.analysis.conditions import Phase
from fairlead.areas.rollouts import history, measurements
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.checks.spec import Finding

AT = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)


def good(n: int) -> Finding:
    return Finding("errors", Phase.SUCCESSFUL, "fine", n / 10, 99.0, "%")


def measured(rounds: int, most: int) -> tuple[measurements.Marks, measurements.Traffic]:
    checks: measurements.Marks = ()
    traffic: measurements.Traffic = ()
    for n in range(1, rounds + 1):
        checks = measurements.with_finding(checks, good(n), 1, (AT, float(n)))
        for slot in Slot:
            counted = SlotTraffic(slot, 10 * n, n, 20.0)
            traffic = measurements.with_traffic(traffic, counted, 1, float(n))
        checks, traffic = measurements.thinned(checks, traffic, most)
    return checks, traffic


def test_all_points_are_kept_while_they_are_few() -> None:
    (check,), (primary, *_) = measured(5, most=20)

    assert [point.seconds for point in check.points] == [1, 2, 3, 4, 5]
    assert [point.requests for point in primary.points] == [10, 20, 30, 40, 50]


def test_of_many_points_first_and_last_stay_and_no_count_is_lost() -> None:
    (check,), traffic = measured(1000, most=40)

    points = len(check.points) + sum(len(mark.points) for mark in traffic)
    assert 20 <= points <= 40
    assert (check.measured, check.points[0].seconds, check.points[-1].seconds) == (1000, 1, 1000)
    assert all((mark.requests, mark.failed) == (10_000, 1000) for mark in traffic)


def test_what_was_counted_before_a_restart_stays_counted() -> None:
    traffic: measurements.Traffic = ()
    for n, counted in enumerate((10, 25, 5, 8)):
        told = SlotTraffic(Slot.CANARY, counted, 1)
        traffic = measurements.with_traffic(traffic, told, 1, float(n))

    (mark,) = traffic
    assert (mark.requests, mark.failed) == (25 + 8, 1 + 1)


def test_each_step_counts_its_own_requests() -> None:
    traffic: measurements.Traffic = ()
    for step in (1, 2):
        told = SlotTraffic(Slot.CANARY, 10 * step, 0)
        traffic = measurements.with_traffic(traffic, told, step, float(step))

    assert [(mark.step, mark.requests) for mark in traffic] == [(1, 10), (2, 20)]


def test_a_round_without_an_answer_is_no_point_and_no_verdict() -> None:
    nothing = Finding("errors", None, "no data yet")

    (mark,) = measurements.with_finding((), nothing, 1, (AT, 1.0))

    assert (mark.measured, mark.points, mark.reason) == (0, (), "no data yet")


def test_the_points_of_ten_long_runs_take_less_than_32_kib() -> None:
    """As rows of a projection they are written with every burst of events."""
    checks, traffic = measured(1000, most=history.KEPT_POINTS)

    kept = [msgspec.to_builtins((checks, traffic))] * history.MOST_RUNS
    assert len(msgspec.json.encode(kept)) < 32 * 1024
