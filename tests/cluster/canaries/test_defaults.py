"""What the API server fills in by itself, spelled out by the owner of a target: no new version."""

from typing import Any

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster
from tests.cluster.canaries.test_adopting import deployment, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster


def manifest(*, spelled: bool) -> client.Json:
    made = deployment("shop:1")
    pods: Any = made["spec"]["template"]["spec"]

    def said(**fields: Any) -> Any:
        return fields if spelled else {}

    name = {"fieldPath": "metadata.name"} | said(apiVersion="v1")
    token = {"path": "token"} | said(expirationSeconds=3600)
    pods["containers"][0] |= {
        "env": [{"name": "NAME", "valueFrom": {"fieldRef": name}}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80} | said(scheme="HTTP")},
    }
    pods |= said(restartPolicy="Always", securityContext={}, terminationGracePeriodSeconds=30)
    pods["volumes"] = [
        {"name": "host", "hostPath": {"path": "/srv"} | said(type="")},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
        {"name": "self", "downwardAPI": {"items": [{"path": "n", "fieldRef": name}]}},
    ]
    return made


@pytest.mark.requirement("canary R20")
async def test_defaults_that_are_spelled_out_start_no_run(theirs: RolloutCluster) -> None:
    where = theirs.deployment("shop")
    await theirs.admin.apply(where, manifest(spelled=False), "gitops")
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await theirs.until_so(where, lambda obj: obj["spec"].get("paused") is True)
        await running.settled()
        before = await theirs.admin.get(theirs.path("shop"))

        await theirs.admin.apply(where, manifest(spelled=True), "gitops")
        await theirs.admin.patch(where, {"metadata": {"labels": {"seen": "yes"}}})
        await running.settled()

        after = await theirs.admin.get(theirs.path("shop"))
        assert after["status"]["phase"] == "Stable"
        assert after["status"]["desiredHash"] == before["status"]["desiredHash"]
        await theirs.admin.apply(where, deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
