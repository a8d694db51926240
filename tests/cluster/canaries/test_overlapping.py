"""Deployments that select the same pods: said at the object, and well again when one goes."""

from typing import Any

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary, template
from tests.cluster.canaries.test_senseless import told

pytestmark = pytest.mark.cluster

APP, TIER = {"app": "shop"}, {"tier": "web"}
# Each would select pods of the shop, or has pods that the shop would select.
OTHERS = [
    ({"matchLabels": TIER}, TIER),
    ({"matchLabels": {**APP, "role": "debug"}}, {**APP, "role": "debug"}),
    ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["shop", "x"]}]}, APP),
    ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, TIER),
]
IDS = ["a part of ours", "more than ours", "in", "exists"]


def shop(**spec: Any) -> client.Json:
    """Pods with two labels, selected by one of them."""
    made = canary(**spec)
    made["spec"]["deploymentSpec"]["template"] = template("shop:1", **TIER)
    return made


async def come(rollouts: RolloutCluster, selector: client.Json, labels: client.Json) -> None:
    work = {**template("till:1"), "metadata": {"labels": labels}}
    spec = {"replicas": 1, "selector": selector, "template": work}
    where = rollouts.space.path("deployments", api="apps/v1")
    await rollouts.admin.create(where, {"metadata": {"name": "till"}, "spec": spec})
    await rollouts.until_so(rollouts.path("shop"), lambda obj: "Deployment till" in told(obj))


async def go(rollouts: RolloutCluster) -> None:
    await rollouts.admin.delete(rollouts.deployment("till"))
    await rollouts.until_so(rollouts.path("shop"), lambda obj: not told(obj))


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(("selector", "labels"), OTHERS, ids=IDS)
async def test_a_version_waits_until_the_other_is_gone(
    rollouts: RolloutCluster, selector: client.Json, labels: client.Json
) -> None:
    await rollouts.create(shop())
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        await come(rollouts, selector, labels)
        await rollouts.admin.patch(
            rollouts.path("shop"), {"spec": {"deploymentSpec": {"template": template("shop:2")}}}
        )
        await running.settled()
        found = await rollouts.admin.get(rollouts.path("shop"))
        assert found["status"]["stableVersion"] == "shop:1"
        assert await rollouts.weights("shop") == [100, 0]
        assert "InvalidSpec" in await rollouts.reasons("shop")

        await go(rollouts)
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")


@pytest.mark.requirement("canary R8")
async def test_a_run_is_held_and_goes_on_when_the_other_is_gone(rollouts: RolloutCluster) -> None:
    await rollouts.create(shop(strategy={"paces": [{"weight": 50, "pause": "3s"}]}))
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
        await rollouts.admin.patch(
            rollouts.path("shop"), {"spec": {"deploymentSpec": {"template": template("shop:2")}}}
        )
        await rollouts.until("shop", canaryWeight=50)
        await come(rollouts, {"matchLabels": TIER}, TIER)
        await rollouts.until("shop", phase="Paused")
        assert await rollouts.weights("shop") == [50, 50]

        await go(rollouts)
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")


@pytest.mark.requirement("canary R8")
async def test_a_new_object_makes_no_child_until_the_other_is_gone(
    rollouts: RolloutCluster,
) -> None:
    async with rollouts.operating() as running:
        deployments = rollouts.space.path("deployments", api="apps/v1")
        work = {**template("till:1"), "metadata": {"labels": TIER}}
        spec = {"replicas": 1, "selector": {"matchLabels": TIER}, "template": work}
        await rollouts.admin.create(deployments, {"metadata": {"name": "till"}, "spec": spec})
        await rollouts.create(shop())
        await rollouts.until_so(rollouts.path("shop"), lambda obj: "Deployment till" in told(obj))
        await running.settled()
        found = (await rollouts.admin.get(deployments))["items"]
        assert [one["metadata"]["name"] for one in found] == ["till"]

        await go(rollouts)
        await rollouts.until("shop", phase="Stable")
