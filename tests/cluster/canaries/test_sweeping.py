"""Two kinds before one machine: what went while no operator ran ends, and nothing else."""

import pytest

from fairlead.engine import visibility
from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import (
    RolloutCluster,
    RunningOperator,
    canary,
    istio_canary,
)
from tests.cluster.canaries.test_together import named

pytestmark = pytest.mark.cluster

PLURALS = {"shop": "canarydeployments", "till": "istiocanarydeployments"}


def till() -> client.Json:
    """The same as a rollout of the other kind, with pods of its own."""
    spec = named("till")["spec"]
    del spec["provider"]
    return istio_canary("till", **spec)


async def streams(running: RunningOperator, *, ended: bool) -> set[str]:
    """The names of objects whose rollouts have ended, or have not."""
    engine = running.operator.engine
    assert engine is not None
    which = visibility.StreamFilter(machine="rollout", ended=ended)
    found = await engine.read(lambda store: visibility.streams(store, which))
    return {one.name.split("/")[2] for one in found}


@pytest.mark.requirement("canary R19")
@pytest.mark.parametrize("gone", ["shop", "till"])
async def test_only_the_stream_of_the_object_that_went_is_ended(
    rollouts: RolloutCluster, gone: str
) -> None:
    stays = next(name for name in PLURALS if name != gone)
    await rollouts.create(canary("shop"), PLURALS["shop"])
    await rollouts.create(till(), PLURALS["till"])
    async with rollouts.operating() as running:
        for name, plural in PLURALS.items():
            await rollouts.until(name, plural=plural, phase="Stable")
        await running.settled()
        assert await streams(running, ended=False) == set(PLURALS)

    await rollouts.admin.delete(rollouts.path(gone, PLURALS[gone]))
    await rollouts.admin.wait_until_gone(rollouts.path(gone, PLURALS[gone]))

    async with rollouts.operating() as running:
        await running.settled()
        assert await streams(running, ended=True) == {gone}
        assert await streams(running, ended=False) == {stays}
        found = await rollouts.admin.get(rollouts.path(stays, PLURALS[stays]))
        assert found["status"]["phase"] == "Stable"


@pytest.mark.requirement("canary R19")
async def test_one_of_the_other_kind_under_the_same_name_is_another_one(
    rollouts: RolloutCluster,
) -> None:
    """Both stand at `rollout/NAMESPACE/shop/…`, and only the UID tells them apart."""
    await rollouts.create(canary("shop"), PLURALS["shop"])
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        await running.settled()
    await rollouts.admin.delete(rollouts.path("shop"))
    await rollouts.admin.wait_until_gone(rollouts.deployment("shop-deployment"))
    await rollouts.create(istio_canary("shop"), PLURALS["till"])

    async with rollouts.operating() as running:
        await rollouts.until("shop", plural=PLURALS["till"], phase="Stable")
        await running.settled()
        assert await streams(running, ended=True) == {"shop"}
        assert await streams(running, ended=False) == {"shop"}
