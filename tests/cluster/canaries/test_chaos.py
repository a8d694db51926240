"""A target's whole story while requests fail, watches break and operators die: nothing is lost."""

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import AsyncIterator

import pytest

from fairlead.kubernetes.client.config import Connection
from tests.cluster import client
from tests.cluster.canaries.hold import policy_in_force
from tests.cluster.canaries.rollout_cluster import RolloutCluster, weights
from tests.cluster.canaries.test_adopting import deployment, theirs
from tests.cluster.canaries.test_at_rest import at_rest, shipped
from tests.cluster.proxy import Fault, Lost, Proxy

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster
OBJECTS = ".*/(deployments|virtualservices|canarydeployments|controllerrevisions|services).*"
WRITE = Fault(verb="patch|create|update|delete", path=OBJECTS)
MISHAPS = [
    *(dataclasses.replace(WRITE, status=status) for status in (409, 429, 500)),
    *(dataclasses.replace(WRITE, lost=lost) for lost in Lost),
]


@contextlib.asynccontextmanager
async def trouble(proxy: Proxy, seed: int) -> AsyncIterator[None]:
    """One write in a few fails, and now and then all watches break."""
    chance = random.Random(seed)

    async def stir() -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            # Not more than one waits: whoever writes once has had its share.
            proxy.clear()
            proxy.inject(chance.choice(MISHAPS))
            if chance.random() < 0.1:
                proxy.cut_watches()

    task = asyncio.create_task(stir())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        proxy.clear()


@contextlib.asynccontextmanager
async def dying(theirs: RolloutCluster, seed: int) -> AsyncIterator[None]:
    """One operator after the other, each with an empty store and a short life."""
    chance = random.Random(seed)

    async def live() -> None:
        for number in range(1_000):
            async with theirs.operating(f"life-{number}"):
                await asyncio.sleep(chance.uniform(3.0, 9.0))

    task = asyncio.create_task(live())
    try:
        yield
    finally:
        task.cancel()
        ended = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError), ended


@pytest.mark.requirement("canary R6", "canary R19", "canary R23")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "paused"])
async def test_a_target_is_held_promoted_replaced_and_given_back(
    theirs: RolloutCluster,
    proxy: Proxy,
    seed: int,
    guarded: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    identity = theirs.connection.credentials
    connection = Connection(proxy.url, identity, namespace=theirs.space.name)
    rough = dataclasses.replace(theirs, connection=connection)
    target, route, admin = theirs.deployment("shop"), theirs.route("front"), theirs.admin
    before = await admin.get(route)

    async def until(image: str, **status: str) -> None:
        await theirs.until("shop", 120, "canarydeployments", **status)
        assert await shipped(theirs) == {image: 2}

    def held(obj: client.Json) -> bool:
        return bool(obj["spec"].get("paused"))

    async with contextlib.AsyncExitStack() as stack:
        if guarded:
            await stack.enter_async_context(policy_in_force(theirs))
        await stack.enter_async_context(trouble(proxy, seed))
        await stack.enter_async_context(dying(rough, seed))
        await admin.wait_for(target, at_rest if guarded else held, 40)

        await admin.apply(target, deployment("shop:2"), "gitops")
        await until("shop:1", phase="AwaitingApproval", canaryVersion="shop:2")
        await admin.wait_for(route, lambda obj: weights(obj) == [50, 50], 120)
        await theirs.ask("shop", approve="1")
        await theirs.until("shop", 180, phase="Stable", stableVersion="shop:2")
        await admin.wait_for(target, at_rest if guarded else held, 120)

        await admin.replace(target, deployment("shop:3"))
        await theirs.until("shop", 180, phase="AwaitingApproval", canaryVersion="shop:3")
        await admin.wait_for(target, held, 120)
        await admin.delete(theirs.path("shop"))
        await admin.wait_until_gone(theirs.path("shop"))

    given = await admin.get(target)
    assert not given["spec"].get("paused")
    told = given["metadata"].get("annotations") or {}
    assert not [key for key in told if key.startswith("fairlead.dev")]
    assert (await admin.get(route))["spec"] == before["spec"]
