"""What an object remembers of our writes."""

import dataclasses
import datetime as dt

import pytest

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes.routing import route_annotations
from fairlead.areas.rollouts.kubernetes.routing.provider import ORDER, DesiredRoute
from fairlead.traffic.routes import STANDBY, Affinity, Match, Route, Where, only_split
from fairlead.traffic.weights import giving

NOW = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
STICKY = Route(giving(10), joined=True, affinity=Affinity("stay"))


def test_a_mark_is_read_as_it_was_written() -> None:
    route = Route(joined=True, matches=(Match(Where.COOKIE, "a", "b"),), affinity=Affinity("c"))
    mark = route_annotations.RouteAnnotations(
        7, NOW, route, (6, 0), "r7", {"http.0": None, "http.1": 80}, "abc"
    )

    obj = {"metadata": {"annotations": route_annotations.written(mark)}}

    assert route_annotations.read(obj) == mark
    assert route_annotations.order(obj) == 7


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
    assert (
        route_annotations.read({"metadata": {"annotations": {route_annotations.ROUTE: text}}})
        is None
    )


@pytest.mark.parametrize("obj", [None, {}, {"metadata": {}}, {"metadata": {"annotations": None}}])
def test_an_object_without_annotations_has_no_mark(obj: dict[str, object] | None) -> None:
    assert route_annotations.read(obj) is None
    assert route_annotations.order(obj) == 0


def test_an_order_that_is_no_number_is_none() -> None:
    assert route_annotations.order({"metadata": {"annotations": {ORDER: "-1"}}}) == 0


def test_until_a_write_is_known_the_one_before_it_is_shown() -> None:
    first = route_annotations.next_mark(DesiredRoute(1, STANDBY, NOW), None)
    second = route_annotations.next_mark(DesiredRoute(2, only_split(10), NOW), first)

    assert route_annotations.settled(first, 2.0, NOW) == (None, 2.0)
    soon = NOW + dt.timedelta(seconds=0.5)
    assert route_annotations.settled(second, 2.0, soon) == (ObservedRoute(1, 0), 1.5)
    later = NOW + dt.timedelta(seconds=2)
    assert route_annotations.settled(second, 2.0, later) == (ObservedRoute(2, 10), 0.0)


def test_the_same_write_once_more_shows_what_was_before_it() -> None:
    first = route_annotations.next_mark(DesiredRoute(1, STANDBY, NOW), None)
    second = route_annotations.next_mark(DesiredRoute(2, only_split(10), NOW), first)

    again = route_annotations.next_mark(DesiredRoute(2, only_split(10), NOW), second)

    assert again.before == (1, 0)


def test_a_clock_that_was_set_back_does_not_stop_us() -> None:
    mark = route_annotations.RouteAnnotations(1, NOW, STANDBY)

    shown, again = route_annotations.settled(mark, 2.0, NOW - dt.timedelta(hours=1))

    assert (shown, again) == (ObservedRoute(1, 0), 0.0)


def test_the_cookie_stays_the_same_within_a_run_and_changes_with_the_next() -> None:
    more = dataclasses.replace(STICKY, split=giving(50))
    first = route_annotations.next_mark(DesiredRoute(3, STICKY, NOW), None)
    second = route_annotations.next_mark(DesiredRoute(4, more, NOW), first)
    without_canary = route_annotations.next_mark(DesiredRoute(5, STANDBY, NOW), second)
    next_run = route_annotations.next_mark(DesiredRoute(9, STICKY, NOW), without_canary)

    assert [one.token for one in (first, second, without_canary, next_run)] == [
        "r3",
        "r3",
        "",
        "r9",
    ]


def test_metadata_is_given_back_as_it_was() -> None:
    mark = route_annotations.written(route_annotations.RouteAnnotations(1, NOW))

    assert route_annotations.without({"metadata": {"name": "x", "annotations": mark}}) == {
        "name": "x"
    }
    theirs = {"metadata": {"annotations": {"a": "b", **mark}}}
    assert route_annotations.without(theirs) == {"annotations": {"a": "b"}}
