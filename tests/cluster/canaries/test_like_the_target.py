"""What stands beside a target is found by the policies and monitors that find the target."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster
from tests.cluster.canaries.test_adopting import deployment, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster
META = {"labels": {"team": "shop"}, "annotations": {"owner": "ada"}}


def spread(image: str) -> client.Json:
    """One pod of it on a node."""
    made = deployment(image)
    made["metadata"] |= META
    term = {
        "labelSelector": {"matchLabels": {"app": "shop"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    # There is one node: a canary that keeps away from pods of the target would never run.
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    made["spec"]["replicas"] = 1
    made["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": rules}
    strategy = {"maxSurge": 0, "maxUnavailable": 1}
    made["spec"]["strategy"] = {"rollingUpdate": strategy}
    return made


async def test_a_canary_is_labelled_and_placed_as_its_target(theirs: RolloutCluster) -> None:
    admin, target = theirs.admin, theirs.deployment("shop")
    await admin.apply(target, spread("shop:1"), "gitops")
    service = theirs.space.path("services", "shop")
    await admin.patch(service, {"metadata": META})
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await admin.apply(target, spread("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
        await running.settled()
        found = [
            await admin.get(theirs.deployment("shop-canary")),
            await admin.get(theirs.space.path("services", "shop-canary")),
        ]
        await admin.patch(target, {"metadata": {"labels": {"team": "till"}}})
        await theirs.until_so(
            theirs.deployment("shop-canary"),
            lambda obj: obj["metadata"]["labels"]["team"] == "till",
        )

    for one in found:
        assert one["metadata"]["labels"]["team"] == "shop"
        assert one["metadata"]["annotations"]["owner"] == "ada"
    assert found[0]["status"]["readyReplicas"] == 1
