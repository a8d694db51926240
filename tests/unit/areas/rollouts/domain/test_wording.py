"""How times read in a sentence."""

import datetime as dt

import pytest

from fairlead.areas.rollouts.domain import wording

AT = dt.datetime(2026, 3, 1, 12, 3, 59, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (dt.timedelta(milliseconds=10), "10 ms"),
        (dt.timedelta(seconds=6), "6 s"),
        (dt.timedelta(minutes=10), "10 min"),
        (dt.timedelta(hours=1, minutes=30), "1 h 30 min"),
        (dt.timedelta(days=2, seconds=5), "2 d 5 s"),
    ],
)
def test_a_length_of_time_carries_its_units(length: dt.timedelta, expected: str) -> None:
    assert wording.span(length) == expected


def test_a_moment_carries_its_zone() -> None:
    assert wording.clock(AT) == "12:03"
    assert wording.moment(AT) == "2026-03-01 12:03 UTC"


def test_an_end_on_the_same_day_is_told_by_its_clock() -> None:
    assert wording.until(AT + dt.timedelta(minutes=5), AT) == "12:08"
    assert wording.until(AT + dt.timedelta(seconds=30), AT) == "12:04:29"
    assert wording.until(AT + dt.timedelta(hours=20), AT) == "2026-03-02 08:03 UTC"
