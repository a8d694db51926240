"""A spec made senseless on the way, where no webhook stands: the last one that made sense holds."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary

pytestmark = pytest.mark.cluster

CALM = {"paces": [{"weight": 50, "approve": True}]}
DOWN = {"strategy": {"steps": [50, 20], "paces": None}}
TOLD = "spec.strategy: weights of steps go down"
BROKEN = [
    (DOWN, TOLD),
    ({"deploymentSpec": {"selector": {"matchLabels": {"app": "till"}}}}, "selector.matchLabels"),
    ({"serviceSpec": {"ports": None}}, "spec.serviceSpec.ports"),
    ({"provider": {"istio": {"vsName": "nowhere"}}}, "spec.provider.istio.vsName"),
]


def told(obj: client.Json) -> str:
    """Why the object is not accepted; empty where it is."""
    found = (obj.get("status") or {}).get("conditions") or ()
    refused = [one for one in found if one["type"] == "Accepted" and one["status"] == "False"]
    return refused[0]["message"] if refused else ""


async def midway(rollouts: RolloutCluster) -> client.Json:
    """Version 2 has half of the requests; answers the spec that made sense."""
    await rollouts.create(canary(strategy=CALM))
    await rollouts.until("shop", phase="Stable")
    await rollouts.set_image("shop", "shop:2")
    found = await rollouts.until("shop", phase="AwaitingApproval")
    spec: client.Json = found["spec"]
    return spec


async def held(rollouts: RolloutCluster, why: str) -> None:
    """Until the rollout is paused, and its object says why."""
    await rollouts.until("shop", phase="Paused")
    await rollouts.until_so(rollouts.path("shop"), lambda obj: why in told(obj))


async def mended(rollouts: RolloutCluster, spec: client.Json) -> None:
    found = await rollouts.admin.get(rollouts.path("shop"))
    await rollouts.admin.replace(rollouts.path("shop"), {**found, "spec": spec})


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(("change", "why"), BROKEN, ids=["steps", "selector", "port", "route"])
async def test_a_rollback_stays_possible(
    rollouts: RolloutCluster, change: client.Json, why: str
) -> None:
    async with rollouts.operating() as running:
        await midway(rollouts)
        await rollouts.admin.patch(rollouts.path("shop"), {"spec": change})
        await held(rollouts, why)
        assert await rollouts.weights("shop") == [50, 50]

        await rollouts.ask("shop", abort="1")
        await rollouts.until("shop", phase="RolledBack")
        await rollouts.admin.wait_until_gone(rollouts.deployment("shop-canary-deployment"))
        await running.settled()

    assert await rollouts.weights("shop") == [100, 0]
    assert why in told(await rollouts.admin.get(rollouts.path("shop")))
    assert "InvalidSpec" in await rollouts.reasons("shop")


@pytest.mark.requirement("canary R8", "canary R23")
async def test_an_operator_that_remembers_nothing_still_rolls_back(
    rollouts: RolloutCluster,
) -> None:
    async with rollouts.operating():
        await midway(rollouts)
    await rollouts.admin.patch(rollouts.path("shop"), {"spec": DOWN})

    async with rollouts.operating("another"):
        await held(rollouts, TOLD)
        await rollouts.ask("shop", abort="1")
        await rollouts.until("shop", phase="RolledBack")
        await rollouts.admin.wait_until_gone(rollouts.deployment("shop-canary-deployment"))

    assert await rollouts.weights("shop") == [100, 0]


@pytest.mark.requirement("canary R8")
async def test_no_step_begins_until_it_is_mended_and_then_it_goes_on(
    rollouts: RolloutCluster,
) -> None:
    async with rollouts.operating() as running:
        spec = await midway(rollouts)
        await rollouts.admin.patch(rollouts.path("shop"), {"spec": DOWN})
        await held(rollouts, TOLD)
        await rollouts.ask("shop", approve="1", resume="1")
        await running.settled()
        found = await rollouts.admin.get(rollouts.path("shop"))
        assert found["status"]["phase"] == "Paused"
        assert await rollouts.weights("shop") == [50, 50]

        await mended(rollouts, spec)
        done = await rollouts.until("shop", phase="Stable", stableVersion="shop:2")
        await rollouts.until_so(rollouts.path("shop"), lambda obj: not told(obj))

    assert "accepted" not in done["status"]
