"""Istio: VirtualServices of ours and of others, in and out of a canary."""

import copy

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes.routing.provider import Amend, Apply, Object
from fairlead.traffic.routes import (
    PRIMARY_ONLY,
    STANDBY,
    Affinity,
    How,
    Match,
    Route,
    Where,
    only_split,
)
from fairlead.traffic.weights import giving
from fairlead.values import Percent
from tests.unit.areas.rollouts.kubernetes.providers.istio_site import (
    BETA,
    COPY,
    POLICY,
    RULE,
    SERVICE,
    THEIRS,
    WEB,
    adopted,
    own,
    site,
    weights,
)

COMPARED = Route(joined=True, compared=True)
SPLIT = Route(giving(10, 10), joined=True, compared=True)

# --- a VirtualService of ours ---------------------------------------------------------------


def to(host: str, weight: int) -> Object:
    return {"destination": {"host": host, "port": {"number": 80}}, "weight": weight}


@pytest.mark.requirement("canary R2")
def test_without_a_request_one_is_made_with_all_traffic_on_the_primary() -> None:
    server = own()

    server.route(PRIMARY_ONLY)

    assert list(server.found) == [SERVICE]
    assert server.found[SERVICE]["spec"] == {
        "hosts": ["shop"],
        "http": [{"route": [to("shop", 100), to("shop-canary", 0)]}],
    }


@pytest.mark.requirement("canary R1")
def test_a_request_is_kept_with_fields_that_we_do_not_know() -> None:
    desired: Object = {
        "hosts": ["shop.example.com"],
        "gateways": ["public"],
        "http": [
            {"match": [{"uri": {"prefix": "/old"}}], "redirect": {"uri": "/new"}},
            {"timeout": "5s", "somethingNew": {"deep": [1, 2]}},
        ],
        "exportTo": ["*"],
    }
    server = own(virtualService=copy.deepcopy(desired))

    server.route(STANDBY)
    server.route(only_split(10))

    spec = server.found[SERVICE]["spec"]
    assert {**spec, "http": None} == {**desired, "http": None}
    assert spec["http"][0] == desired["http"][0]
    assert {k: spec["http"][1][k] for k in desired["http"][1]} == desired["http"][1]
    assert weights(server, SERVICE) == {"shop": 90, "shop-canary": 10}


@pytest.mark.requirement("canary R12")
def test_what_is_there_already_is_not_written_again() -> None:
    server = own(virtualService={"hosts": ["a"], "gateways": ["b"]})
    for route in (PRIMARY_ONLY, STANDBY, only_split(10)):
        assert len(server.route(route)) == 1

        assert server.route(route, server.order) == ()


@pytest.mark.parametrize("theirs", [False, True], ids=["own", "adopted"])
def test_a_baseline_joins_gets_its_weight_and_leaves(*, theirs: bool) -> None:
    plain = {"hosts": ["x"], "http": [{"route": [{"destination": {"host": "shop"}}]}]}
    server, ref = (adopted(plain), WEB) if theirs else (own(), SERVICE)
    found = []
    for route in (PRIMARY_ONLY, COMPARED, SPLIT, COMPARED, PRIMARY_ONLY):
        server.route(route)
        given = weights(server, ref)
        found.append([given.get(f"shop{end}") for end in ("", "-canary", "-baseline")])

    assert found[1:4] == [[100, 0, 0], [80, 10, 10], [100, 0, 0]]
    assert found[4] == found[0]
    assert found[0][2] is None


def test_a_baseline_s_weight_changed_by_hand_is_a_drift() -> None:
    server = own()
    server.route(COMPARED)
    server.route(SPLIT)

    server.edit(SERVICE, {"op": "replace", "path": "/spec/http/0/route/2/weight", "value": 40})

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert shown.drift


def test_a_field_that_the_request_no_longer_names_is_written_away() -> None:
    server = own(virtualService={"hosts": ["a"], "gateways": ["b"]})
    server.route(PRIMARY_ONLY)

    server.site = site(virtualService={"hosts": ["a"]})
    writes = server.route(PRIMARY_ONLY, server.order)

    assert len(writes) == 1
    assert "gateways" not in server.found[SERVICE]["spec"]


# --- a VirtualService of somebody else ------------------------------------------------------


@pytest.mark.requirement("canary R6")
@pytest.mark.parametrize("weight", [0, 1, 10, 50, 99, 100])
def test_only_our_destinations_and_weights_change_in_one_of_theirs(weight: int) -> None:
    server = adopted()
    before = copy.deepcopy(server.found[WEB])

    (write,) = server.route(only_split(weight))

    assert isinstance(write, Amend)
    paths = sorted(one["path"] for one in write.operations)
    changed = ["/spec/http/2/route/0/weight", "/spec/http/2/route/1"]
    assert [path for path in paths if path.startswith("/spec/http")] == changed
    after = server.found[WEB]
    assert after["spec"]["http"][:2] == before["spec"]["http"][:2]
    assert _without_route(after, 2) == _without_route(before, 2)
    assert weights(server, WEB) == {
        "shop.prod.svc.cluster.local": 100 - weight,
        "shop-canary.prod.svc.cluster.local": weight,
    }


def _without_route(obj: Object, index: int) -> Object:
    return {k: v for k, v in obj["spec"]["http"][index].items() if k != "route"}


def test_the_canary_is_reached_like_the_primary_but_for_its_subset() -> None:
    server = adopted()

    server.route(only_split(10))

    assert server.found[WEB]["spec"]["http"][2]["route"][1] == {
        "destination": {
            "host": "shop-canary.prod.svc.cluster.local",
            "port": {"number": 80},
        },
        "headers": {"request": {"set": {"x-from": "gate"}}},
        "weight": 10,
    }


def test_others_beside_the_primary_keep_their_weight() -> None:
    server = adopted()

    server.route(only_split(25))

    found = weights(server, WEB, "tcp")
    assert found == {"shop.prod": 60, "shop-canary.prod": 20, "legacy": 20}


@pytest.mark.requirement("canary R6")
@pytest.mark.parametrize("weight", [None, 100])
def test_it_is_given_back_as_it_was(weight: int | None) -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    if weight is not None:
        spec["http"][2]["route"][0]["weight"] = weight
    server = adopted(spec, subset="v1")
    before = copy.deepcopy(server.found[WEB])
    route = Route(giving(10), joined=True, matches=(BETA,), affinity=Affinity("stay"))
    for asked in (
        PRIMARY_ONLY,
        STANDBY,
        route,
        Route(joined=True, mirror=Percent(5)),
        only_split(50),
    ):
        server.route(asked)

    server.perform(server.provider.give_back(server.site, server.found))

    after = server.found[WEB]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


def test_after_the_canary_left_nothing_of_it_is_in_the_route() -> None:
    server = adopted()
    for asked in (STANDBY, only_split(10), STANDBY, PRIMARY_ONLY):
        server.route(asked)

    assert server.found[WEB]["spec"] == THEIRS["spec"]


def test_only_the_routes_that_were_chosen_are_shared() -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    spec["http"].append({"name": "other", "route": [{"destination": {"host": "shop"}}]})
    server = adopted(spec, subset="v1", routes=["web"])

    server.route(only_split(10))

    assert len(server.found[WEB]["spec"]["http"][2]["route"]) == 2
    assert server.found[WEB]["spec"]["http"][3] == spec["http"][3]
    assert server.found[WEB]["spec"]["tcp"] == spec["tcp"]


@pytest.mark.parametrize("host", ["shop.other", "shop.other.svc.cluster.local", "shopping"])
def test_a_host_of_another_namespace_or_name_is_not_ours(host: str) -> None:
    server = adopted({"hosts": ["x"], "http": [{"route": [{"destination": {"host": host}}]}]})

    problems = server.provider.problems(server.site, server.found)

    assert problems == (("vsName", "no route goes to the Service shop"),)


def test_a_write_names_the_version_it_was_made_for() -> None:
    server = adopted()
    version = server.found[WEB]["metadata"]["resourceVersion"]

    (write,) = server.route(STANDBY)

    assert isinstance(write, Amend)
    assert write.patch[0] == {
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": version,
    }


# --- headers, cookies, copies ---------------------------------------------------------------


def test_an_ab_test_puts_its_routes_before_the_one_they_are_made_from() -> None:
    server = adopted()
    cookie = Match(Where.COOKIE, "group", "b")

    server.route(Route(joined=True, matches=(BETA, cookie)))

    http = server.found[WEB]["spec"]["http"]
    picked = http[2]
    assert [rule["name"] for rule in http] == ["admin", "preview", "fairlead/shop/2", "web"]
    assert picked["timeout"] == "5s"
    assert [one["destination"]["host"] for one in picked["route"]] == [
        "shop-canary.prod.svc.cluster.local"
    ]
    assert picked["match"] == [
        {"uri": {"prefix": "/"}, "headers": {"x-beta": {"exact": "yes"}}},
        {"uri": {"prefix": "/"}, "headers": {"cookie": {"regex": r"(.*;\s*)?group=b(;.*)?"}}},
        {"uri": {"exact": "/x"}, "port": 80, "headers": {"x-beta": {"exact": "yes"}}},
        {
            "uri": {"exact": "/x"},
            "port": 80,
            "headers": {"cookie": {"regex": r"(.*;\s*)?group=b(;.*)?"}},
        },
    ]


def test_a_header_that_their_match_reads_already_goes_by_the_weights() -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    spec["http"][2]["match"] = [{"headers": {"x-beta": {"exact": "no"}}}, {"port": 80}]
    server = adopted(spec, subset="v1")

    server.route(Route(joined=True, matches=(BETA,)))

    picked = server.found[WEB]["spec"]["http"][2]
    assert picked["match"] == [{"port": 80, "headers": {"x-beta": {"exact": "yes"}}}]


@pytest.mark.parametrize("how", list(How))
def test_a_header_is_matched_in_istios_own_words(how: How) -> None:
    server = own()

    server.route(Route(joined=True, matches=(Match(Where.HEADER, "Lang", "de", how),)))

    picked = server.found[SERVICE]["spec"]["http"][0]
    assert picked["match"] == [{"headers": {"lang": {how.value: "de"}}}]


def test_copies_go_to_the_canary_in_percent() -> None:
    server = adopted()

    server.route(Route(joined=True, mirror=Percent(30)))

    rule = server.found[WEB]["spec"]["http"][2]
    assert rule["mirror"]["host"] == "shop-canary.prod.svc.cluster.local"
    assert rule["mirrorPercentage"] == {"value": 30}
    server.route(STANDBY)
    assert "mirror" not in server.found[WEB]["spec"]["http"][2]
    assert "mirrorPercentage" not in server.found[WEB]["spec"]["http"][2]


def test_copies_that_go_elsewhere_already_are_not_taken_over() -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    spec["http"][2]["mirror"] = {"host": "recorder"}
    server = adopted(spec, subset="v1")

    with pytest.raises(errors.Rejected, match="already mirrors to: recorder"):
        server.route(Route(joined=True, mirror=Percent(30)))

    server.route(only_split(10))
    assert server.found[WEB]["spec"]["http"][2]["mirror"] == {"host": "recorder"}


def test_whoever_met_the_canary_gets_a_cookie_and_stays() -> None:
    server = own()

    server.route(Route(giving(10), joined=True, affinity=Affinity("stay", 60)))

    stays, shared = server.found[SERVICE]["spec"]["http"]
    primary, canary = shared["route"]
    assert "headers" not in primary
    assert canary["headers"]["response"]["add"] == {"Set-Cookie": "stay=r1; Path=/; Max-Age=60"}
    assert stays["match"] == [{"headers": {"cookie": {"regex": r"(.*;\s*)?stay=r1(;.*)?"}}}]
    assert [one["destination"]["host"] for one in stays["route"]] == ["shop-canary"]


def test_a_route_without_http_has_weights_alone() -> None:
    tcp = {"hosts": ["x"], "tcp": [{"route": [{"destination": {"host": "shop"}}]}]}
    server = adopted(tcp)

    server.route(only_split(10))

    assert weights(server, WEB, "tcp") == {"shop": 90, "shop-canary": 10}
    with pytest.raises(errors.Rejected, match="only http routes support headers"):
        server.route(Route(joined=True, matches=(BETA,)))


# --- the canary's policy --------------------------------------------------------------------


def test_the_canary_has_the_primarys_policy_before_it_joins() -> None:
    server = own(destinationRule="shop-policy")
    server.put(RULE, {"spec": POLICY})
    server.route(PRIMARY_ONLY)
    assert COPY not in server.found

    first, second = server.route(STANDBY)

    assert isinstance(first, Apply)
    assert first.object["kind"] == "DestinationRule"
    assert first.object["spec"] == {
        "host": "shop-canary.prod.svc.cluster.local",
        "trafficPolicy": POLICY["trafficPolicy"],
    }
    assert isinstance(second, Apply)
    assert second.object["kind"] == "VirtualService"


def test_a_baseline_has_the_primarys_policy_too() -> None:
    server = own(destinationRule="shop-policy")
    server.put(RULE, {"spec": POLICY})
    server.route(PRIMARY_ONLY)

    *rules, route = server.route(COMPARED)

    hosts = [write.object["spec"]["host"] for write in rules if isinstance(write, Apply)]
    ends = ("shop-canary", "shop-baseline")
    assert hosts == [f"{end}.prod.svc.cluster.local" for end in ends]
    assert isinstance(route, Apply)


def test_a_changed_policy_is_followed() -> None:
    server = own(destinationRule="shop-policy")
    server.put(RULE, {"spec": POLICY})
    server.route(STANDBY)

    server.put(RULE, {"spec": {**POLICY, "trafficPolicy": {}}})
    shown, _ = server.shown(after=5)

    assert shown == ObservedRoute(1, 0, "DestinationRule shop-canary differs from the primary's")
    server.route(STANDBY)
    assert server.found[COPY]["spec"]["trafficPolicy"] == {}


# --- bookinfo, as Istio ships it: subsets of one Service, and a route for one user -----------

REVIEWS: Object = {
    "hosts": ["shop"],
    "http": [
        {
            "match": [{"headers": {"end-user": {"exact": "jason"}}}],
            "route": [{"destination": {"host": "shop", "subset": "v2"}}],
        },
        {"route": [{"destination": {"host": "shop", "port": {"number": 9090}, "subset": "v1"}}]},
        {"route": [{"destination": {"host": "shop", "subset": "v1"}, "weight": 80},
                   {"destination": {"host": "shop", "subset": "v3"}, "weight": 20}]},
    ],
}  # fmt: skip


@pytest.mark.requirement("canary R6")
def test_only_the_subset_and_port_that_are_named_are_shared() -> None:
    server = adopted(copy.deepcopy(REVIEWS), subset="v1")

    server.route(only_split(50))

    after = server.found[WEB]["spec"]["http"]
    assert after[:2] == REVIEWS["http"][:2]
    assert [one["weight"] for one in after[2]["route"]] == [40, 40, 20]
    server.perform(server.provider.give_back(server.site, server.found))
    assert server.found[WEB]["spec"] == REVIEWS


@pytest.mark.parametrize("subset", [None, "v7"])
def test_a_subset_that_no_route_has_is_told_with_those_that_are_there(subset: str | None) -> None:
    server = adopted(copy.deepcopy(REVIEWS), subset=subset)

    ((field, reason),) = server.provider.problems(server.site, server.found)

    assert field == "vsName"
    assert "it has: subset v1, port 9090; subset v1, port any; subset v2, port any" in reason
