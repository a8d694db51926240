"""The policy that holds targets, in force in one namespace."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fairlead.areas.rollouts.kubernetes import hold_policy
from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster, template

POLICIES = "admissionregistration.k8s.io/v1"


@contextlib.asynccontextmanager
async def policy_in_force(rollouts: RolloutCluster) -> AsyncIterator[None]:
    """As `fairlead operator manifests` installs it for an operator of one namespace."""
    name, kind = f"{rollouts.space.name}-hold", "MutatingAdmissionPolicy"
    policy = client.path(POLICIES, "mutatingadmissionpolicies", name=name)
    binding = client.path(POLICIES, "mutatingadmissionpolicybindings", name=name)
    here = {"matchLabels": {"kubernetes.io/metadata.name": rollouts.space.name}}
    bound = {"policyName": name, "matchResources": {"namespaceSelector": here}}
    for where, suffix, spec in ((policy, "", hold_policy.spec()), (binding, "Binding", bound)):
        made = {"apiVersion": POLICIES, "kind": f"{kind}{suffix}", "metadata": {"name": name}}
        await rollouts.admin.apply(where, {**made, "spec": spec})
    try:
        async with asyncio.timeout(60):
            await _until_in_force(rollouts)
        yield
    finally:
        await rollouts.admin.delete(binding)
        await rollouts.admin.delete(policy)


async def _until_in_force(rollouts: RolloutCluster) -> None:
    labels = {"app": "probe"}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}}
    told = {"name": "probe", "annotations": {"fairlead.dev/held": "rest/1"}}
    probe = {"metadata": told, "spec": {**spec, "template": template("probe", **labels)}}
    where = rollouts.deployment("probe")
    await rollouts.admin.create(where.rpartition("/")[0], probe)
    for number in range(100_000):
        changed = {"spec": {"template": template(f"probe:{number}", **labels)}}
        found = await rollouts.admin.patch(where, changed)
        if found["spec"].get("paused"):
            break
        await asyncio.sleep(0.1)
    await rollouts.admin.delete(where)
