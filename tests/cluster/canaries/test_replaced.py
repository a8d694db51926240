"""A tool that replaces the target whole: nobody gets its version but by a canary."""

import pytest

from tests.cluster.canaries.rollout_cluster import RolloutCluster
from tests.cluster.canaries.test_adopting import deployment, held_at, images, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster
TOOLS = ["replace", "delete and create"]


async def replaced(theirs: RolloutCluster, image: str, tool: str) -> None:
    where = theirs.deployment("shop")
    if tool == "replace":
        # As `kubectl replace`, `helm upgrade --force` and `Replace=true` of Argo CD.
        await theirs.admin.replace(where, deployment(image))
        return
    await theirs.admin.delete(where)
    await theirs.admin.wait_until_gone(where)
    await theirs.admin.create(where.rpartition("/")[0], deployment(image))


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("away", [False, True], ids=["watched", "while nobody runs"])
async def test_the_version_of_a_replaced_target_becomes_a_canary(
    theirs: RolloutCluster,
    tool: str,
    away: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    target = theirs.deployment("shop")
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await theirs.until_so(target, lambda obj: held_at(obj, "shop:1"))
        await running.settled()
        if not away:
            await replaced(theirs, "shop:2", tool)
            await _until_a_canary(theirs)
    if away:
        await replaced(theirs, "shop:2", tool)
        async with theirs.operating("another"):
            await _until_a_canary(theirs)


async def _until_a_canary(theirs: RolloutCluster) -> None:
    target = theirs.deployment("shop")
    await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
    await theirs.until_so(target, lambda obj: held_at(obj, "shop:2"))
    assert await images(theirs) == {"shop:1"}
    assert await theirs.weights("front") == [50, 50]
    assert "Replaced" in await theirs.reasons("shop")
    await theirs.ask("shop", approve="1")
    await theirs.until("shop", phase="Stable", stableVersion="shop:2")
    assert await images(theirs) == {"shop:2"}


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_run_goes_on_beside_a_replaced_target(theirs: RolloutCluster, tool: str) -> None:
    target = theirs.deployment("shop")
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(target, deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
        await running.settled()
        # The same manifest once more, as a tool does that replaces with each sync.
        await replaced(theirs, "shop:2", tool)

        await theirs.until_so(target, lambda obj: held_at(obj, "shop:2"))
        await running.settled()
        found = await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
        assert found["status"]["stableVersion"] == "shop:1"
        assert await images(theirs) == {"shop:1"}
        assert await theirs.weights("front") == [50, 50]
        await theirs.ask("shop", approve="1")
        await theirs.until("shop", phase="Stable", stableVersion="shop:2")
