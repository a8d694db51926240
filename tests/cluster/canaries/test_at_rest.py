"""Targets at rest: healthy to those who look, and held by whoever changes them."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.cluster import client
from tests.cluster.canaries.hold import policy_in_force
from tests.cluster.canaries.rollout_cluster import RolloutCluster, template
from tests.cluster.canaries.test_adopting import deployment, images, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster


@pytest.fixture
async def guarded(theirs: RolloutCluster) -> AsyncIterator[RolloutCluster]:
    async with policy_in_force(theirs):
        yield theirs


def is_current(obj: client.Json) -> bool:
    """As kstatus has it (pkg/kstatus/status/core.go), and Flux by it."""
    status, spec = obj.get("status") or {}, obj["spec"]
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    progressing, available = conditions.get("Progressing", {}), conditions.get("Available", {})
    counts = ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")
    return (
        status.get("observedGeneration") == obj["metadata"]["generation"]
        and progressing.get("status") == "True"
        and progressing.get("reason") == "NewReplicaSetAvailable"
        and available.get("status") == "True"
        and all(status.get(key) == spec["replicas"] for key in counts)
    )


def is_healthy(obj: client.Json) -> bool:
    """As Argo CD has it (gitops-engine/pkg/health): one that is paused is Suspended."""
    return not obj["spec"].get("paused") and is_current(obj)


def at_rest(obj: client.Json) -> bool:
    held: str = (obj["metadata"].get("annotations") or {}).get("fairlead.dev/held", "")
    return held.startswith("rest/") and is_healthy(obj)


async def shipped(theirs: RolloutCluster) -> dict[str, int]:
    """Pods asked for by the target's own ReplicaSets, by their image."""
    found = await theirs.admin.get(theirs.space.path("replicasets", api="apps/v1"))
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"]
        for one in found["items"]
        if one["metadata"]["ownerReferences"][0]["name"] == "shop" and one["spec"]["replicas"]
    }


async def test_a_target_is_healthy_between_runs_and_held_in_them(guarded: RolloutCluster) -> None:
    where = guarded.deployment("shop")
    async with guarded.operating() as running:
        await guarded.until("shop", phase="Stable")
        await guarded.until_so(where, at_rest)
        await running.settled()
        before = await guarded.admin.get(where)

        await guarded.admin.apply(where, deployment("shop:2"), "gitops")
        assert (await guarded.admin.get(where))["spec"]["paused"] is True
        await guarded.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
        assert await shipped(guarded) == {"shop:1": 2}
        await guarded.ask("shop", approve="1")
        await guarded.until("shop", phase="Stable", stableVersion="shop:2")
        await guarded.until_so(where, at_rest)
        await running.settled()
        after = await guarded.admin.get(where)

        # As `kubectl rollout restart` asks for it.
        told = {"kubectl.kubernetes.io/restartedAt": "2026-11-19T12:00:00Z"}
        restart = {"spec": {"template": {"metadata": {"annotations": told}}}}
        await guarded.admin.patch(where, restart)
        await guarded.until("shop", phase="AwaitingApproval")
        assert await shipped(guarded) == {"shop:2": 2}

    assert is_current(before)
    assert is_current(after)


@pytest.mark.parametrize("tool", ["apply", "replace"])
async def test_a_change_while_nobody_runs_reaches_no_pod(
    guarded: RolloutCluster, tool: str
) -> None:
    where = guarded.deployment("shop")
    async with guarded.operating():
        await guarded.until("shop", phase="Stable")
        await guarded.until_so(where, at_rest)
    if tool == "apply":
        await guarded.admin.apply(where, deployment("shop:2"), "gitops")
    else:
        await guarded.admin.replace(where, deployment("shop:2"))

    async with guarded.operating("another"):
        found = await guarded.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")

    assert found["status"]["stableVersion"] == "shop:1"
    assert await images(guarded) == {"shop:1"}
    assert await shipped(guarded) == {"shop:1": 2}


async def test_a_change_that_is_reverted_leaves_a_target_at_rest(guarded: RolloutCluster) -> None:
    where = guarded.deployment("shop")
    async with guarded.operating():
        await guarded.until("shop", phase="Stable")
        await guarded.until_so(where, at_rest)
        await guarded.admin.apply(where, deployment("shop:2"), "gitops")
        await guarded.until("shop", phase="AwaitingApproval")
        await guarded.admin.apply(where, deployment("shop:1"), "gitops")
        await guarded.until("shop", phase="Stable", stableVersion="shop:1")
        await guarded.until_so(where, at_rest)
        await guarded.admin.delete(guarded.path("shop"))
        await guarded.admin.wait_until_gone(guarded.path("shop"))

    target = await guarded.admin.get(where)
    assert not [key for key in target["metadata"]["annotations"] if key.startswith("fairlead.dev")]
    assert await shipped(guarded) == {"shop:1": 2}


async def names_of(theirs: RolloutCluster, plural: str, api: str) -> set[str]:
    found = await theirs.admin.get(theirs.space.path(plural, api=api))
    return {one["metadata"]["name"] for one in found["items"]}


def reading(image: str) -> client.Json:
    """A target whose pods read a ConfigMap and a Secret."""
    made = deployment(image)
    made["spec"]["template"] = template(image)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["envFrom"] = [{"configMapRef": {"name": "shop"}}, {"secretRef": {"name": "shop"}}]
    return made


@pytest.mark.requirement("canary R19")
@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "paused"])
async def test_adopting_a_target_that_reads_configs_restarts_nothing(
    theirs: RolloutCluster,
    is_guarded: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    where, admin = theirs.deployment("shop"), theirs.admin
    for plural, field in (("configmaps", "data"), ("secrets", "stringData")):
        made = {"metadata": {"name": "shop"}, field: {"MODE": "one"}}
        await admin.create(theirs.space.path(plural), made)
    await admin.apply(where, reading("shop:1"), "gitops")
    await theirs.until_so(where, is_current)
    before, pods = await admin.get(where), await names_of(theirs, "pods", "v1")
    async with contextlib.AsyncExitStack() as stack:
        if is_guarded:
            await stack.enter_async_context(policy_in_force(theirs))
        running = await stack.enter_async_context(theirs.operating())
        await theirs.until("shop", phase="Stable")
        held = "rest/" if is_guarded else "held/"
        await theirs.until_so(
            where,
            lambda obj: obj["metadata"]["annotations"]["fairlead.dev/held"].startswith(held),
        )
        await running.settled()
        adopted = await admin.get(where)
        # Nobody but its owner has a say in what the owner's manifest says.
        await admin.apply(where, {**reading("shop:1")}, "gitops")
        await admin.delete(theirs.path("shop"))
        await admin.wait_until_gone(theirs.path("shop"))
        given = await theirs.until_so(where, is_healthy)

    for found in (adopted, given):
        assert found["spec"]["template"] == before["spec"]["template"]
    assert await shipped(theirs) == {"shop:1": 2}
    assert await names_of(theirs, "pods", "v1") == pods
    managers = {one["manager"] for one in given["metadata"]["managedFields"]}
    assert "fairlead" not in managers


async def test_its_owner_has_no_conflict_with_us_after_a_run(guarded: RolloutCluster) -> None:
    where, admin = guarded.deployment("shop"), guarded.admin

    def manifest(image: str) -> client.Json:
        made = deployment(image)
        made["spec"]["paused"] = False
        return made

    async with guarded.operating() as running:
        await guarded.until("shop", phase="Stable")
        await guarded.until_so(where, at_rest)
        await admin.apply(where, deployment("shop:2"), "gitops")
        await guarded.until("shop", phase="AwaitingApproval")
        await guarded.ask("shop", approve="1")
        await guarded.until("shop", phase="Stable", stableVersion="shop:2")
        await guarded.until_so(where, at_rest)
        await running.settled()
        # Without force: a conflict is refused with 409.
        await admin.apply(where, manifest("shop:2"), "gitops")
        await admin.delete(guarded.path("shop"))
        await admin.wait_until_gone(guarded.path("shop"))
        await admin.apply(where, manifest("shop:3"), "gitops")

    await guarded.until_so(where, is_healthy)
    assert await shipped(guarded) == {"shop:3": 2}
