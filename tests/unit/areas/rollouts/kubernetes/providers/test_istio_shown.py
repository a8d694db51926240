"""Istio: what counts as shown, hands of others, orders, and what stands in the way."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.adapters import istio
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.traffic.routes import (
    AT_HOME,
    STANDBY,
    only_split,
)
from tests.unit.adapters.canaries.hands import Hands
from tests.unit.adapters.istio_site import (
    RULE,
    SERVICE,
    THEIRS,
    WEB,
    adopted,
    own,
    site,
    weights,
)

# --- what is shown --------------------------------------------------------------------------


def test_nothing_of_ours_is_shown_before_we_came() -> None:
    assert own().shown() == (None, 0.0)
    assert adopted().shown() == (None, 0.0)


def test_a_write_is_shown_after_the_stated_delay() -> None:
    hands = adopted()
    hands.route(STANDBY)
    assert hands.shown(after=3) == (Shown(1, 0), 0.0)

    hands.route(only_split(10))

    assert hands.shown(after=0.5) == (Shown(1, 0), 1.5)
    assert hands.shown(after=1.5) == (Shown(2, 10), 0.0)


def test_the_delay_can_be_wished() -> None:
    hands = own(delay=0.25)
    hands.route(AT_HOME)

    assert hands.shown() == (None, 0.25)
    assert hands.shown(after=0.25) == (Shown(1, 0), 0.0)


def test_where_istiod_writes_a_status_it_must_have_seen_the_write() -> None:
    hands = own()
    hands.route(AT_HOME)
    hands.found[SERVICE]["status"] = {"observedGeneration": 1}
    hands.route(STANDBY)
    hands.shown(after=2)
    hands.route(only_split(10))

    assert hands.shown(after=5) == (Shown(2, 0), 1.0)
    hands.found[SERVICE]["status"] = {"observedGeneration": "3"}
    assert hands.shown() == (Shown(3, 10), 0.0)


def test_a_status_that_nobody_writes_any_more_is_not_waited_for() -> None:
    hands = own()
    hands.route(AT_HOME)
    hands.found[SERVICE]["status"] = {"observedGeneration": 1}
    hands.route(STANDBY)

    assert hands.shown(after=31) == (Shown(2, 0), 0.0)


# --- hands of others ------------------------------------------------------------------------


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize("make", [own, adopted])
def test_a_weight_set_by_hand_is_seen_and_put_back(make: Callable[[], Hands]) -> None:
    hands = make()
    (ref,) = hands.provider.refs(hands.site)
    hands.route(only_split(10))
    rule = f"/spec/http/{len(hands.found[ref]['spec']['http']) - 1}/route"

    hands.edit(
        ref,
        {"op": "replace", "path": f"{rule}/0/weight", "value": 50},
        {"op": "replace", "path": f"{rule}/1/weight", "value": 50},
    )

    shown, _ = hands.shown(after=5)
    assert shown is not None
    assert (shown.order, shown.share) == (1, 50)
    assert "weight" in shown.drift
    hands.route(only_split(10))
    assert list(weights(hands, ref).values()) == [90, 10]
    assert hands.shown(after=5) == (Shown(2, 10), 0.0)


def test_the_drift_says_what_is_and_what_should_be() -> None:
    hands = adopted()
    hands.route(only_split(10))

    hands.edit(WEB, {"op": "replace", "path": "/spec/http/2/route/1/weight", "value": 40})

    shown, _ = hands.shown(after=5)
    assert shown is not None
    assert shown.drift == "VirtualService web: http.2.route.1.weight is 40, not 10"


def test_a_manifest_applied_again_in_the_midst_is_put_right() -> None:
    hands = adopted()
    hands.route(only_split(10))
    ours = hands.found[WEB]["metadata"]["annotations"]

    hands.put(WEB, {**THEIRS, "metadata": {"annotations": ours}})

    shown, _ = hands.shown(after=5)
    assert shown is not None
    assert (shown.share, shown.drift) == (0, "VirtualService web: http.2.route.0.weight is missing")


def test_a_route_replaced_with_its_annotations_is_not_shown_at_all() -> None:
    hands = adopted()
    hands.route(only_split(10))

    hands.put(WEB, THEIRS)

    assert hands.shown(after=5) == (None, 0.0)
    hands.route(only_split(10))
    assert weights(hands, WEB)["shop-canary.prod.svc.cluster.local"] == 10


def test_an_edit_of_what_is_not_ours_is_no_drift() -> None:
    hands = adopted()
    hands.route(only_split(10))

    hands.edit(WEB, {"op": "replace", "path": "/spec/http/2/timeout", "value": "9s"})
    hands.edit(WEB, {"op": "remove", "path": "/spec/http/0"})

    assert hands.shown(after=5) == (Shown(1, 10), 0.0)
    assert hands.route(only_split(10), 1) == ()
    hands.route(only_split(20))
    assert hands.found[WEB]["spec"]["http"][1]["timeout"] == "9s"


# --- orders ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [own, adopted])
def test_a_late_write_of_a_lower_order_changes_nothing(make: Callable[[], Hands]) -> None:
    hands = make()
    hands.route(only_split(10), 5)

    assert hands.route(only_split(50), 4) == ()
    assert hands.shown(after=5) == (Shown(5, 10), 0.0)


def test_orders_are_read_from_the_object_after_a_restart() -> None:
    hands = adopted()
    hands.route(only_split(10), 7)

    successor = Hands(istio.Istio(), hands.site)
    successor.found = copy.deepcopy(hands.found)

    assert successor.route(only_split(50), 6) == ()
    assert successor.shown(after=5) == (Shown(7, 10), 0.0)


# --- what stands in the way -----------------------------------------------------------------


@pytest.mark.requirement("canary R1", "canary R8")
@pytest.mark.parametrize(
    ("wish", "path"),
    [
        ("nonsense", "virtualService"),
        ({"hosts": []}, "virtualService.hosts"),
        ({"hosts": "shop"}, "virtualService.hosts"),
        ({"http": {}}, "virtualService.http"),
        ({"tcp": ["x"]}, "virtualService.tcp[0]"),
        ({"http": [{"route": {}}]}, "virtualService.http[0].route"),
        ({"http": [{"route": [{}]}]}, "virtualService.http[0].route[0].destination.host"),
        (
            {"http": [{"route": [{"destination": {"host": "shop"}, "weight": -1}]}]},
            "virtualService.http[0].route[0].weight",
        ),
        ({"http": [{"route": [{"destination": {"host": "other"}}]}]}, "virtualService"),
        (
            {"http": [{"route": [{"destination": {"host": "shop"}}] * 2}]},
            "virtualService.http[0].route",
        ),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused_by_its_path(wish: object, path: str) -> None:
    hands = own(virtualService=wish)

    problems = hands.provider.problems(hands.site, {})

    assert [where for where, _ in problems] == [path]


def test_a_wish_that_makes_sense_has_no_problems() -> None:
    assert own().provider.problems(site(), {}) == ()
    hands = adopted()
    assert hands.provider.problems(hands.site, hands.found) == ()


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"vsName": "gone"}, ("vsName", "there is no VirtualService of this name here: gone")),
        (
            {"vsName": "web", "routes": ["x"]},
            ("routes", "no route named x leads to the Service shop"),
        ),
        (
            {"destinationRule": "gone"},
            ("destinationRule", "there is no DestinationRule of this name here: gone"),
        ),
    ],
)
def test_what_is_named_must_be_there(wish: dict[str, Any], problem: tuple[str, str]) -> None:
    hands = adopted()

    assert hands.provider.problems(site(**wish), hands.found) == (problem,)


def test_a_rule_about_another_host_is_refused() -> None:
    hands = own(destinationRule="shop-policy")
    hands.put(RULE, {"spec": {"host": "other"}})

    ((path, why),) = hands.provider.problems(hands.site, hands.found)

    assert path == "destinationRule"
    assert why.endswith("is not about shop, but about: other")
