"""What an object remembers of our writes."""

import datetime as dt

import pytest

from fairlead.adapters.canaries import marks
from fairlead.adapters.canaries.provider import ORDER, Wanted
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.traffic.routes import (
    STANDBY,
    Affinity,
    Match,
    Route,
    Where,
    only_split,
)
from fairlead.domain.traffic.weights import giving

NOW = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
STICKY = Route(giving(10), joined=True, affinity=Affinity("stay"))


def test_a_mark_is_read_as_it_was_written() -> None:
    route = Route(joined=True, matches=(Match(Where.COOKIE, "a", "b"),), affinity=Affinity("c"))
    mark = marks.Mark(7, NOW, route, (6, 0), "r7", {"http.0": None, "http.1": 80}, "abc")

    obj = {"metadata": {"annotations": marks.written(mark)}}

    assert marks.read(obj) == mark
    assert marks.order(obj) == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"order": 1}',
        '{"order": 1, "at": "2030-01-01T00:00:00"}',
        '{"order": 1, "at": "2030-01-01T00:00:00Z", "route": {"split": {"primary": 1}}}',
        '{"order": 1, "at": "2030-01-01T00:00:00Z", "route": {"mirror": 101}}',
    ],
)
def test_a_mark_that_somebody_wrote_into_is_none(text: str) -> None:
    assert marks.read({"metadata": {"annotations": {marks.ROUTE: text}}}) is None


@pytest.mark.parametrize("obj", [None, {}, {"metadata": {}}, {"metadata": {"annotations": None}}])
def test_an_object_without_annotations_has_no_mark(obj: dict[str, object] | None) -> None:
    assert marks.read(obj) is None
    assert marks.order(obj) == 0


def test_an_order_that_is_no_number_is_none() -> None:
    assert marks.order({"metadata": {"annotations": {ORDER: "-1"}}}) == 0


def test_until_a_write_is_known_the_one_before_it_is_shown() -> None:
    first = marks.next_mark(Wanted(1, STANDBY, NOW), None)
    second = marks.next_mark(Wanted(2, only_split(10), NOW), first)

    assert marks.settled(first, 2.0, NOW) == (None, 2.0)
    soon = NOW + dt.timedelta(seconds=0.5)
    assert marks.settled(second, 2.0, soon) == (Shown(1, 0), 1.5)
    later = NOW + dt.timedelta(seconds=2)
    assert marks.settled(second, 2.0, later) == (Shown(2, 10), 0.0)


def test_the_same_write_once_more_shows_what_was_before_it() -> None:
    first = marks.next_mark(Wanted(1, STANDBY, NOW), None)
    second = marks.next_mark(Wanted(2, only_split(10), NOW), first)

    again = marks.next_mark(Wanted(2, only_split(10), NOW), second)

    assert again.before == (1, 0)


def test_a_clock_that_was_set_back_does_not_stop_us() -> None:
    mark = marks.Mark(1, NOW, STANDBY)

    shown, again = marks.settled(mark, 2.0, NOW - dt.timedelta(hours=1))

    assert (shown, again) == (Shown(1, 0), 0.0)


def test_the_cookie_stays_the_same_within_a_run_and_changes_with_the_next() -> None:
    first = marks.next_mark(Wanted(3, STICKY, NOW), None)
    second = marks.next_mark(Wanted(4, STICKY.with_share(50), NOW), first)
    home = marks.next_mark(Wanted(5, STANDBY, NOW), second)
    next_run = marks.next_mark(Wanted(9, STICKY, NOW), home)

    assert [one.token for one in (first, second, home, next_run)] == ["r3", "r3", "", "r9"]


def test_metadata_is_given_back_as_it_was() -> None:
    mark = marks.written(marks.Mark(1, NOW))

    assert marks.without({"metadata": {"name": "x", "annotations": mark}}) == {"name": "x"}
    theirs = {"metadata": {"annotations": {"a": "b", **mark}}}
    assert marks.without(theirs) == {"annotations": {"a": "b"}}
