"""New pods get traffic when the proxies had time to learn of them, and no sooner."""

import asyncio

import pytest

from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary, weights

pytestmark = pytest.mark.cluster
DELAY = 2.0


async def test_a_new_primary_waits_for_the_proxies(rollouts: RolloutCluster) -> None:
    clock = asyncio.get_running_loop().time
    name = "shop-deployment"
    made = canary(provider={"istio": {"delay": DELAY}}, strategy={"steps": [100]})
    made["spec"]["deploymentSpec"]["minReadySeconds"] = 1

    def is_new(obj: dict[str, dict[str, int]]) -> bool:
        status = obj["status"]
        seen = status.get("observedGeneration", 0) > first
        return seen and status.get("updatedReplicas") == status.get("readyReplicas") == 2

    async with rollouts.operating():
        await rollouts.create(made)
        await rollouts.until("shop", phase="Stable")
        first = (await rollouts.admin.get(rollouts.deployment(name)))["metadata"]["generation"]
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until_so(rollouts.route("shop"), lambda obj: weights(obj) == [0, 100])
        await rollouts.until_so(rollouts.deployment(name), is_new)
        ready = clock()
        await rollouts.until_so(rollouts.route("shop"), lambda obj: weights(obj) == [100, 0])
        waited = clock() - ready
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")

    assert waited >= DELAY - 0.3
