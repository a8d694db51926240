"""Gateway API: what counts as shown, hands of others, orders, and what stands in the way."""

from collections.abc import Callable

import pytest

from fairlead.adapters.canaries.provider import Object, Wanted
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.traffic.routes import (
    AT_HOME,
    STANDBY,
    only_split,
)
from tests.unit.adapters.canaries.hands import NOW, Hands
from tests.unit.adapters.gateway_api_site import (
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
def test_a_write_is_shown_once_taken_in_and_a_moment_old(make: Callable[[], Hands]) -> None:
    hands = make()
    hands.route(STANDBY)
    take_in(hands)
    assert hands.shown(after=5) == (Shown(1, 0), 0.0)

    hands.route(only_split(10))

    assert hands.shown(after=5) == (Shown(1, 0), 1.0)
    take_in(hands)
    assert hands.shown() == (Shown(2, 10), 0.0)


def test_a_status_of_the_moment_still_waits_for_the_delay() -> None:
    hands = own(delay=0.5)
    hands.route(STANDBY)
    take_in(hands)

    assert hands.shown() == (None, 0.5)
    assert hands.shown(after=0.5) == (Shown(1, 0), 0.0)


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
    hands = own()
    hands.route(AT_HOME)
    take_in(hands)

    hands.found[MINE]["status"] = {"parents": parents}

    assert hands.shown(after=5)[0] == (Shown(1, 0) if shown else None)


def test_a_gateway_that_is_gone_is_not_waited_for_forever() -> None:
    hands = own()
    hands.route(AT_HOME)
    take_in(hands)
    hands.found[MINE]["status"] = {"parents": [parent("a", 1), parent("gone", 0)]}

    assert hands.shown(after=59)[0] is None
    assert hands.shown(after=2)[0] == Shown(1, 0)


def test_the_route_beside_must_be_taken_in_as_well() -> None:
    hands = own()
    hands.route(STANDBY)
    take_in(hands)

    del hands.found[SIDE]["status"]

    assert hands.shown(after=5) == (None, 1.0)


# --- hands of others, and orders ------------------------------------------------------------


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize(("make", "rule"), [(own, 0), (adopted, 1)])
def test_a_weight_set_by_hand_is_seen_and_put_back(make: Callable[[], Hands], rule: int) -> None:
    hands = make()
    main = hands.provider.refs(hands.site)[0]
    hands.route(only_split(10))

    path = f"/spec/rules/{rule}/backendRefs/1/weight"
    hands.edit(main, {"op": "replace", "path": path, "value": 90})

    shown, _ = hands.shown(after=5)
    assert shown is not None
    assert (shown.order, shown.share) == (1, 50)
    assert "weight" in shown.drift
    hands.route(only_split(10))
    take_in(hands)
    assert weights(hands, main, rule) == {"shop": 90, "shop-canary": 10}
    assert hands.shown(after=5) == (Shown(2, 10), 0.0)


def test_the_route_beside_is_made_again_when_somebody_deletes_it() -> None:
    hands = own()
    hands.route(only_split(10))

    del hands.found[SIDE]

    shown, _ = hands.shown(after=5)
    assert shown is not None
    assert shown.drift
    hands.route(only_split(10))
    assert SIDE in hands.found


def test_a_late_write_of_a_lower_order_changes_nothing() -> None:
    hands = adopted()
    hands.route(only_split(10), 5)

    assert hands.route(only_split(50), 4) == ()


def test_an_edit_of_what_is_not_ours_is_no_drift() -> None:
    hands = adopted()
    hands.route(only_split(10))

    hands.edit(WEB, {"op": "replace", "path": "/spec/rules/1/timeouts/request", "value": "9s"})
    take_in(hands)

    assert hands.shown(after=5) == (Shown(1, 10), 0.0)


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
def test_a_wish_that_makes_no_sense_is_refused_by_its_path(route: object, path: str) -> None:
    hands = own(route=route)

    problems = hands.provider.problems(hands.site, {})

    assert [where for where, _ in problems] == [path]


def test_what_is_named_must_be_there() -> None:
    hands = adopted()

    assert hands.provider.problems(hands.site, hands.found) == ()
    assert hands.provider.problems(hands.site, {}) == (
        ("routeName", "there is no HTTPRoute of this name here: web"),
    )
    assert hands.provider.writes(hands.site, _wanted(), {}) == ()


def _wanted() -> Wanted:
    return Wanted(1, STANDBY, NOW)
