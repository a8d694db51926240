"""Times that come again: by the calendar, by the clock of a place, and by what makes no sense."""

import datetime as dt
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fairlead import errors
from fairlead.engine import recurrence


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"{text}+00:00")


def after(cron: str, zone: str, start: str, count: int = 1) -> list[str]:
    rule, moment, found = recurrence.parse(cron, zone), utc(start), list[str]()
    for _ in range(count):
        following = rule.after(moment)
        assert following is not None
        moment = following
        found.append(f"{moment:%Y-%m-%dT%H:%M}")
    return found


@pytest.mark.parametrize(
    ("cron", "start", "expected"),
    [
        ("30 2 * * *", "2026-03-01T02:29", "2026-03-01T02:30"),
        ("30 2 * * *", "2026-03-01T02:30", "2026-03-02T02:30"),
        ("*/15 * * * *", "2026-03-01T02:31", "2026-03-01T02:45"),
        ("5/20 8-10/2 * * *", "2026-03-01T08:46", "2026-03-01T10:05"),
        ("0 9 * * mon-fri", "2026-03-06T09:00", "2026-03-09T09:00"),
        ("0 9 * * 7", "2026-03-06T09:00", "2026-03-08T09:00"),
        ("0 0 1,15 jan,jul *", "2026-01-15T00:00", "2026-07-01T00:00"),
        # Both kinds of day: one of them is enough, as in every cron.
        ("0 0 13 * fri", "2026-03-01T00:00", "2026-03-06T00:00"),
        ("0 0 13 * */1", "2026-03-01T00:00", "2026-03-13T00:00"),
        # Eight years without it lie around a century that has no leap day.
        ("0 0 29 2 *", "2096-03-01T00:00", "2104-02-29T00:00"),
    ],
)
def test_the_next_time_is_found(cron: str, start: str, expected: str) -> None:
    assert after(cron, "UTC", start) == [expected]


def test_a_time_that_a_day_does_not_have_is_what_its_clock_would_have_shown() -> None:
    # New York goes from 02:00 to 03:00 on the 8th of March 2026: 02:30 is 03:30 there.
    found = after("30 2 * * *", "America/New_York", "2026-03-07T08:00", 2)

    assert found == ["2026-03-08T07:30", "2026-03-09T06:30"]


def test_a_time_that_a_day_has_twice_is_its_first() -> None:
    # And back from 02:00 to 01:00 on the 1st of November.
    found = after("30 1 * * *", "America/New_York", "2026-11-01T00:00", 2)

    assert found == ["2026-11-01T05:30", "2026-11-02T06:30"]


@pytest.mark.parametrize("start", ["2026-03-08T05:50", "2026-11-01T04:50"])
def test_a_line_for_every_hour_goes_by_hours_as_they_pass(start: str) -> None:
    found = after("0 * * * *", "America/New_York", start, 5)

    moments = [utc(each) for each in found]
    assert [later - earlier for earlier, later in itertools.pairwise(moments)] == [
        dt.timedelta(hours=1)
    ] * 4


def test_a_change_of_half_an_hour_doubles_and_drops_nothing() -> None:
    # Lord Howe Island goes from 02:00 to 02:30 on the 4th of October 2026 (15:30 UTC before).
    found = after("*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00", 6)

    assert found == [f"2026-10-03T{each}" for each in ("15:15", "15:30", "15:45", "16:00")] + [
        "2026-10-03T16:15",
        "2026-10-03T16:30",
    ]


def test_the_newest_of_many_times_are_found_however_long_it_was() -> None:
    rule = recurrence.parse("* * * * *", "Europe/Berlin")

    found = rule.between(utc("1990-01-01T00:00"), utc("2026-01-01T00:00"), 3)

    assert [f"{each:%H:%M}" for each in found] == ["23:58", "23:59", "00:00"]


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [
        ("* * * *", "UTC", "not five fields"),
        ("60 * * * *", "UTC", "not a minute: 60"),
        ("* 5-3 * * *", "UTC", "not a hour: 5-3"),
        ("* * 0 * *", "UTC", "not a day of month"),
        ("* * * foo *", "UTC", "not a month: foo"),
        ("*/0 * * * *", "UTC", "not a minute"),
        ("*-5 * * * *", "UTC", "not a minute"),
        ("1- * * * *", "UTC", "not a minute"),
        ("1,, * * * *", "UTC", "not a minute"),
        ("٣ * * * *", "UTC", "not a minute"),
        ("0 0 31 2 *", "UTC", "this time never comes"),
        ("0 0 * * *", "Mars/Olympus", "no such time zone"),
        ("0 0 * * *", "../../etc/passwd", "no such time zone"),
        ("0 0 * * *", "", "no such time zone"),
    ],
)
def test_what_makes_no_sense_is_refused(cron: str, zone: str, said: str) -> None:
    with pytest.raises(errors.Rejected, match=said) as refused:
        recurrence.parse(cron, zone)

    assert refused.value.hint


@given(
    some.sampled_from(["17 * * * *", "30 2 * * *", "0 0 1 * *", "*/7 1-4 * * sun"]),
    some.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    some.integers(0, 10 * 366 * 24 * 60),
)
def test_both_ways_to_ask_agree(cron: str, zone: str, minutes: int) -> None:
    start = utc("2020-01-01T00:00") + dt.timedelta(minutes=minutes)
    rule, moment, told = recurrence.parse(cron, zone), start, list[dt.datetime]()
    for _ in range(5):
        following = rule.after(moment)
        assert following is not None
        assert following > moment
        moment = following
        told.append(moment)

    assert rule.between(start, told[-1], 10) == told
