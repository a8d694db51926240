"""A status that somebody else wrote: nothing is done by it, and the rollout goes on."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from tests.cluster import client
from tests.cluster import space as spaces
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary
from tests.cluster.canaries.test_running import midway
from tests.cluster.conftest import Connect
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster
STATUS_ONLY = [
    {
        "apiGroups": ["fairlead.dev"],
        "resources": ["canarydeployments/status"],
        "verbs": ["get", "patch", "update"],
    }
]


async def mallory(rollouts: RolloutCluster, connect: Connect) -> client.Client:
    """Somebody who may write statuses of canaries in this namespace, and nothing else."""
    account = await rollouts.space.account("mallory", STATUS_ONLY)
    return await connect(account.token)


async def forge(rollouts: RolloutCluster, hand: client.Client, **changes: Any) -> None:
    """Change what the status of `shop` remembers; `rollout` has changes of the record in it."""
    where = f"{rollouts.path('shop')}/status"
    found = await hand.get(where)
    memory = copy.deepcopy(found["status"]["memory"])
    memory["data"]["rollout"].update(changes.pop("rollout", {}))
    memory["data"].update(changes)
    await hand.patch(where, {"status": {"memory": memory}})


async def everywhere(rollouts: RolloutCluster) -> RolloutCluster:
    """The same, with the rights of an operator of all namespaces."""
    kinds = wiring.with_kinds(bootstrap.installation()).kinds
    own = rbac.status_key_rules("fairlead-operator-status")
    account = await rollouts.space.account("everywhere", own, rbac.rules(kinds))
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    return replace(rollouts, connection=replace(rollouts.connection, credentials=identity))


async def test_who_writes_a_status_in_one_namespace_moves_nothing_in_another(
    rollouts: RolloutCluster, connect: Connect, cluster: control_plane.ControlPlane
) -> None:
    other = await spaces.make(rollouts.admin, "victim", wait_for_account=cluster.has_controllers)
    theirs, ours = replace(rollouts, space=other), await everywhere(rollouts)
    await theirs.create(canary())
    await ours.create(canary())
    async with ours.operating(all_=True):
        victim = await theirs.until("shop", phase="Stable")
        await ours.until("shop", phase="Stable")
    before = await rollouts.admin.get(theirs.deployment("shop-deployment"))
    key = f"{other.name}/shop/{victim['metadata']['uid']}"
    version = victim["status"]["memory"]["data"]["rollout"]["stable"]
    asleep = {
        "order": 900,
        "version": version,
        "replicas": 0,
        "at_least": 0,
        "at": victim["metadata"]["creationTimestamp"],
    }

    forged = {"name": key, "replicas": 0, "stable": version, "primary": asleep, "order": 900}
    await forge(ours, await mallory(ours, connect), rollout=forged)
    async with ours.operating("another", all_=True) as running:
        await running.settled()
        await ours.set_image("shop", "shop:2")
        await ours.until("shop", phase="Stable", stableVersion="shop:2")
        await running.settled()

    after = await rollouts.admin.get(theirs.deployment("shop-deployment"))
    assert (after["spec"], after["metadata"]["generation"]) == (
        before["spec"],
        before["metadata"]["generation"],
    )
    assert "StatusNotAdopted" in await ours.reasons("shop")
    assert "StatusNotAdopted" not in await theirs.reasons("shop")
    await other.remove()


async def test_an_approval_that_was_written_into_the_status_is_none(
    rollouts: RolloutCluster, connect: Connect
) -> None:
    await midway(rollouts)

    await forge(rollouts, await mallory(rollouts, connect), approved=True)
    forged = await rollouts.admin.get(rollouts.path("shop"))
    async with rollouts.operating("another") as running:
        await rollouts.until_so(
            rollouts.path("shop"), lambda obj: obj["status"]["seal"] != forged["status"]["seal"]
        )
        found = await rollouts.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
        await running.settled()
        assert found["status"]["stableVersion"] == "shop:1"
        assert await rollouts.weights("shop") == [50, 50]
        assert "StatusNotAdopted" in await rollouts.reasons("shop")

        await rollouts.ask("shop", approve="1")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")


async def test_an_approval_whose_answer_was_taken_out_of_the_status_is_not_obeyed_again(
    rollouts: RolloutCluster, connect: Connect
) -> None:
    await midway(rollouts)
    async with rollouts.operating() as running:
        await rollouts.ask("shop", approve="1")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")
        await rollouts.set_image("shop", "shop:3")
        await rollouts.until("shop", phase="AwaitingApproval")
        await running.settled()

    hand, status = await mallory(rollouts, connect), f"{rollouts.path('shop')}/status"
    async with rollouts.operating("another") as running:
        # Of a process that has only read that it was done, and of the next, which cannot read it.
        await running.settled()
        await hand.patch(status, {"status": {"requests": None}})
        await running.settled()
        found = await rollouts.admin.get(rollouts.path("shop"))
        assert found["status"]["stableVersion"] == "shop:2"
    async with rollouts.operating("one more") as running:
        await rollouts.until_so(
            rollouts.path("shop"), lambda obj: obj["status"]["seal"] != found["status"]["seal"]
        )
        await rollouts.until("shop", phase="AwaitingApproval", canaryVersion="shop:3")
        await running.settled()
        found = await rollouts.admin.get(rollouts.path("shop"))
        assert found["status"]["stableVersion"] == "shop:2"
        assert "StatusNotAdopted" in await rollouts.reasons("shop")

        await rollouts.ask("shop", approve="2")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:3")


async def test_a_canary_that_was_never_seen_starts_anew_whatever_its_status_says(
    rollouts: RolloutCluster, connect: Connect
) -> None:
    hand = await mallory(rollouts, connect)
    await rollouts.create(canary())
    memory = {"shape": 1, "state": "Gone", "data": {"rollout": {"name": "other"}}}
    await hand.patch(f"{rollouts.path('shop')}/status", {"status": {"memory": memory}})

    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")

    assert "StatusNotAdopted" in await rollouts.reasons("shop")
