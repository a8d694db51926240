"""Rollouts beside others: an autoscaler, a group, a Service that is the route, a field."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.scene import Scene, canary, template

pytestmark = pytest.mark.cluster

CALM = {"paces": [{"weight": 50, "approve": True}]}


def named(name: str, **spec: object) -> client.Json:
    """A rollout whose pods are its own."""
    made = canary(name)
    made["spec"] |= spec
    work = made["spec"]["deploymentSpec"]
    work["selector"] = {"matchLabels": {"app": name}}
    work["template"]["metadata"]["labels"] = {"app": name}
    return made


async def test_an_autoscaler_decides_on_the_primary_and_the_canary_follows(scene: Scene) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop-deployment"}
    scaler = {
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9},
    }
    where = scene.space.path("horizontalpodautoscalers", api="autoscaling/v2")
    await scene.admin.create(where, scaler)
    await scene.create(canary(strategy=CALM))
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        scale = {"spec": {"replicas": 4}}
        await scene.admin.patch(f"{scene.deployment('shop-deployment')}/scale", scale)
        await scene.until_so(
            scene.deployment("shop-deployment"),
            lambda obj: (obj.get("status") or {}).get("readyReplicas") == 4,
        )
        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="AwaitingApproval")
        pods = await scene.admin.get(scene.deployment("shop-canary-deployment"))
        assert pods["spec"]["replicas"] == 2
        await scene.ask("shop", approve="1")
        await scene.until("shop", phase="Stable", stableVersion="shop:2")
        await ship.settled()

    primary = await scene.admin.get(scene.deployment("shop-deployment"))
    assert primary["spec"]["replicas"] == 4


async def test_a_service_alone_moves_all_requests_and_back(scene: Scene) -> None:
    await scene.create(canary(provider={"replicas": {"delay": 0.1}}, strategy=CALM))
    service = scene.space.path("services", "shop-service")
    async with scene.operating():
        await scene.until("shop", phase="Stable")
        home = await scene.admin.get(service)
        assert home["spec"]["selector"] == {"app": "shop", "fairlead.dev/slot": "primary"}
        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="AwaitingApproval")
        shared = await scene.admin.get(service)
        assert shared["spec"]["selector"] == {"app": "shop"}
        await scene.ask("shop", approve="1")
        await scene.until("shop", phase="Stable", stableVersion="shop:2")

    assert (await scene.admin.get(service))["spec"]["selector"] == home["spec"]["selector"]


async def test_members_of_a_group_know_each_other_by_their_objects(scene: Scene) -> None:
    group = {"name": "front", "members": ["shop", "till"]}
    for name in ("shop", "till"):
        await scene.create(named(name, group=group))
    async with scene.operating():
        for name in ("shop", "till"):
            await scene.until(name, phase="Stable")
        for name in ("shop", "till"):
            found = await scene.admin.get(scene.path(name))
            found["spec"]["deploymentSpec"]["template"] = template("shop:2", app=name)
            await scene.admin.replace(scene.path(name), found)

        for name in ("shop", "till"):
            await scene.until(name, phase="Stable", stableVersion="shop:2")


async def test_the_field_pauses_and_lets_go_on(scene: Scene) -> None:
    await scene.create(canary(strategy={"paces": [{"weight": 50, "pause": "1s"}]}))
    async with scene.operating():
        await scene.until("shop", phase="Stable")
        found = await scene.admin.get(scene.path("shop"))
        found["spec"]["paused"] = True
        found["spec"]["deploymentSpec"]["template"] = template("shop:2")
        await scene.admin.replace(scene.path("shop"), found)
        await scene.until("shop", phase="Paused")

        await scene.admin.patch(scene.path("shop"), {"spec": {"paused": False}})
        await scene.until("shop", phase="Stable", stableVersion="shop:2")


async def test_a_kept_revision_is_brought_back_by_its_name(scene: Scene) -> None:
    await scene.create(canary())
    async with scene.operating():
        first = await scene.until("shop", phase="Stable")
        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="Stable", stableVersion="shop:2")

    # By an operator that remembers nothing: the cluster keeps the template.
    async with scene.operating("another"):
        await scene.ask("shop", rollback=first["status"]["stableRevision"])
        await scene.until("shop", stableVersion="shop:1")

    primary = await scene.admin.get(scene.deployment("shop-deployment"))
    assert primary["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:1"
