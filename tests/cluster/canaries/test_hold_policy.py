"""The policy that holds a target, by itself: the API server's answer to each way of writing."""

from collections.abc import AsyncIterator

import pytest

from tests.cluster import client
from tests.cluster.canaries.hold import policy_in_force
from tests.cluster.canaries.rollout_cluster import RolloutCluster, template
from tests.cluster.canaries.test_adopting import deployment

pytestmark = pytest.mark.cluster
OURS = {"fairlead.dev/held": "rest/1", "fairlead.dev/revision": "r1"}
REPLACED = {"spec": {"template": template("shop:2")}}


@pytest.fixture
async def target(rollouts: RolloutCluster) -> AsyncIterator[client.Json]:
    """At rest, as the operator leaves it."""
    where = rollouts.deployment("shop")
    await rollouts.admin.apply(where, deployment("shop:1"), "gitops")
    async with policy_in_force(rollouts):
        told = {"metadata": {"annotations": OURS | {"team": "shop"}}}
        yield await rollouts.admin.patch(where, told)


def stands(obj: client.Json) -> tuple[str, bool, set[str]]:
    said = obj["spec"]["template"]["spec"]["containers"][0]["image"]
    told = {key for key in obj["metadata"].get("annotations", {}) if key in OURS}
    return said, obj["spec"].get("paused", False), told


@pytest.mark.parametrize("tool", ["apply", "patch", "replace"])
async def test_a_change_of_the_template_pauses_whoever_writes_it(
    rollouts: RolloutCluster, target: client.Json, tool: str
) -> None:
    where, admin = rollouts.deployment("shop"), rollouts.admin
    match tool:
        case "apply":
            await admin.apply(where, deployment("shop:2"), "gitops")
        case "patch":
            await admin.patch(where, REPLACED)
        case _:
            # As `kubectl replace`, `helm upgrade --force` and `Replace=true` of Argo CD.
            await admin.replace(where, deployment("shop:2"))

    assert stands(await admin.get(where)) == ("shop:2", True, set(OURS))
    # The same manifest once more lets nothing go.
    await admin.replace(where, deployment("shop:2"))
    assert stands(await admin.get(where)) == ("shop:2", True, set(OURS))
    assert target["metadata"]["uid"] == (await admin.get(where))["metadata"]["uid"]


async def test_what_changes_no_pod_is_let_be(rollouts: RolloutCluster, target: client.Json) -> None:
    where, admin = rollouts.deployment("shop"), rollouts.admin
    del target

    await admin.patch(where, {"spec": {"replicas": 3}, "metadata": {"labels": {"a": "b"}}})
    assert stands(await admin.get(where)) == ("shop:1", False, set(OURS))
    await admin.replace(where, deployment("shop:1"))
    assert stands(await admin.get(where)) == ("shop:1", False, set(OURS))


async def test_who_says_how_it_is_held_may_let_it_go(
    rollouts: RolloutCluster, target: client.Json
) -> None:
    where, admin = rollouts.deployment("shop"), rollouts.admin
    del target
    told = {"metadata": {"annotations": {"fairlead.dev/held": "moving/2"}}}

    await admin.patch(where, {**REPLACED, **told})

    assert stands(await admin.get(where)) == ("shop:2", False, set(OURS))
