"""From a strategy to steps, and from a load to pods."""

import datetime as dt
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors
from fairlead.areas.rollouts.domain.plan import steps
from fairlead.areas.rollouts.domain.plan.spec import Group, Limiter, Spec
from fairlead.areas.rollouts.domain.plan.strategy import Kind, Pace, Scale, Strategy
from fairlead.areas.rollouts.domain.plan.windows import Window, next_opening
from fairlead.checks.spec import Check
from fairlead.traffic.routes import Affinity, Match, Where
from fairlead.values import Percent

MINUTE = dt.timedelta(minutes=1)
BETA = (Match(Where.COOKIE, "beta", "yes"),)


def weights(strategy: Strategy) -> list[int]:
    return [step.weight for step in steps.plan(strategy)]


def test_named_steps_are_taken_as_they_stand_and_end_in_all() -> None:
    strategy = Strategy(steps=tuple(Pace(Percent(n)) for n in (5, 20, 50)))

    assert weights(strategy) == [5, 20, 50, 100]


@pytest.mark.parametrize(
    ("size", "most", "expected"),
    [
        (20, 50, [20, 40, 50, 100]),
        (30, 60, [30, 60, 100]),
        (50, None, [50, 100]),
        (40, None, [40, 80, 100]),
        (100, None, [100]),
    ],
)
def test_even_steps_end_at_the_most_then_at_all(
    size: int, most: int | None, expected: list[int]
) -> None:
    assert weights(Strategy(step_weight=size, max_weight=most)) == expected


def test_without_any_request_steps_are_of_ten_up_to_half() -> None:
    assert weights(Strategy()) == [10, 20, 30, 40, 50, 100]


def test_a_mirrored_canary_sees_copies_before_its_first_weight() -> None:
    first, *_ = steps.plan(Strategy(mirror=Percent(30), step_weight=50))

    assert (first.weight, first.route.mirror, first.load) == (0, 30, 30)


def test_blue_green_previews_at_full_scale_switches_and_bakes() -> None:
    strategy = Strategy(kind=Kind.BLUE_GREEN, pause=MINUTE, approve=True, bake=5 * MINUTE)

    preview, full = steps.plan(strategy)

    assert (preview.weight, preview.load, preview.approve, preview.pause) == (0, 100, True, MINUTE)
    assert preview.route.joined
    assert (full.weight, full.pause, full.approve) == (100, 5 * MINUTE, False)


def test_an_a_b_test_sends_only_matching_requests() -> None:
    strategy = Strategy(kind=Kind.AB, matches=BETA, affinity=Affinity("who"))

    chosen, full = steps.plan(strategy)

    assert (chosen.weight, chosen.route.matches) == (0, BETA)
    assert full.route.matches == ()
    assert full.route.affinity == Affinity("who")


@pytest.mark.parametrize(
    ("scale", "load", "replicas", "expected"),
    [
        (Scale(), 10, 10, 1),
        (Scale(), 11, 10, 2),
        (Scale(), 50, 3, 2),
        (Scale(), 1, 1, 1),
        (Scale(), 0, 10, 1),
        (Scale(), 100, 7, 7),
        (Scale(2), 10, 30, 2),
        # All traffic on two pods of thirty would be a failure of ours.
        (Scale(2), 100, 30, 30),
    ],
)
def test_pods_follow_the_load_or_are_fixed_until_all_traffic_comes(
    scale: Scale, load: int, replicas: int, expected: int
) -> None:
    assert steps.pods(scale, load, replicas) == expected


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 50))
def test_plans_only_rise_and_pods_never_fall(size: int, most: int, replicas: int) -> None:
    plan = steps.plan(Strategy(step_weight=size, max_weight=most))
    counts = [steps.pods(Scale(), step.load, replicas) for step in plan]

    assert [step.weight for step in plan] == sorted(step.weight for step in plan)
    assert counts == sorted(counts)
    assert plan[-1].weight == 100


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Strategy(step_weight=10, steps=(Pace(Percent(5)),)), "both steps and stepWeight"),
        (lambda: Strategy(max_weight=10), "maxWeight without stepWeight"),
        (lambda: Strategy(step_weight=0), "weight outside 1-100: 0"),
        (lambda: Strategy(step_weight=10, max_weight=101), "weight outside 1-100: 101"),
        (lambda: Strategy(steps=(Pace(Percent(101)),)), "percent outside 0-100: 101"),
        (lambda: Strategy(steps=(Pace(Percent(9)), Pace(Percent(5)))), "weights of steps go down"),
        (lambda: Strategy(promotion=(Percent(5), Percent(9))), "promotion weights go up"),
        (lambda: Strategy(kind=Kind.AB), "without a match"),
        (lambda: Strategy(matches=BETA), "matches are only for kind ab"),
        (
            lambda: Strategy(kind=Kind.BLUE_GREEN, step_weight=5),
            "weight steps are only for kind canary",
        ),
        (lambda: Strategy(pause=-MINUTE), "negative duration"),
        (lambda: Scale(0), "fixed scale below 1"),
        (lambda: Spec(checks=(Check("x"), Check("x"))), "duplicate check names: x"),
        (lambda: Spec(deadline=dt.timedelta()), "deadline or patience"),
        (lambda: Spec(keep=0), "kept revisions below 1"),
        (lambda: Group("g", ("a", "a")), "duplicate"),
        (lambda: Group("a b", ("a",)), "invalid group name"),
        (lambda: Limiter("shop", 0), "cap below 1"),
        (lambda: Window(days=("monday",)), "not days of a week: monday"),
        (lambda: Window(zone="Mars/Base"), "no such time zone"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(errors.Rejected, match=message) as caught:
        make()

    assert caught.value.hint


WORKDAYS = Window(("mon", "tue", "wed", "thu", "fri"), dt.time(9), dt.time(17), "Europe/Berlin")
NIGHT = Window(("sat",), dt.time(22), dt.time(4))


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2030-01-01T10:00", None),
        ("2030-01-01T07:59", "2030-01-01T08:00"),
        ("2030-01-01T16:00", "2030-01-02T08:00"),
        # Friday evening: Monday morning is next. In July Berlin is two hours ahead of UTC.
        ("2030-01-04T18:00", "2030-01-07T08:00"),
        ("2030-07-05T18:00", "2030-07-08T07:00"),
    ],
)
def test_a_window_opens_by_its_own_time_zone(now: str, opens: str | None) -> None:
    assert opening([WORKDAYS], now) == opens


def test_a_window_may_pass_midnight_and_windows_add_up() -> None:
    assert opening([NIGHT], "2030-01-06T03:00") is None
    assert opening([NIGHT], "2030-01-06T05:00") == "2030-01-12T22:00"
    assert opening([NIGHT, WORKDAYS], "2030-01-06T05:00") == "2030-01-07T08:00"
    assert opening([], "2030-01-06T05:00") is None


def test_a_window_is_read_where_the_machine_has_no_time_zones() -> None:
    read = (
        "import datetime as dt, zoneinfo\n"
        "from fairlead.areas.rollouts.domain.plan.windows import Window, next_opening\n"
        "window = Window(begins=dt.time(9), ends=dt.time(17), zone='Europe/Berlin')\n"
        "assert zoneinfo.TZPATH == ()\n"
        "print(next_opening([window], dt.datetime(2030, 7, 1, 2, tzinfo=dt.UTC)))\n"
    )

    # An empty path hides the system's zones, as in an image that has none.
    bare = {**os.environ, "PYTHONTZPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", read], env=bare, capture_output=True, text=True, check=False
    )

    assert done.stdout == "2030-07-01 07:00:00+00:00\n", done.stderr


def opening(windows: list[Window], now: str) -> str | None:
    found = next_opening(windows, dt.datetime.fromisoformat(now).replace(tzinfo=dt.UTC))
    return found.strftime("%Y-%m-%dT%H:%M") if found else None
