"""At which moments both sides are sampled."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.adapters.measures.metrics import MOST_MOMENTS, moments
from tests.unit.adapters.measures.about import NOW, about

STEP = 30


def seconds(after: float) -> dt.datetime:
    return NOW + dt.timedelta(seconds=after)


@pytest.mark.parametrize(
    ("since", "now", "expected"),
    [
        (0, 29, []),
        (0, 30, [30]),
        (0, 59, [30]),
        (0, 95, [30, 60, 90]),
        (1, 60, [60]),
        (1, 59, []),
        (-0.5, 30, [30]),
        (10, 5, []),
    ],
)
def test_a_window_lies_between_the_share_and_now(
    since: float, now: float, expected: list[int]
) -> None:
    experiment, control = moments(about(10, seconds(since)), seconds(now), STEP)

    assert experiment == control == [NOW.timestamp() + each for each in expected]


def test_once_all_traffic_has_moved_control_is_what_came_before() -> None:
    experiment, control = moments(about(100, seconds(10)), seconds(125), STEP)

    assert experiment == [NOW.timestamp() + each for each in (60, 90, 120)]
    assert control == [NOW.timestamp() + each for each in (-60, -30, 0)]


@given(
    since=st.floats(0, 10_000),
    length=st.floats(0, 100_000),
    step=st.integers(1, 600),
    share=st.sampled_from([5, 100]),
)
def test_sides_are_even_aligned_and_never_too_many(
    since: float, length: float, step: int, share: int
) -> None:
    began, now = seconds(since), seconds(since + length)

    experiment, control = moments(about(share, began), now, step)

    assert len(experiment) == len(control) <= MOST_MOMENTS
    assert all(at % step == 0 for at in (*experiment, *control))
    assert all(began.timestamp() + step <= at <= now.timestamp() for at in experiment)
    if share == 100:
        assert all(at <= began.timestamp() for at in control)
