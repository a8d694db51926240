"""Istio: VirtualServices of ours and of others, in and out of a canary."""

import copy

import pytest

from fairlead import errors
from fairlead.adapters.canaries.provider import Amend, Apply, Object
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.traffic.routes import (
    AT_HOME,
    STANDBY,
    Affinity,
    How,
    Match,
    Route,
    Where,
    only_split,
)
from fairlead.domain.traffic.weights import giving
from fairlead.domain.values import Percent
from tests.unit.adapters.istio_site import (
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
def test_without_a_wish_one_is_made_with_all_traffic_on_the_primary() -> None:
    hands = own()

    hands.route(AT_HOME)

    assert list(hands.found) == [SERVICE]
    assert hands.found[SERVICE]["spec"] == {
        "hosts": ["shop"],
        "http": [{"route": [to("shop", 100), to("shop-canary", 0)]}],
    }


@pytest.mark.requirement("canary R1")
def test_a_wish_is_kept_with_fields_that_we_do_not_know() -> None:
    wish: Object = {
        "hosts": ["shop.example.com"],
        "gateways": ["public"],
        "http": [
            {"match": [{"uri": {"prefix": "/old"}}], "redirect": {"uri": "/new"}},
            {"timeout": "5s", "somethingNew": {"deep": [1, 2]}},
        ],
        "exportTo": ["*"],
    }
    hands = own(virtualService=copy.deepcopy(wish))

    hands.route(STANDBY)
    hands.route(only_split(10))

    spec = hands.found[SERVICE]["spec"]
    assert {**spec, "http": None} == {**wish, "http": None}
    assert spec["http"][0] == wish["http"][0]
    assert {k: spec["http"][1][k] for k in wish["http"][1]} == wish["http"][1]
    assert weights(hands, SERVICE) == {"shop": 90, "shop-canary": 10}


@pytest.mark.requirement("canary R12")
def test_what_is_there_already_is_not_written_again() -> None:
    hands = own(virtualService={"hosts": ["a"], "gateways": ["b"]})
    for route in (AT_HOME, STANDBY, only_split(10)):
        assert len(hands.route(route)) == 1

        assert hands.route(route, hands.order) == ()


@pytest.mark.parametrize("theirs", [False, True], ids=["own", "adopted"])
def test_a_baseline_joins_gets_its_share_and_leaves(*, theirs: bool) -> None:
    plain = {"hosts": ["x"], "http": [{"route": [{"destination": {"host": "shop"}}]}]}
    hands, ref = (adopted(plain), WEB) if theirs else (own(), SERVICE)
    found = []
    for route in (AT_HOME, COMPARED, SPLIT, COMPARED, AT_HOME):
        hands.route(route)
        shares = weights(hands, ref)
        found.append([shares.get(f"shop{end}") for end in ("", "-canary", "-baseline")])

    assert found[1:4] == [[100, 0, 0], [80, 10, 10], [100, 0, 0]]
    assert found[4] == found[0]
    assert found[0][2] is None


def test_a_baseline_s_weight_changed_by_hand_is_a_drift() -> None:
    hands = own()
    hands.route(COMPARED)
    hands.route(SPLIT)

    hands.edit(SERVICE, {"op": "replace", "path": "/spec/http/0/route/2/weight", "value": 40})

    shown, _ = hands.shown(after=5)
    assert shown is not None
    assert shown.drift


def test_a_field_that_the_wish_no_longer_names_is_written_away() -> None:
    hands = own(virtualService={"hosts": ["a"], "gateways": ["b"]})
    hands.route(AT_HOME)

    hands.site = site(virtualService={"hosts": ["a"]})
    writes = hands.route(AT_HOME, hands.order)

    assert len(writes) == 1
    assert "gateways" not in hands.found[SERVICE]["spec"]


# --- a VirtualService of somebody else ------------------------------------------------------


@pytest.mark.requirement("canary R6")
@pytest.mark.parametrize("share", [0, 1, 10, 50, 99, 100])
def test_only_our_destinations_and_weights_change_in_one_of_theirs(share: int) -> None:
    hands = adopted()
    before = copy.deepcopy(hands.found[WEB])

    (write,) = hands.route(only_split(share))

    assert isinstance(write, Amend)
    paths = sorted(one["path"] for one in write.operations)
    changed = ["/spec/http/2/route/0/weight", "/spec/http/2/route/1"]
    assert [path for path in paths if path.startswith("/spec/http")] == changed
    after = hands.found[WEB]
    assert after["spec"]["http"][:2] == before["spec"]["http"][:2]
    assert _without_route(after, 2) == _without_route(before, 2)
    assert weights(hands, WEB) == {
        "shop.prod.svc.cluster.local": 100 - share,
        "shop-canary.prod.svc.cluster.local": share,
    }


def _without_route(obj: Object, index: int) -> Object:
    return {k: v for k, v in obj["spec"]["http"][index].items() if k != "route"}


def test_the_canary_is_reached_like_the_primary_but_for_its_subset() -> None:
    hands = adopted()

    hands.route(only_split(10))

    assert hands.found[WEB]["spec"]["http"][2]["route"][1] == {
        "destination": {
            "host": "shop-canary.prod.svc.cluster.local",
            "port": {"number": 80},
        },
        "headers": {"request": {"set": {"x-from": "gate"}}},
        "weight": 10,
    }


def test_others_beside_the_primary_keep_their_weight() -> None:
    hands = adopted()

    hands.route(only_split(25))

    found = weights(hands, WEB, "tcp")
    assert found == {"shop.prod": 60, "shop-canary.prod": 20, "legacy": 20}


@pytest.mark.requirement("canary R6")
@pytest.mark.parametrize("weight", [None, 100])
def test_it_is_given_back_as_it_was(weight: int | None) -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    if weight is not None:
        spec["http"][2]["route"][0]["weight"] = weight
    hands = adopted(spec)
    before = copy.deepcopy(hands.found[WEB])
    route = Route(giving(10), joined=True, matches=(BETA,), affinity=Affinity("stay"))
    for asked in (AT_HOME, STANDBY, route, Route(joined=True, mirror=Percent(5)), only_split(50)):
        hands.route(asked)

    hands.perform(hands.provider.give_back(hands.site, hands.found))

    after = hands.found[WEB]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


def test_after_the_canary_left_nothing_of_it_is_in_the_route() -> None:
    hands = adopted()
    for asked in (STANDBY, only_split(10), STANDBY, AT_HOME):
        hands.route(asked)

    assert hands.found[WEB]["spec"] == THEIRS["spec"]


def test_only_the_routes_that_were_chosen_are_shared() -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    spec["http"].append({"name": "other", "route": [{"destination": {"host": "shop"}}]})
    hands = adopted(spec, routes=["web"])

    hands.route(only_split(10))

    assert len(hands.found[WEB]["spec"]["http"][2]["route"]) == 2
    assert hands.found[WEB]["spec"]["http"][3] == spec["http"][3]
    assert hands.found[WEB]["spec"]["tcp"] == spec["tcp"]


@pytest.mark.parametrize("host", ["shop.other", "shop.other.svc.cluster.local", "shopping"])
def test_a_host_of_another_namespace_or_name_is_not_ours(host: str) -> None:
    hands = adopted({"hosts": ["x"], "http": [{"route": [{"destination": {"host": host}}]}]})

    problems = hands.provider.problems(hands.site, hands.found)

    assert problems == (("vsName", "no route leads to the Service shop"),)


def test_a_write_names_the_version_it_was_made_for() -> None:
    hands = adopted()
    version = hands.found[WEB]["metadata"]["resourceVersion"]

    (write,) = hands.route(STANDBY)

    assert isinstance(write, Amend)
    assert write.patch[0] == {
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": version,
    }


# --- headers, cookies, copies ---------------------------------------------------------------


def test_an_ab_test_puts_its_routes_before_the_one_they_are_made_from() -> None:
    hands = adopted()
    cookie = Match(Where.COOKIE, "group", "b")

    hands.route(Route(joined=True, matches=(BETA, cookie)))

    http = hands.found[WEB]["spec"]["http"]
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
    hands = adopted(spec)

    hands.route(Route(joined=True, matches=(BETA,)))

    picked = hands.found[WEB]["spec"]["http"][2]
    assert picked["match"] == [{"port": 80, "headers": {"x-beta": {"exact": "yes"}}}]


@pytest.mark.parametrize("how", list(How))
def test_a_header_is_matched_in_istios_own_words(how: How) -> None:
    hands = own()

    hands.route(Route(joined=True, matches=(Match(Where.HEADER, "Lang", "de", how),)))

    picked = hands.found[SERVICE]["spec"]["http"][0]
    assert picked["match"] == [{"headers": {"lang": {how.value: "de"}}}]


def test_copies_go_to_the_canary_in_percent() -> None:
    hands = adopted()

    hands.route(Route(joined=True, mirror=Percent(30)))

    rule = hands.found[WEB]["spec"]["http"][2]
    assert rule["mirror"]["host"] == "shop-canary.prod.svc.cluster.local"
    assert rule["mirrorPercentage"] == {"value": 30}
    hands.route(STANDBY)
    assert "mirror" not in hands.found[WEB]["spec"]["http"][2]
    assert "mirrorPercentage" not in hands.found[WEB]["spec"]["http"][2]


def test_copies_that_go_elsewhere_already_are_not_taken_over() -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    spec["http"][2]["mirror"] = {"host": "recorder"}
    hands = adopted(spec)

    with pytest.raises(errors.Rejected, match="elsewhere already: recorder"):
        hands.route(Route(joined=True, mirror=Percent(30)))

    hands.route(only_split(10))
    assert hands.found[WEB]["spec"]["http"][2]["mirror"] == {"host": "recorder"}


def test_whoever_met_the_canary_gets_a_cookie_and_stays() -> None:
    hands = own()

    hands.route(Route(giving(10), joined=True, affinity=Affinity("stay", 60)))

    stays, shared = hands.found[SERVICE]["spec"]["http"]
    primary, canary = shared["route"]
    assert "headers" not in primary
    assert canary["headers"]["response"]["add"] == {"Set-Cookie": "stay=r1; Path=/; Max-Age=60"}
    assert stays["match"] == [{"headers": {"cookie": {"regex": r"(.*;\s*)?stay=r1(;.*)?"}}}]
    assert [one["destination"]["host"] for one in stays["route"]] == ["shop-canary"]


def test_a_route_without_http_has_weights_alone() -> None:
    tcp = {"hosts": ["x"], "tcp": [{"route": [{"destination": {"host": "shop"}}]}]}
    hands = adopted(tcp)

    hands.route(only_split(10))

    assert weights(hands, WEB, "tcp") == {"shop": 90, "shop-canary": 10}
    with pytest.raises(errors.Rejected, match="only http routes know headers"):
        hands.route(Route(joined=True, matches=(BETA,)))


# --- the canary's policy --------------------------------------------------------------------


def test_the_canary_has_the_primarys_policy_before_it_joins() -> None:
    hands = own(destinationRule="shop-policy")
    hands.put(RULE, {"spec": POLICY})
    hands.route(AT_HOME)
    assert COPY not in hands.found

    first, second = hands.route(STANDBY)

    assert isinstance(first, Apply)
    assert first.object["kind"] == "DestinationRule"
    assert first.object["spec"] == {
        "host": "shop-canary.prod.svc.cluster.local",
        "trafficPolicy": POLICY["trafficPolicy"],
    }
    assert isinstance(second, Apply)
    assert second.object["kind"] == "VirtualService"


def test_a_baseline_has_the_primarys_policy_too() -> None:
    hands = own(destinationRule="shop-policy")
    hands.put(RULE, {"spec": POLICY})
    hands.route(AT_HOME)

    *rules, route = hands.route(COMPARED)

    hosts = [write.object["spec"]["host"] for write in rules if isinstance(write, Apply)]
    ends = ("shop-canary", "shop-baseline")
    assert hosts == [f"{end}.prod.svc.cluster.local" for end in ends]
    assert isinstance(route, Apply)


def test_a_changed_policy_is_followed() -> None:
    hands = own(destinationRule="shop-policy")
    hands.put(RULE, {"spec": POLICY})
    hands.route(STANDBY)

    hands.put(RULE, {"spec": {**POLICY, "trafficPolicy": {}}})
    shown, _ = hands.shown(after=5)

    assert shown == Shown(1, 0, "DestinationRule shop-canary is not as the primary's")
    hands.route(STANDBY)
    assert hands.found[COPY]["spec"]["trafficPolicy"] == {}
