"""Gateway API: HTTPRoutes of ours and of others, in and out of a canary."""

import copy
from collections.abc import Callable

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
from tests.unit.areas.rollouts.kubernetes.object_server import ObjectServer
from tests.unit.areas.rollouts.kubernetes.providers.gateway_api_site import (
    BETA,
    MINE,
    PARENTS,
    SIDE,
    SLASH,
    THEIRS,
    WEB,
    adopted,
    own,
    ref,
    take_in,
    weights,
)

COMPARED = Route(joined=True, compared=True)
SPLIT = Route(giving(10, 10), joined=True, compared=True)

# --- a route of ours ------------------------------------------------------------------------


def test_one_of_ours_is_made_with_all_traffic_on_the_primary() -> None:
    server = own()

    server.route(PRIMARY_ONLY)

    assert server.found[MINE]["spec"] == {
        "parentRefs": PARENTS,
        "rules": [{"backendRefs": [{"name": "shop", "port": 80}]}],
    }


@pytest.mark.requirement("canary R1")
def test_a_request_is_kept_with_fields_that_we_do_not_know() -> None:
    redirect = {"filters": [{"type": "RequestRedirect", "requestRedirect": {"port": 443}}]}
    rule = {"matches": [SLASH], "somethingNew": {"deep": 1}}
    desired = {"parentRefs": PARENTS, "hostnames": ["a"], "rules": [redirect, rule], "odd": [1]}
    server = own(route=copy.deepcopy(desired))

    server.route(only_split(10))

    spec = server.found[MINE]["spec"]
    assert {**spec, "rules": None} == {**desired, "rules": None}
    assert spec["rules"][0] == redirect
    assert {key: spec["rules"][1][key] for key in rule} == rule
    assert weights(server, MINE, 1) == {"shop": 90, "shop-canary": 10}


@pytest.mark.requirement("canary R12")
@pytest.mark.parametrize("make", [own, adopted])
def test_what_is_there_already_is_not_written_again(make: Callable[[], ObjectServer]) -> None:
    server = make()
    for route in (PRIMARY_ONLY, STANDBY, only_split(10), only_split(100), STANDBY, PRIMARY_ONLY):
        assert server.route(route)

        assert server.route(route, server.order) == ()


def test_what_the_server_fills_in_is_no_difference() -> None:
    server = own()
    server.route(only_split(10))
    for one in server.found[MINE]["spec"]["rules"][0]["backendRefs"]:
        one |= {"group": "", "kind": "Service"}
    server.found[MINE]["spec"]["rules"][0]["matches"] = [SLASH]
    take_in(server)

    assert server.route(only_split(10), server.order) == ()
    assert server.shown(after=5) == (ObservedRoute(1, 10), 0.0)


# --- a route of somebody else ---------------------------------------------------------------


@pytest.mark.requirement("canary R6")
@pytest.mark.parametrize("weight", [0, 1, 10, 50, 99, 100])
def test_only_our_backends_and_weights_change_in_one_of_theirs(weight: int) -> None:
    server = adopted()

    writes = server.route(only_split(weight))

    amend = writes[-1]
    assert isinstance(amend, Amend)
    spec = copy.deepcopy(server.found[WEB]["spec"])
    assert weights(server, WEB, 1) == {"shop": 100 - weight, "shop-canary": weight}
    for rule, theirs in zip(spec["rules"], THEIRS["spec"]["rules"], strict=True):
        rule["backendRefs"] = theirs["backendRefs"]
    assert spec == THEIRS["spec"]
    assert {one["path"].rsplit("/", 2)[0] for one in amend.operations} <= {
        "",
        "/metadata",
        "/spec/rules/1/backendRefs",
        "/spec/rules/1/backendRefs/0",
        "/spec/rules/2/backendRefs",
        "/spec/rules/2/backendRefs/0",
        "/spec/rules/1",
        "/spec/rules/2",
    }


def test_others_beside_the_primary_keep_their_weight() -> None:
    server = adopted()

    server.route(only_split(25))

    assert weights(server, WEB, 2) == {"shop": 60, "shop-canary": 20, "legacy": 20}


@pytest.mark.requirement("canary R6")
def test_it_is_given_back_as_it_was() -> None:
    server = adopted()
    before = copy.deepcopy(server.found[WEB])
    sticky = Route(giving(10), joined=True, matches=(BETA,), affinity=Affinity("stay"))
    for asked in (
        PRIMARY_ONLY,
        STANDBY,
        sticky,
        Route(joined=True, mirror=Percent(5)),
        only_split(50),
    ):
        server.route(asked)

    server.perform(server.provider.give_back(server.site, server.found))

    after = server.found[WEB]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert "annotations" not in after["metadata"]


def test_after_the_canary_left_nothing_of_it_is_in_the_route() -> None:
    server = adopted()
    for asked in (STANDBY, only_split(10), STANDBY, PRIMARY_ONLY):
        server.route(asked)

    assert server.found[WEB]["spec"] == THEIRS["spec"]


@pytest.mark.parametrize(
    "backend",
    [
        ref("shop", namespace="other"),
        {**ref("shop"), "kind": "ServiceImport", "group": "multicluster.x-k8s.io"},
        ref("shopping"),
    ],
)
def test_a_backend_of_another_place_or_kind_is_not_ours(backend: Object) -> None:
    server = adopted({"parentRefs": PARENTS, "rules": [{"backendRefs": [backend]}]})

    problems = server.provider.problems(server.site, server.found)

    assert problems == (("routeName", "no rule routes to the Service shop"),)


# --- the route beside -----------------------------------------------------------------------


def test_both_backends_are_held_from_the_join_on_until_the_canary_leaves() -> None:
    server = own(route={"parentRefs": PARENTS, "hostnames": ["shop.example.com"]})
    held = []

    for asked in (PRIMARY_ONLY, STANDBY, only_split(10), only_split(100), STANDBY, PRIMARY_ONLY):
        server.route(asked)
        rules = server.found[SIDE]["spec"]["rules"]
        held.append([one["name"] for rule in rules for one in rule["backendRefs"]])

    both = ["shop", "shop-canary"]
    assert held == [["shop"], both, both, both, both, ["shop"]]
    side = server.found[SIDE]["spec"]
    assert side["parentRefs"] == PARENTS
    assert side["hostnames"] == ["shop.example.com"]
    assert [one["path"]["type"] for one in side["rules"][0]["matches"]] == ["Exact"]


def test_it_is_written_before_the_route_that_people_know() -> None:
    server = adopted()

    first, second = server.route(STANDBY)

    assert isinstance(first, Apply)
    assert first.object["metadata"]["name"] == "shop-fairlead"
    assert isinstance(second, Amend)


def test_a_baseline_is_held_while_it_has_joined() -> None:
    server, held, baselines = adopted(), [], []
    for route in (PRIMARY_ONLY, COMPARED, SPLIT, COMPARED, PRIMARY_ONLY):
        server.route(route)
        rules = server.found[SIDE]["spec"]["rules"]
        held.append([rule["backendRefs"][0]["name"] for rule in rules])
        baselines.append(weights(server, WEB, 1).get("shop-baseline"))

    all_three = ["shop", "shop-canary", "shop-baseline"]
    assert held == [["shop"], all_three, all_three, all_three, ["shop"]]
    assert baselines == [None, 0, 10, 0, None]


def test_every_port_of_the_primary_is_held() -> None:
    spec = copy.deepcopy(THEIRS["spec"])
    spec["rules"][2]["backendRefs"] = [{**ref("shop"), "port": 81}]
    server = adopted(spec)

    server.route(STANDBY)

    rules = server.found[SIDE]["spec"]["rules"]
    assert [(one["name"], one["port"]) for rule in rules for one in rule["backendRefs"]] == [
        ("shop", 80),
        ("shop", 81),
        ("shop-canary", 80),
        ("shop-canary", 81),
    ]


def test_it_follows_the_hosts_and_parents_of_the_other() -> None:
    server = adopted()
    server.route(STANDBY)
    take_in(server)

    server.edit(WEB, {"op": "add", "path": "/spec/hostnames/1", "value": "shop.example.org"})

    shown, _ = server.shown(after=5)
    assert shown is not None
    assert shown.drift == "HTTPRoute shop-fairlead does not match web"
    server.route(STANDBY)
    assert server.found[SIDE]["spec"]["hostnames"] == ["shop.example.com", "shop.example.org"]


# --- headers, cookies, copies ---------------------------------------------------------------


def picks(server: ObjectServer) -> list[Object]:
    rules = server.found[SIDE]["spec"]["rules"]
    return [rule for rule in rules if "headers" in rule["matches"][0]]


@pytest.mark.parametrize(
    ("how", "header"),
    [
        (How.EXACT, {"type": "Exact", "name": "lang", "value": "d.e"}),
        (How.PREFIX, {"type": "RegularExpression", "name": "lang", "value": r"d\.e.*"}),
        (How.REGEX, {"type": "RegularExpression", "name": "lang", "value": "d.e"}),
    ],
)
def test_a_header_is_matched_in_the_words_of_gateway_api(how: How, header: Object) -> None:
    server = own()

    server.route(Route(joined=True, matches=(Match(Where.HEADER, "Lang", "d.e", how),)))

    (pick,) = picks(server)
    assert pick["matches"] == [{**SLASH, "headers": [header]}]
    assert pick["backendRefs"] == [{"name": "shop-canary", "port": 80}]


def test_an_ab_test_leaves_their_rules_alone_and_keeps_their_filters() -> None:
    server = adopted()

    server.route(Route(joined=True, matches=(BETA,)))

    theirs = THEIRS["spec"]["rules"]
    assert [rule["matches"] for rule in server.found[WEB]["spec"]["rules"]] == [
        rule["matches"] for rule in theirs
    ]
    first, second = picks(server)
    assert first["filters"] == theirs[1]["filters"]
    assert first["timeouts"] == theirs[1]["timeouts"]
    assert second["matches"][0]["path"]["value"] == "/old"


def test_whoever_met_the_canary_gets_a_cookie_and_stays() -> None:
    server = own()

    server.route(Route(giving(10), joined=True, affinity=Affinity("stay", 60)))

    primary, canary = server.found[MINE]["spec"]["rules"][0]["backendRefs"]
    assert "filters" not in primary
    cookie = {"name": "Set-Cookie", "value": "stay=r1; Path=/; Max-Age=60"}
    change = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [cookie]}}
    assert canary["filters"] == [change]
    (pick,) = picks(server)
    assert pick["matches"][0]["headers"][0]["value"] == r"(.*;\s*)?stay=r1(;.*)?"


def test_the_cookie_goes_into_a_filter_that_is_there() -> None:
    theirs = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["server"]}}
    spec = {"parentRefs": PARENTS, "rules": [{"backendRefs": [ref("shop", filters=[theirs])]}]}
    server = adopted(spec)

    server.route(Route(giving(10), joined=True, affinity=Affinity("stay", 60)))

    primary, canary = server.found[WEB]["spec"]["rules"][0]["backendRefs"]
    assert primary["filters"] == [theirs]
    (merged,) = canary["filters"]
    assert merged["responseHeaderModifier"]["remove"] == ["server"]
    assert len(merged["responseHeaderModifier"]["add"]) == 1


def test_copies_go_to_the_canary_in_percent_and_end_again() -> None:
    server = adopted()

    server.route(Route(joined=True, mirror=Percent(30)))

    filters = server.found[WEB]["spec"]["rules"][1]["filters"]
    backend = {"group": "", "kind": "Service", "name": "shop-canary", "port": 80}
    copies = {"type": "RequestMirror", "requestMirror": {"backendRef": backend, "percent": 30}}
    assert filters == [*THEIRS["spec"]["rules"][1]["filters"], copies]
    take_in(server)
    assert server.shown(after=5) == (ObservedRoute(1, 0), 0.0)
    server.route(STANDBY)
    assert server.found[WEB]["spec"]["rules"][1]["filters"] == filters[:1]
    assert "filters" not in server.found[WEB]["spec"]["rules"][2]


def test_more_rules_than_a_route_may_have_are_refused_before_a_write() -> None:
    rules = [{"matches": [SLASH], "backendRefs": [ref("shop")]}] * 15
    server = adopted({"parentRefs": PARENTS, "rules": rules})

    with pytest.raises(errors.Rejected, match="too many rules"):
        server.route(Route(joined=True, matches=(BETA,)))

    assert server.written == []
    server.route(only_split(10))
