"""A spec made senseless on the way, where no webhook stands: the last one that made sense holds."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.scene import Scene, canary

pytestmark = pytest.mark.cluster

CALM = {"paces": [{"weight": 50, "approve": True}]}
DOWN = {"strategy": {"steps": [50, 20], "paces": None}}
TOLD = "spec.strategy: steps that go down"
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


async def midway(scene: Scene) -> client.Json:
    """Version 2 has half of the requests; answers the spec that made sense."""
    await scene.create(canary(strategy=CALM))
    await scene.until("shop", phase="Stable")
    await scene.set_image("shop", "shop:2")
    found = await scene.until("shop", phase="AwaitingApproval")
    spec: client.Json = found["spec"]
    return spec


async def held(scene: Scene, why: str) -> None:
    """Until the rollout is paused, and its object says why."""
    await scene.until("shop", phase="Paused")
    await scene.until_so(scene.path("shop"), lambda obj: why in told(obj))


async def mended(scene: Scene, spec: client.Json) -> None:
    found = await scene.admin.get(scene.path("shop"))
    await scene.admin.replace(scene.path("shop"), {**found, "spec": spec})


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(("change", "why"), BROKEN, ids=["steps", "selector", "port", "route"])
async def test_the_way_home_stays_open(scene: Scene, change: client.Json, why: str) -> None:
    async with scene.operating() as ship:
        await midway(scene)
        await scene.admin.patch(scene.path("shop"), {"spec": change})
        await held(scene, why)
        assert await scene.weights("shop") == [50, 50]

        await scene.ask("shop", abort="1")
        await scene.until("shop", phase="TakenBack")
        await scene.admin.wait_until_gone(scene.deployment("shop-canary-deployment"))
        await ship.settled()

    assert await scene.weights("shop") == [100, 0]
    assert why in told(await scene.admin.get(scene.path("shop")))
    assert "InvalidSpec" in await scene.reasons("shop")


@pytest.mark.requirement("canary R8", "canary R23")
async def test_an_operator_that_remembers_nothing_finds_the_way_home(scene: Scene) -> None:
    async with scene.operating():
        await midway(scene)
    await scene.admin.patch(scene.path("shop"), {"spec": DOWN})

    async with scene.operating("another"):
        await held(scene, TOLD)
        await scene.ask("shop", abort="1")
        await scene.until("shop", phase="TakenBack")
        await scene.admin.wait_until_gone(scene.deployment("shop-canary-deployment"))

    assert await scene.weights("shop") == [100, 0]


@pytest.mark.requirement("canary R8")
async def test_no_step_begins_until_it_is_mended_and_then_it_goes_on(scene: Scene) -> None:
    async with scene.operating() as ship:
        spec = await midway(scene)
        await scene.admin.patch(scene.path("shop"), {"spec": DOWN})
        await held(scene, TOLD)
        await scene.ask("shop", approve="1", resume="1")
        await ship.settled()
        found = await scene.admin.get(scene.path("shop"))
        assert found["status"]["phase"] == "Paused"
        assert await scene.weights("shop") == [50, 50]

        await mended(scene, spec)
        done = await scene.until("shop", phase="Stable", stableVersion="shop:2")
        await scene.until_so(scene.path("shop"), lambda obj: not told(obj))

    assert "accepted" not in done["status"]
