"""A target that an autoscaler scales: a rollback waits for no pod that does not come."""

import asyncio

import pytest

from tests.cluster.canaries.rollout_cluster import RolloutCluster, weights
from tests.cluster.canaries.test_adopting import deployment, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster


async def autoscaled(theirs: RolloutCluster, most: int, image: str = "shop:1") -> None:
    """The target belongs to an autoscaler, so its owner says nothing of replicas."""
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    spec = {"scaleTargetRef": ref, "minReplicas": 1, "maxReplicas": most}
    where = theirs.space.path("horizontalpodautoscalers", api="autoscaling/v2")
    await theirs.admin.create(where, {"metadata": {"name": "shop"}, "spec": spec})
    await apply(theirs, image)


async def apply(theirs: RolloutCluster, image: str) -> None:
    made = deployment(image)
    del made["spec"]["replicas"]
    await theirs.admin.apply(theirs.deployment("shop"), made, "gitops")


async def scale(theirs: RolloutCluster, count: int) -> None:
    where = f"{theirs.deployment('shop')}/scale"
    await theirs.admin.patch(where, {"spec": {"replicas": count}})
    await theirs.until_ready("shop", count)


async def test_a_failing_canary_is_emptied_at_once_beside_a_primary_that_cannot_grow(
    theirs: RolloutCluster,
) -> None:
    await autoscaled(theirs, most=2)
    await scale(theirs, 2)
    clock = asyncio.get_running_loop().time
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        await apply(theirs, "shop:2")
        await theirs.until("shop", phase="AwaitingApproval")
        asked = clock()
        await theirs.ask("shop", abort="1")
        await theirs.until_so(theirs.route("front"), lambda obj: weights(obj) == [100, 0])
        waited = clock() - asked
        await theirs.until("shop", phase="RolledBack")

    assert (await theirs.admin.get(theirs.deployment("shop")))["spec"]["replicas"] == 2
    assert waited < 15


async def test_a_primary_grows_before_it_takes_all_traffic_back(theirs: RolloutCluster) -> None:
    await autoscaled(theirs, most=9)
    await scale(theirs, 6)
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await apply(theirs, "shop:2")
        await theirs.until("shop", phase="AwaitingApproval")
        # As an autoscaler does that sees half of the load.
        await scale(theirs, 2)
        await theirs.ask("shop", approve="1")
        await theirs.until("shop", phase="Stable", stableVersion="shop:2")
        await running.settled()
        found = await theirs.admin.get(theirs.deployment("shop"))
        # Nobody but the autoscaler has a say in the scale.
        assert found["spec"]["replicas"] == 6
        assert not [
            one
            for one in found["metadata"]["managedFields"]
            if one["manager"] == "fairlead" and "f:replicas" in one["fieldsV1"].get("f:spec", {})
        ]
