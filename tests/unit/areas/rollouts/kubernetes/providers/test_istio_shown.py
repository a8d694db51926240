"""Istio: what counts as shown, hands of others, orders, and what stands in the way."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes.providers import istio
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, only_split
from tests.unit.areas.rollouts.kubernetes.object_server import ObjectServer
from tests.unit.areas.rollouts.kubernetes.providers.istio_site import (
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
    server = adopted()
    server.route(STANDBY)
    assert server.shown(after=3) == (ObservedRoute(1, 0), 0.0)

    server.route(only_split(10))

    assert server.shown(after=0.5) == (ObservedRoute(1, 0), 1.5)
    assert server.shown(after=1.5) == (ObservedRoute(2, 10), 0.0)


def test_the_delay_can_be_requested() -> None:
    server = own(delay=0.25)
    server.route(PRIMARY_ONLY)

    assert server.shown() == (None, 0.25)
    assert server.shown(after=0.25) == (ObservedRoute(1, 0), 0.0)


def test_where_istiod_writes_a_status_it_must_have_seen_the_write() -> None:
    server = own()
    server.route(PRIMARY_ONLY)
    server.found[SERVICE]["status"] = {"observedGeneration": 1}
    server.route(STANDBY)
    server.shown(after=2)
    server.route(only_split(10))

    assert server.shown(after=5) == (ObservedRoute(2, 0), 1.0)
    server.found[SERVICE]["status"] = {"observedGeneration": "3"}
    assert server.shown() == (ObservedRoute(3, 10), 0.0)


def test_a_status_that_nobody_writes_any_more_is_not_waited_for() -> None:
    server = own()
    server.route(PRIMARY_ONLY)
    server.found[SERVICE]["status"] = {"observedGeneration": 1}
    server.route(STANDBY)

    assert server.shown(after=31) == (ObservedRoute(2, 0), 0.0)


# --- hands of others ------------------------------------------------------------------------


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize("make", [own, adopted])
def test_a_weight_set_by_hand_is_seen_and_put_back(make: Callable[[], ObjectServer]) -> None:
    server = make()
    (ref,) = server.provider.refs(server.site)
    server.route(only_split(10))
    rule = f"/spec/http/{len(server.found[ref]['spec']['http']) - 1}/route"

    server.edit(
        ref,
        {"op": "replace", "path": f"{rule}/0/weight", "value": 50},
        {"op": "replace", "path": f"{rule}/1/weight", "value": 50},
    )

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert (shown.order, shown.weight) == (1, 50)
    assert "weight" in shown.drift
    server.route(only_split(10))
    assert list(weights(server, ref).values()) == [90, 10]
    assert server.shown(after=5) == (ObservedRoute(2, 10), 0.0)


def test_the_drift_says_what_is_and_what_should_be() -> None:
    server = adopted()
    server.route(only_split(10))

    server.edit(WEB, {"op": "replace", "path": "/spec/http/2/route/1/weight", "value": 40})

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert shown.drift == "VirtualService web: http.2.route.1.weight is 40, not 10"


def test_a_manifest_applied_again_in_the_midst_is_put_right() -> None:
    server = adopted()
    server.route(only_split(10))
    ours = server.found[WEB]["metadata"]["annotations"]

    server.put(WEB, {**THEIRS, "metadata": {"annotations": ours}})

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert (shown.weight, shown.drift) == (
        0,
        "VirtualService web: http.2.route.0.weight is missing",
    )


def test_a_route_replaced_with_its_annotations_is_not_shown_at_all() -> None:
    server = adopted()
    server.route(only_split(10))

    server.put(WEB, THEIRS)

    assert server.shown(after=5) == (None, 0.0)
    server.route(only_split(10))
    assert weights(server, WEB)["shop-canary.prod.svc.cluster.local"] == 10


def test_an_edit_of_what_is_not_ours_is_no_drift() -> None:
    server = adopted()
    server.route(only_split(10))

    server.edit(WEB, {"op": "replace", "path": "/spec/http/2/timeout", "value": "9s"})
    server.edit(WEB, {"op": "remove", "path": "/spec/http/0"})

    assert server.shown(after=5) == (ObservedRoute(1, 10), 0.0)
    assert server.route(only_split(10), 1) == ()
    server.route(only_split(20))
    assert server.found[WEB]["spec"]["http"][1]["timeout"] == "9s"


# --- orders ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [own, adopted])
def test_a_late_write_of_a_lower_number_changes_nothing(make: Callable[[], ObjectServer]) -> None:
    server = make()
    server.route(only_split(10), 5)

    assert server.route(only_split(50), 4) == ()
    assert server.shown(after=5) == (ObservedRoute(5, 10), 0.0)


def test_orders_are_read_from_the_object_after_a_restart() -> None:
    server = adopted()
    server.route(only_split(10), 7)

    successor = ObjectServer(istio.Istio(), server.site)
    successor.found = copy.deepcopy(server.found)

    assert successor.route(only_split(50), 6) == ()
    assert successor.shown(after=5) == (ObservedRoute(7, 10), 0.0)


# --- what stands in the way -----------------------------------------------------------------


@pytest.mark.requirement("canary R1", "canary R8")
@pytest.mark.parametrize(
    ("desired", "path"),
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
def test_a_request_that_makes_no_sense_is_refused_by_its_path(desired: object, path: str) -> None:
    server = own(virtualService=desired)

    problems = server.provider.problems(server.site, {})

    assert [where for where, _ in problems] == [path]


def test_a_request_that_makes_sense_has_no_problems() -> None:
    assert own().provider.problems(site(), {}) == ()
    server = adopted()
    assert server.provider.problems(server.site, server.found) == ()


@pytest.mark.parametrize(
    ("desired", "problem"),
    [
        ({"vsName": "gone"}, ("vsName", "no such VirtualService in this namespace: gone")),
        (
            {"vsName": "web", "routes": ["x"]},
            ("routes", "no route named x goes to the Service shop"),
        ),
        (
            {"destinationRule": "gone"},
            ("destinationRule", "no such DestinationRule in this namespace: gone"),
        ),
    ],
)
def test_what_is_named_must_be_there(desired: dict[str, Any], problem: tuple[str, str]) -> None:
    server = adopted()

    assert server.provider.problems(site(**desired), server.found) == (problem,)


def test_a_rule_about_another_host_is_refused() -> None:
    server = own(destinationRule="shop-policy")
    server.put(RULE, {"spec": {"host": "other"}})

    ((path, why),) = server.provider.problems(server.site, server.found)

    assert path == "destinationRule"
    assert why.endswith("is not for shop but for: other")
