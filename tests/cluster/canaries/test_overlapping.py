"""Deployments that select the same pods: said at the object, and well again when one goes."""

from typing import Any

import pytest

from tests.cluster import client
from tests.cluster.canaries.scene import Scene, canary, template
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


async def come(scene: Scene, selector: client.Json, labels: client.Json) -> None:
    work = {**template("till:1"), "metadata": {"labels": labels}}
    spec = {"replicas": 1, "selector": selector, "template": work}
    where = scene.space.path("deployments", api="apps/v1")
    await scene.admin.create(where, {"metadata": {"name": "till"}, "spec": spec})
    await scene.until_so(scene.path("shop"), lambda obj: "the Deployment till" in told(obj))


async def go(scene: Scene) -> None:
    await scene.admin.delete(scene.deployment("till"))
    await scene.until_so(scene.path("shop"), lambda obj: not told(obj))


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(("selector", "labels"), OTHERS, ids=IDS)
async def test_a_version_waits_until_the_other_is_gone(
    scene: Scene, selector: client.Json, labels: client.Json
) -> None:
    await scene.create(shop())
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        await come(scene, selector, labels)
        await scene.admin.patch(
            scene.path("shop"), {"spec": {"deploymentSpec": {"template": template("shop:2")}}}
        )
        await ship.settled()
        found = await scene.admin.get(scene.path("shop"))
        assert found["status"]["stableVersion"] == "shop:1"
        assert await scene.weights("shop") == [100, 0]
        assert "InvalidSpec" in await scene.reasons("shop")

        await go(scene)
        await scene.until("shop", phase="Stable", stableVersion="shop:2")


@pytest.mark.requirement("canary R8")
async def test_a_run_is_held_and_goes_on_when_the_other_is_gone(scene: Scene) -> None:
    await scene.create(shop(strategy={"paces": [{"weight": 50, "pause": "3s"}]}))
    async with scene.operating():
        await scene.until("shop", phase="Stable")
        await scene.admin.patch(
            scene.path("shop"), {"spec": {"deploymentSpec": {"template": template("shop:2")}}}
        )
        await scene.until("shop", canaryWeight=50)
        await come(scene, {"matchLabels": TIER}, TIER)
        await scene.until("shop", phase="Paused")
        assert await scene.weights("shop") == [50, 50]

        await go(scene)
        await scene.until("shop", phase="Stable", stableVersion="shop:2")


@pytest.mark.requirement("canary R8")
async def test_a_new_object_makes_no_child_until_the_other_is_gone(scene: Scene) -> None:
    async with scene.operating() as ship:
        deployments = scene.space.path("deployments", api="apps/v1")
        work = {**template("till:1"), "metadata": {"labels": TIER}}
        spec = {"replicas": 1, "selector": {"matchLabels": TIER}, "template": work}
        await scene.admin.create(deployments, {"metadata": {"name": "till"}, "spec": spec})
        await scene.create(shop())
        await scene.until_so(scene.path("shop"), lambda obj: "the Deployment till" in told(obj))
        await ship.settled()
        found = (await scene.admin.get(deployments))["items"]
        assert [one["metadata"]["name"] for one in found] == ["till"]

        await go(scene)
        await scene.until("shop", phase="Stable")
