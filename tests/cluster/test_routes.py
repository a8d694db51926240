"""Routes of both providers on a real API server, with the real kinds of Istio and Gateway API."""

import copy
import datetime as dt
from typing import Any

import pytest

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.kubernetes.providers import gateway_api, istio
from fairlead.areas.rollouts.kubernetes.routing.provider import Amend, DesiredRoute, Provider
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
from tests.cluster import client
from tests.cluster.conftest import InstallCrds
from tests.cluster.space import Space
from tests.dataplane.platform import DataplanePlatform

pytestmark = pytest.mark.cluster
MATCHES = (
    *(Match(Where.HEADER, "X-Group", "b", how) for how in How),
    Match(Where.COOKIE, "group", "b"),
)
ROUTES = {
    "primary only": PRIMARY_ONLY,
    "joined": STANDBY,
    "a weight": only_split(10),
    "all": only_split(100),
    "matches": Route(joined=True, matches=MATCHES),
    "copies": Route(joined=True, mirror=Percent(30)),
    "affinity": Route(giving(20), joined=True, affinity=Affinity("stay")),
}
SERVICE: client.Json = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {"name": "web", "labels": {"team": "web"}},
    "spec": {
        "hosts": ["shop.example.com"],
        "gateways": ["public"],
        "http": [
            {"match": [{"uri": {"prefix": "/x"}}], "route": [{"destination": {"host": "x"}}]},
            {
                "name": "web",
                "timeout": "5s",
                "retries": {"attempts": 3, "perTryTimeout": "2s"},
                "corsPolicy": {"allowOrigins": [{"exact": "https://example.com"}]},
                "route": [{"destination": {"host": "shop", "port": {"number": 80}}}],
            },
        ],
    },
}
ROUTE: client.Json = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "web", "labels": {"team": "web"}},
    "spec": {
        "parentRefs": [{"name": "public"}],
        "hostnames": ["shop.example.com"],
        "rules": [
            {
                "matches": [{"path": {"type": "Exact", "value": "/x"}}],
                "backendRefs": [{"name": "x", "port": 80}],
            },
            {
                "filters": [
                    {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["a"]}}
                ],
                "timeouts": {"request": "5s"},
                "backendRefs": [{"name": "shop", "port": 80}],
            },
        ],
    },
}


class Case:
    """One provider on this server, with what it owns or adopts."""

    def __init__(self, provider: Provider, own: Any, adopted: Any, theirs: client.Json) -> None:
        self.provider = provider
        self.own = own
        self.adopted = adopted
        self.theirs = theirs


ISTIO = Case(istio.Istio(), {"virtualService": {"gateways": ["a"]}}, {"vsName": "web"}, SERVICE)
GATEWAY = Case(
    gateway_api.GatewayApi(),
    {"route": {"parentRefs": [{"name": "public"}]}},
    {"routeName": "web"},
    ROUTE,
)


@pytest.fixture(params=["istio", "gateway"])
async def case(request: pytest.FixtureRequest, install_crds: InstallCrds) -> Case:
    await install_crds(request.param)
    return ISTIO if request.param == "istio" else GATEWAY


@pytest.fixture
async def adopted(case: Case, admin: client.Client, space: Space) -> DataplanePlatform:
    dataplane_platform = DataplanePlatform(admin, space.name, case.provider, case.adopted)
    main = dataplane_platform.path(case.provider.refs(dataplane_platform.site)[0])
    await admin.create(main.rpartition("/")[0], copy.deepcopy(case.theirs))
    return dataplane_platform


async def main_of(dataplane_platform: DataplanePlatform) -> client.Json:
    return dict(
        (await dataplane_platform.found())[
            dataplane_platform.provider.refs(dataplane_platform.site)[0]
        ]
    )


def ask(order: int, route: Route) -> messages.SetRoute:
    return messages.SetRoute("shop", order, route)


@pytest.mark.requirement("canary R1", "canary R2")
async def test_the_server_takes_every_route_of_ours_without_a_field_it_does_not_know(
    case: Case, admin: client.Client, space: Space
) -> None:
    dataplane_platform = DataplanePlatform(admin, space.name, case.provider, case.own)
    for order, (what, route) in enumerate(ROUTES.items(), 1):
        await dataplane_platform.route(ask(order, route))

        found = await dataplane_platform.found()
        wanted = DesiredRoute(order, route, dt.datetime.now(dt.UTC))
        assert dataplane_platform.provider.writes(dataplane_platform.site, wanted, found) == (), (
            what
        )
        late = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=2)
        shown, _ = dataplane_platform.provider.shown(dataplane_platform.site, found, late)
        assert shown is None or not shown.drift, what


@pytest.mark.requirement("canary R6")
async def test_an_adopted_route_keeps_every_field_and_is_given_back_as_it_was(
    adopted: DataplanePlatform,
) -> None:
    before = await main_of(adopted)
    for order, (what, route) in enumerate(ROUTES.items(), 1):
        await adopted.route(ask(order, route))
        during = await main_of(adopted)
        await adopted.give_back(messages.ReleaseResources("shop", order))
        after = await main_of(adopted)

        assert _without_ours(during) == _without_ours(before), what
        assert after["spec"] == before["spec"], what
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        assert "annotations" not in after["metadata"]


async def test_a_repeated_write_changes_no_version(adopted: DataplanePlatform) -> None:
    await adopted.route(ask(1, only_split(10)))
    before = await main_of(adopted)

    await adopted.route(ask(1, only_split(10)))

    assert (await main_of(adopted))["metadata"]["resourceVersion"] == (
        before["metadata"]["resourceVersion"]
    )


async def test_a_write_made_for_an_older_version_is_a_conflict_and_is_asked_again(
    adopted: DataplanePlatform, admin: client.Client
) -> None:
    stale = await adopted.found()
    where = adopted.path(adopted.provider.refs(adopted.site)[0])
    await admin.patch(where, {"metadata": {"labels": {"team": "other"}}})
    wanted = DesiredRoute(1, only_split(10), dt.datetime.now(dt.UTC))
    writes = adopted.provider.writes(adopted.site, wanted, stale)
    amend = next(write for write in writes if isinstance(write, Amend))

    with pytest.raises(client.ApiError) as refused:
        await adopted.perform(amend)
    await adopted.route(ask(1, only_split(10)))

    assert refused.value.status == 409
    found = await main_of(adopted)
    assert found["metadata"]["labels"] == {"team": "other"}
    assert found["metadata"]["annotations"]["fairlead.dev/order"] == "1"


@pytest.mark.requirement("canary R26")
async def test_a_weight_set_by_hand_is_told_and_put_back(
    adopted: DataplanePlatform, admin: client.Client
) -> None:
    await adopted.route(ask(1, only_split(10)))
    where = adopted.path(adopted.provider.refs(adopted.site)[0])
    edited = await main_of(adopted)
    _destinations(edited)[1]["weight"] = 60
    await admin.replace(where, edited)

    drifted = await adopted.shown("shop")
    await adopted.route(ask(2, only_split(10)))

    assert drifted is not None
    assert "weight is 60, not 10" in drifted.drift
    assert _destinations(await main_of(adopted))[1]["weight"] == 10


def _destinations(obj: client.Json) -> list[client.Json]:
    spec = obj["spec"]
    return list(spec["http"][1]["route"] if "http" in spec else spec["rules"][1]["backendRefs"])


def _without_ours(obj: client.Json) -> client.Json:
    """The spec without what a route of ours may change in it."""
    spec: client.Json = copy.deepcopy(obj["spec"])
    for section, refs in (("http", "route"), ("rules", "backendRefs")):
        rules = [
            rule
            for rule in spec.get(section) or ()
            if not str(rule.get("name", "")).startswith("fairlead/")
        ]
        for rule in rules:
            rule[refs] = [one for one in rule[refs] if "canary" not in str(one)]
            for one in rule[refs]:
                one.pop("weight", None)
            for key in ("mirror", "mirrorPercentage"):
                rule.pop(key, None)
            kept = [one for one in rule.get("filters") or () if one["type"] != "RequestMirror"]
            rule["filters"] = kept
        if rules:
            spec[section] = rules
    return spec
