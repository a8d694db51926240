"""Whose requests a run's numbers are: those of its own versions, in its own time."""

import datetime as dt

from fairlead.areas.rollouts import run_samples
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.history import RunMark, StepMark
from fairlead.areas.rollouts.measurements import TrafficMark, TrafficPoint
from fairlead.areas.rollouts.run_samples import Total
from fairlead.areas.rollouts.traffic_stats import Point

START = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
LATER = START + 60 * SECOND
RUN = RunMark(3, "v3", "shop-3", "", START, stable="v2", stable_revision="shop-2")
RECORDED = RunMark(
    *(3, "v3", "shop-3", "", START),
    stable="v2",
    stable_revision="shop-2",
    steps=(StepMark(1, 10, START, START + 5 * SECOND),),
    traffic=(
        TrafficMark(Slot.PRIMARY, 1, 200, 0, (TrafficPoint(15.0, 200, 0, 12.0),)),
        TrafficMark(
            *(Slot.CANARY, 1, 29, 4),
            (TrafficPoint(10.0, 10, 0, 12.0), TrafficPoint(15.0, 29, 4, 14.0)),
        ),
    ),
)


def point(seconds: int, slot: Slot, revision: str, requests: int, failed: int = 0) -> Point:
    at = START + seconds * SECOND
    return Point(at, slot, revision, 50, requests, failed, 5.0, 9.0)


def test_a_version_has_its_own_requests_whatever_stood_in_its_slot_before() -> None:
    """The slot of the canary held version 2 a moment ago, and that never failed."""
    points = [
        point(-5, Slot.CANARY, "shop-2", 1000),
        point(1, Slot.CANARY, "shop-2", 300),
        point(2, Slot.PRIMARY, "shop-2", 100),
        point(2, Slot.CANARY, "shop-3", 29, failed=4),
    ]

    found = run_samples.of(RUN, points, LATER)

    assert found.totals == (
        Total(Slot.PRIMARY, "v2", 400, 0),
        Total(Slot.CANARY, "v3", 29, 4),
    )


def test_a_version_that_becomes_the_primary_stays_one_line() -> None:
    points = [
        point(1, Slot.CANARY, "shop-3", 10),
        point(2, Slot.PRIMARY, "shop-3", 30, failed=3),
        point(2, Slot.CANARY, "shop-3", 10, failed=1),
    ]

    (samples,) = run_samples.of(RUN, points, LATER).sides.values()

    assert [sample.seconds for sample in samples] == [1, 2]
    assert (samples[1].success, samples[1].rate) == (90.0, 40.0)


def test_the_baseline_is_a_side_of_its_own() -> None:
    points = [
        point(1, Slot.PRIMARY, "shop-2", 80),
        point(1, Slot.BASELINE, "shop-2", 10, failed=1),
        point(1, Slot.CANARY, "shop-3", 10),
    ]

    found = run_samples.of(RUN, points, LATER)

    assert [(each.side, each.version, each.requests) for each in found.totals] == [
        (Slot.PRIMARY, "v2", 80),
        (Slot.CANARY, "v3", 10),
        (Slot.BASELINE, "v2 (baseline)", 10),
    ]


def test_what_came_before_and_after_the_run_is_not_of_it() -> None:
    ended = RunMark(
        *(3, "v3", "shop-3", "", START),
        stable="v2",
        stable_revision="shop-2",
        ended=START + 10 * SECOND,
    )
    points = [point(at, Slot.PRIMARY, "shop-2", 1) for at in (-1, 1, 9, 11)]

    (total,) = run_samples.of(ended, points, LATER).totals

    assert total.requests == 2


def test_without_a_memory_of_the_run_its_recorded_rounds_are_shown() -> None:
    found = run_samples.of(RECORDED, (), LATER)

    assert found.by_round
    first, second, end = found.sides[Slot.CANARY]
    assert (first.seconds, first.success, first.rate) == (10.0, 100.0, 2.0)
    assert (round(second.success or 0, 1), second.rate) == (86.2, 19 / 5)
    assert end.success is None
    assert [(each.version, each.requests, each.failed) for each in found.totals] == [
        ("v2", 200, 0),
        ("v3", 29, 4),
    ]


def test_totals_are_what_was_recorded_so_that_a_restart_changes_none_of_them() -> None:
    """The moments may reach further than the last round did."""
    points = [
        point(0, Slot.PRIMARY, "shop-2", 1),
        *(point(at, Slot.CANARY, "shop-3", 10, failed=1) for at in range(1, 9)),
    ]

    live = run_samples.of(RECORDED, points, LATER)

    assert not live.by_round
    assert len(live.sides[Slot.CANARY]) == 8
    assert live.totals == run_samples.of(RECORDED, (), LATER).totals


def test_a_memory_that_begins_amid_the_run_does_not_stand_for_all_of_it() -> None:
    points = [point(40, Slot.CANARY, "shop-3", 10)]

    assert run_samples.of(RECORDED, points, LATER).by_round
    assert not run_samples.of(RUN, points, LATER).by_round


def test_a_point_is_of_the_run_of_its_time_and_version() -> None:
    before = RunMark(
        *(2, "v2", "shop-2", "", START - 60 * SECOND),
        stable="v1",
        stable_revision="shop-1",
        ended=START,
    )
    points = [
        point(-30, Slot.CANARY, "shop-2", 1),
        point(30, Slot.CANARY, "shop-3", 1),
        point(30, Slot.CANARY, "shop-1", 1),
    ]

    found = [run_samples.run_of(each, (RUN, before)) for each in points]

    assert found == [before, RUN, None]
    assert [run_samples.label_of(each.revision, (RUN, before)) for each in points] == [
        "v2",
        "v3",
        "v1",
    ]
