"""What stands under the name of a child: another's is told and left alone, a namesake's taken."""

from typing import Any

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import ISTIO, RolloutCluster, canary, template
from tests.cluster.canaries.test_senseless import told

pytestmark = pytest.mark.cluster

OTHER = {"app": "other"}
WORK = {
    "replicas": 1,
    "selector": {"matchLabels": OTHER},
    "template": {**template("other:1"), "metadata": {"labels": OTHER}},
}
SERVICE = {"ports": [{"port": 90}], "selector": OTHER}
ROUTE = {"hosts": ["other.test"], "http": [{"route": [{"destination": {"host": "other"}}]}]}
IN_THE_WAY = [
    ("apps/v1", "deployments", "Deployment", "shop-canary-deployment", WORK),
    ("v1", "services", "Service", "shop-service", SERVICE),
    (ISTIO, "virtualservices", "VirtualService", "shop", ROUTE),
]


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    ("api", "plural", "kind", "name", "spec"), IN_THE_WAY, ids=["deployment", "service", "route"]
)
async def test_what_others_made_is_named_and_left_alone(  # noqa: PLR0917 - one row of a table
    rollouts: RolloutCluster, api: str, plural: str, kind: str, name: str, spec: Any
) -> None:
    where = rollouts.space.path(plural, name, api=api)
    made = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
    await rollouts.admin.create(rollouts.space.path(plural, api=api), made)
    before = await rollouts.admin.get(where)
    async with rollouts.operating() as running:
        await rollouts.create(canary())
        await rollouts.until_so(rollouts.path("shop"), lambda obj: f"{kind} {name}" in told(obj))
        await running.settled()
        after = await rollouts.admin.get(where)
        assert after["spec"] == before["spec"]
        assert own(after["metadata"]) == own(before["metadata"])

        await rollouts.admin.delete(where)
        await rollouts.until("shop", phase="Stable")


def own(meta: client.Json) -> list[object]:
    """What we would have put on it."""
    return [meta.get(key) for key in ("ownerReferences", "labels", "uid")]


async def test_what_a_namesake_left_is_taken_over(rollouts: RolloutCluster) -> None:
    left = [rollouts.route("shop"), rollouts.space.path("services", "shop-service")]
    await rollouts.create(canary())
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
    # As `kubectl delete --cascade=orphan` leaves them.
    for where in left:
        await rollouts.admin.patch(where, {"metadata": {"ownerReferences": None}})
    before = [await rollouts.admin.get(where) for where in left]
    await rollouts.admin.delete(rollouts.path("shop"))
    await rollouts.admin.wait_until_gone(rollouts.path("shop"))

    made = await rollouts.create(canary())
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        await running.settled()

    for where, old in zip(left, before, strict=True):
        after = await rollouts.admin.get(where)
        assert after["metadata"]["uid"] == old["metadata"]["uid"]
        (owner,) = after["metadata"]["ownerReferences"]
        assert owner["uid"] == made["metadata"]["uid"]
