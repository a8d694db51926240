"""Rollouts beside others: an autoscaler, a group, a Service that is the route, a field."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary, template

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


async def test_an_autoscaler_decides_on_the_primary_and_the_canary_follows(
    rollouts: RolloutCluster,
) -> None:
    await autoscaled(rollouts)
    await rollouts.create(canary(strategy=CALM))
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        scale = {"spec": {"replicas": 4}}
        await rollouts.admin.patch(f"{rollouts.deployment('shop-deployment')}/scale", scale)
        await rollouts.until_ready("shop-deployment", 4)
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="AwaitingApproval")
        pods = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))
        assert pods["spec"]["replicas"] == 2
        await rollouts.ask("shop", approve="1")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")
        await running.settled()

    primary = await rollouts.admin.get(rollouts.deployment("shop-deployment"))
    assert primary["spec"]["replicas"] == 4


async def test_the_canary_follows_when_the_autoscaler_grows_the_primary_within_a_step(
    rollouts: RolloutCluster,
) -> None:
    await autoscaled(rollouts)
    await rollouts.create(canary(strategy=CALM))
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="AwaitingApproval")
        before = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))

        # Kubernetes' own autoscaler has no metrics here; a new lower bound is a reason without.
        scaler = rollouts.space.path("horizontalpodautoscalers", "shop", api="autoscaling/v2")
        await rollouts.admin.patch(scaler, {"spec": {"minReplicas": 8}})
        await rollouts.until_ready("shop-deployment", 8)
        await rollouts.until_ready("shop-canary-deployment", 4)
        await running.settled()
        scaled = await rollouts.admin.get(scaler)
        after = await rollouts.until("shop", phase="AwaitingApproval")

    assert before["spec"]["replicas"] == 1
    assert scaled["status"]["desiredReplicas"] == 8
    assert after["status"]["canaryWeight"] == 50


async def autoscaled(rollouts: RolloutCluster) -> None:
    """The primary belongs to an autoscaler, one to nine."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop-deployment"}
    scaler = {
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9},
    }
    where = rollouts.space.path("horizontalpodautoscalers", api="autoscaling/v2")
    await rollouts.admin.create(where, scaler)


async def test_a_service_alone_moves_all_requests_and_back(rollouts: RolloutCluster) -> None:
    await rollouts.create(canary(provider={"replicas": {"delay": 0.1}}, strategy=CALM))
    service = rollouts.space.path("services", "shop-service")
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
        home = await rollouts.admin.get(service)
        assert home["spec"]["selector"] == {"app": "shop", "fairlead.dev/slot": "primary"}
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="AwaitingApproval")
        shared = await rollouts.admin.get(service)
        assert shared["spec"]["selector"] == {"app": "shop"}
        await rollouts.ask("shop", approve="1")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")

    assert (await rollouts.admin.get(service))["spec"]["selector"] == home["spec"]["selector"]


async def test_members_of_a_group_know_each_other_by_their_objects(
    rollouts: RolloutCluster,
) -> None:
    group = {"name": "front", "members": ["shop", "till"]}
    for name in ("shop", "till"):
        await rollouts.create(named(name, group=group))
    async with rollouts.operating():
        for name in ("shop", "till"):
            await rollouts.until(name, phase="Stable")
        for name in ("shop", "till"):
            found = await rollouts.admin.get(rollouts.path(name))
            found["spec"]["deploymentSpec"]["template"] = template("shop:2", app=name)
            await rollouts.admin.replace(rollouts.path(name), found)

        for name in ("shop", "till"):
            await rollouts.until(name, phase="Stable", stableVersion="shop:2")


async def test_the_field_pauses_and_lets_go_on(rollouts: RolloutCluster) -> None:
    await rollouts.create(canary(strategy={"paces": [{"weight": 50, "pause": "1s"}]}))
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
        found = await rollouts.admin.get(rollouts.path("shop"))
        found["spec"]["paused"] = True
        found["spec"]["deploymentSpec"]["template"] = template("shop:2")
        await rollouts.admin.replace(rollouts.path("shop"), found)
        await rollouts.until("shop", phase="Paused")

        await rollouts.admin.patch(rollouts.path("shop"), {"spec": {"paused": False}})
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")


async def test_a_kept_revision_is_brought_back_by_its_name(rollouts: RolloutCluster) -> None:
    await rollouts.create(canary())
    async with rollouts.operating():
        first = await rollouts.until("shop", phase="Stable")
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")

    # By an operator that remembers nothing: the cluster keeps the template.
    async with rollouts.operating("another"):
        await rollouts.ask("shop", rollback=first["status"]["stableRevision"])
        await rollouts.until("shop", stableVersion="shop:1")

    primary = await rollouts.admin.get(rollouts.deployment("shop-deployment"))
    assert primary["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:1"
