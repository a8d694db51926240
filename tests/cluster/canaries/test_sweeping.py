"""Two kinds before one machine: what went while no operator ran ends, and nothing else."""

import pytest

from fairlead.engine import library
from tests.cluster import client
from tests.cluster.canaries.scene import Scene, Ship, canary, istio_canary
from tests.cluster.canaries.test_together import named

pytestmark = pytest.mark.cluster

PLURALS = {"shop": "canarydeployments", "till": "istiocanarydeployments"}


def till() -> client.Json:
    """The same as a rollout of the other kind, with pods of its own."""
    spec = named("till")["spec"]
    del spec["provider"]
    return istio_canary("till", **spec)


async def streams(ship: Ship, *, ended: bool) -> set[str]:
    """The names of objects whose rollouts have ended, or have not."""
    engine = ship.operator.engine
    assert engine is not None
    which = library.StreamFilter(machine="rollout", ended=ended)
    found = await engine.read(lambda store: library.streams(store, which))
    return {one.name.split("/")[2] for one in found}


@pytest.mark.requirement("canary R19")
@pytest.mark.parametrize("gone", ["shop", "till"])
async def test_only_the_stream_of_the_object_that_went_is_ended(scene: Scene, gone: str) -> None:
    stays = next(name for name in PLURALS if name != gone)
    await scene.create(canary("shop"), PLURALS["shop"])
    await scene.create(till(), PLURALS["till"])
    async with scene.operating() as ship:
        for name, plural in PLURALS.items():
            await scene.until(name, plural=plural, phase="Stable")
        await ship.settled()
        assert await streams(ship, ended=False) == set(PLURALS)

    await scene.admin.delete(scene.path(gone, PLURALS[gone]))
    await scene.admin.wait_until_gone(scene.path(gone, PLURALS[gone]))

    async with scene.operating() as ship:
        await ship.settled()
        assert await streams(ship, ended=True) == {gone}
        assert await streams(ship, ended=False) == {stays}
        found = await scene.admin.get(scene.path(stays, PLURALS[stays]))
        assert found["status"]["phase"] == "Stable"


@pytest.mark.requirement("canary R19")
async def test_one_of_the_other_kind_under_the_same_name_is_another_one(scene: Scene) -> None:
    """Both stand at `rollout/NAMESPACE/shop/…`, and only the UID tells them apart."""
    await scene.create(canary("shop"), PLURALS["shop"])
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        await ship.settled()
    await scene.admin.delete(scene.path("shop"))
    await scene.admin.wait_until_gone(scene.deployment("shop-deployment"))
    await scene.create(istio_canary("shop"), PLURALS["till"])

    async with scene.operating() as ship:
        await scene.until("shop", plural=PLURALS["till"], phase="Stable")
        await ship.settled()
        assert await streams(ship, ended=True) == {"shop"}
        assert await streams(ship, ended=False) == {"shop"}
