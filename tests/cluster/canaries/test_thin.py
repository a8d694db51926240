"""The whole way on a real API server: founded, changed, taken through its steps, promoted."""

import pytest

from tests.cluster.canaries.scene import Scene, canary

pytestmark = pytest.mark.cluster


async def test_a_new_image_is_taken_through_its_steps_and_promoted(scene: Scene) -> None:
    await scene.create(canary())

    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="Stable", stableVersion="shop:2")
        await ship.settled()

    primary = await scene.admin.get(scene.deployment("shop-deployment"))
    assert primary["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:2"
    assert {"RolloutStarted", "StepReached", "Promoted"} <= await scene.reasons("shop")
