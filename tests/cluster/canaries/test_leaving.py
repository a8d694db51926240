"""A canary that is deleted in mid-run: its pods stay until the proxies ask them no more."""

import asyncio

import pytest

from tests.cluster.canaries.rollout_cluster import RolloutCluster, weights
from tests.cluster.canaries.test_adopting import deployment, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster
DELAY = 3.0


@pytest.mark.parametrize("crash", [False, True], ids=["kept", "killed and lost"])
async def test_pods_outlive_the_weight_by_what_the_proxies_need(
    theirs: RolloutCluster,
    crash: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    provider = {"spec": {"provider": {"istio": {"delay": DELAY}}}}
    await theirs.admin.patch(theirs.path("shop"), provider)
    before = await theirs.admin.get(theirs.route("front"))
    clock = asyncio.get_running_loop().time
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        await theirs.admin.delete(theirs.path("shop"))
        await theirs.until_so(theirs.route("front"), lambda obj: weights(obj) == [100, 0])
        emptied = clock()
        if not crash:
            await _until_gone(theirs, emptied)
    if crash:
        async with theirs.operating("another"):
            await _until_gone(theirs, emptied)

    assert (await theirs.admin.get(theirs.route("front")))["spec"] == before["spec"]


async def _until_gone(theirs: RolloutCluster, emptied: float) -> None:
    clock = asyncio.get_running_loop().time
    while clock() < emptied + DELAY - 0.5:
        pods = await theirs.admin.get(theirs.deployment("shop-canary"))
        assert pods["status"]["readyReplicas"] >= 1
        assert (await theirs.admin.get(theirs.path("shop")))["metadata"]["finalizers"]
        await asyncio.sleep(0.2)
    await theirs.admin.wait_until_gone(theirs.path("shop"))
