"""Gateway API: what counts as shown, hands of others, orders, and what stands in the way."""

from collections.abc import Callable

import pytest

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes.routing.provider import DesiredRoute, Object
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, only_split
from tests.unit.areas.rollouts.kubernetes.object_server import NOW, ObjectServer
from tests.unit.areas.rollouts.kubernetes.providers.gateway_api_site import (
    MINE,
    PARENTS,
    SIDE,
    WEB,
    adopted,
    own,
    parent,
    ref,
    take_in,
    weights,
)

# --- what is shown --------------------------------------------------------------------------


def test_nothing_of_ours_is_shown_before_we_came() -> None:
    assert own().shown() == (None, 0.0)
    assert adopted().shown() == (None, 0.0)


@pytest.mark.parametrize("make", [own, adopted])
def test_a_write_is_shown_once_taken_in_and_a_moment_old(make: Callable[[], ObjectServer]) -> None:
    server = make()
    server.route(STANDBY)
    take_in(server)
    assert server.shown(after=5) == (ObservedRoute(1, 0), 0.0)

    server.route(only_split(10))

    assert server.shown(after=5) == (ObservedRoute(1, 0), 1.0)
    take_in(server)
    assert server.shown() == (ObservedRoute(2, 10), 0.0)


def test_a_status_of_the_moment_still_waits_for_the_delay() -> None:
    server = own(delay=0.5)
    server.route(STANDBY)
    take_in(server)

    assert server.shown() == (None, 0.5)
    assert server.shown(after=0.5) == (ObservedRoute(1, 0), 0.0)


@pytest.mark.parametrize(
    ("parents", "shown"),
    [
        ([], None),
        ([parent("a", 1)], 1),
        ([parent("a", 0)], None),
        ([parent("a", 1, accepted="False")], None),
        ([parent("a", 1, resolved="False")], None),
        ([parent("a", 1), parent("b", 1)], 1),
        ([parent("a", 1), parent("b", 0)], None),
        ([parent("a", 1), parent("b", 1, resolved="False")], None),
        # A gateway that refuses the route does not carry it.
        ([parent("a", 1), parent("b", 1, accepted="False")], 1),
        ([parent("a", 1), {"controllerName": "policy", "conditions": []}], 1),
    ],
)
def test_every_gateway_that_carries_the_route_must_have_taken_it_in(
    parents: list[Object], shown: int | None
) -> None:
    server = own()
    server.route(PRIMARY_ONLY)
    take_in(server)

    server.found[MINE]["status"] = {"parents": parents}

    assert server.shown(after=5)[0] == (ObservedRoute(1, 0) if shown else None)


def test_a_gateway_that_is_gone_is_not_waited_for_forever() -> None:
    server = own()
    server.route(PRIMARY_ONLY)
    take_in(server)
    server.found[MINE]["status"] = {"parents": [parent("a", 1), parent("gone", 0)]}

    assert server.shown(after=59)[0] is None
    assert server.shown(after=2)[0] == ObservedRoute(1, 0)


def test_the_route_beside_must_be_taken_in_as_well() -> None:
    server = own()
    server.route(STANDBY)
    take_in(server)

    del server.found[SIDE]["status"]

    assert server.shown(after=5) == (None, 1.0)


# --- hands of others, and orders ------------------------------------------------------------


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize(("make", "rule"), [(own, 0), (adopted, 1)])
def test_a_weight_set_by_hand_is_seen_and_put_back(
    make: Callable[[], ObjectServer], rule: int
) -> None:
    server = make()
    main = server.provider.refs(server.site)[0]
    server.route(only_split(10))

    path = f"/spec/rules/{rule}/backendRefs/1/weight"
    server.edit(main, {"op": "replace", "path": path, "value": 90})

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert (shown.order, shown.weight) == (1, 50)
    assert "weight" in shown.drift
    server.route(only_split(10))
    take_in(server)
    assert weights(server, main, rule) == {"shop": 90, "shop-canary": 10}
    assert server.shown(after=5) == (ObservedRoute(2, 10), 0.0)


def test_the_route_beside_is_made_again_when_somebody_deletes_it() -> None:
    server = own()
    server.route(only_split(10))

    del server.found[SIDE]

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert shown.drift
    server.route(only_split(10))
    assert SIDE in server.found


def test_a_late_write_of_a_lower_number_changes_nothing() -> None:
    server = adopted()
    server.route(only_split(10), 5)

    assert server.route(only_split(50), 4) == ()


def test_an_edit_of_what_is_not_ours_is_no_drift() -> None:
    server = adopted()
    server.route(only_split(10))

    server.edit(WEB, {"op": "replace", "path": "/spec/rules/1/timeouts/request", "value": "9s"})
    take_in(server)

    assert server.shown(after=5) == (ObservedRoute(1, 10), 0.0)


# --- what stands in the way -----------------------------------------------------------------


@pytest.mark.requirement("canary R1", "canary R8")
@pytest.mark.parametrize(
    ("route", "path"),
    [
        (None, "route"),
        ("nonsense", "route"),
        ({}, "route.parentRefs"),
        ({"parentRefs": []}, "route.parentRefs"),
        ({"parentRefs": PARENTS, "rules": {}}, "route.rules"),
        ({"parentRefs": PARENTS, "rules": [{"matches": "x"}]}, "route.rules[0].matches"),
        ({"parentRefs": PARENTS, "rules": [{"backendRefs": [ref("x")]}]}, "route.rules"),
        (
            {"parentRefs": PARENTS, "rules": [{"backendRefs": [ref("shop", 1), ref("x", 1)]}]},
            "route.rules[0].backendRefs",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_its_path(route: object, path: str) -> None:
    server = own(route=route)

    problems = server.provider.problems(server.site, {})

    assert [where for where, _ in problems] == [path]


def test_what_is_named_must_be_there() -> None:
    server = adopted()

    assert server.provider.problems(server.site, server.found) == ()
    assert server.provider.problems(server.site, {}) == (
        ("routeName", "no such HTTPRoute in this namespace: web"),
    )
    assert server.provider.writes(server.site, _wanted(), {}) == ()


def _wanted() -> DesiredRoute:
    return DesiredRoute(1, STANDBY, NOW)
