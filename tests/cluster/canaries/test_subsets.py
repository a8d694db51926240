"""Bookinfo as Istio ships it: one Service, a subset for each version, a route for one user."""

from typing import Any

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import API, ISTIO, RolloutCluster, template
from tests.cluster.canaries.test_senseless import told

pytestmark = pytest.mark.cluster
JASON = {
    "match": [{"headers": {"end-user": {"exact": "jason"}}}],
    "route": [{"destination": {"host": "reviews", "subset": "v2"}}],
}
REVIEWS = {
    "hosts": ["reviews"],
    "http": [
        {"name": "jason", **JASON},
        {"name": "all", "route": [{"destination": {"host": "reviews", "subset": "v1"}}]},
    ],
}
RULE = {
    "host": "reviews",
    "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}},
    "subsets": [{"name": one, "labels": {"version": one}} for one in ("v1", "v2")],
}


def reviews(version: str, image: str) -> client.Json:
    labels = {"app": "reviews", "version": version}
    made: Any = {**template(image), "metadata": {"labels": labels}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": made}
    name = {"name": f"reviews-{version}"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": name, "spec": spec}


@pytest.mark.requirement("canary R6")
async def test_the_route_of_one_user_and_other_subsets_stay_as_they_are(
    rollouts: RolloutCluster,
) -> None:
    admin, space = rollouts.admin, rollouts.space
    for version in ("v1", "v2"):
        made = reviews(version, f"reviews:{version}")
        await admin.apply(rollouts.deployment(f"reviews-{version}"), made, "gitops")
    ports, selector = [{"port": 9080}], {"app": "reviews"}
    service = {"metadata": {"name": "reviews"}, "spec": {"ports": ports, "selector": selector}}
    await admin.create(space.path("services"), service)
    for plural, kind, spec in (
        ("virtualservices", "VirtualService", REVIEWS),
        ("destinationrules", "DestinationRule", RULE),
    ):
        made = {"apiVersion": ISTIO, "kind": kind, "metadata": {"name": "reviews"}, "spec": spec}
        await admin.create(space.path(plural, api=ISTIO), made)
    before = await admin.get(rollouts.route("reviews"))
    spec = {
        "targetRef": {"name": "reviews-v1"},
        "service": {"name": "reviews", "port": 9080},
        "vsName": "reviews",
        "routes": ["all"],
        "destinationRule": "reviews",
        "delay": 0.1,
        "strategy": {"paces": [{"weight": 50, "approve": True}]},
    }
    canary = {"apiVersion": API, "kind": "IstioCanaryDeployment", "metadata": {"name": "reviews"}}
    where = rollouts.path("reviews", "istiocanarydeployments")
    async with rollouts.operating() as running:
        await rollouts.create({**canary, "spec": spec}, "istiocanarydeployments")
        await rollouts.until_so(where, lambda obj: "no route named all" in told(obj))
        await admin.patch(where, {"spec": {"subset": "v1"}})
        await rollouts.until("reviews", phase="Stable", plural="istiocanarydeployments")
        changed = reviews("v1", "reviews:v1.1")
        await admin.apply(rollouts.deployment("reviews-v1"), changed, "gitops")
        await rollouts.until("reviews", phase="AwaitingApproval", plural="istiocanarydeployments")
        await running.settled()

        http = (await admin.get(rollouts.route("reviews")))["spec"]["http"]
        assert http[0] == before["spec"]["http"][0]
        assert http[1]["route"] == [
            {"destination": {"host": "reviews", "subset": "v1"}, "weight": 50},
            {"destination": {"host": "reviews-canary"}, "weight": 50},
        ]
        policy = await admin.get(space.path("destinationrules", "reviews-canary", api=ISTIO))
        assert policy["spec"]["trafficPolicy"] == RULE["trafficPolicy"]
        await admin.delete(where)
        await admin.wait_until_gone(where)

    assert (await admin.get(rollouts.route("reviews")))["spec"] == before["spec"]
