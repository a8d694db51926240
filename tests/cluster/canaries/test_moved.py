"""An object that names another target, Service, route or provider: the old ones stay held."""

from typing import Any

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import ISTIO, RolloutCluster, weights
from tests.cluster.canaries.test_adopting import deployment, route, theirs
from tests.cluster.canaries.test_senseless import told

__all__ = ["theirs"]
pytestmark = pytest.mark.cluster
VS = "spec.provider.istio.vsName"
OTHERS = {
    "target": ("spec.targetRef.name", {"targetRef": {"name": "till"}}),
    "service": ("spec.service.name", {"service": {"name": "till", "port": 80}}),
    "route": (VS, {"provider": {"istio": {"vsName": "back"}}}),
    "provider": (VS, {"provider": {"istio": None, "gatewayApi": {"routeName": "front"}}}),
}


async def others(theirs: RolloutCluster) -> None:
    """What could be named instead."""
    till: Any = deployment("till:1")
    till["metadata"]["name"] = "till"
    labels = {"app": "till"}
    till["spec"]["selector"] = {"matchLabels": labels}
    till["spec"]["template"]["metadata"] = {"labels": labels}
    await theirs.admin.apply(theirs.deployment("till"), till, "gitops")
    service = {"metadata": {"name": "till"}, "spec": {"ports": [{"port": 80}], "selector": labels}}
    await theirs.admin.create(theirs.space.path("services"), service)
    back = {**route(), "metadata": {"name": "back"}}
    await theirs.admin.create(theirs.space.path("virtualservices", api=ISTIO), back)


@pytest.mark.requirement("canary R8", "canary R19")
@pytest.mark.parametrize("named", OTHERS)
@pytest.mark.parametrize("store", ["store", "another"], ids=["kept", "lost"])
async def test_what_is_held_cannot_be_renamed_and_is_given_back(
    theirs: RolloutCluster, named: str, store: str
) -> None:
    field, change = OTHERS[named]
    await others(theirs)
    admin, path = theirs.admin, theirs.path("shop")
    before = await admin.get(theirs.route("front"))
    free = [await admin.get(one) for one in (theirs.deployment("till"), theirs.route("back"))]
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        await admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        good = (await admin.get(path))["spec"]
    await admin.patch(path, {"spec": change})
    async with theirs.operating(store) as running:
        await theirs.until_so(path, lambda obj: f"{field}: cannot be changed" in told(obj))
        await running.settled()
        assert (await admin.get(theirs.deployment("shop")))["spec"]["paused"] is True
        assert weights(await admin.get(theirs.route("front"))) == [50, 50]
        if store == "store":
            found = await admin.get(path)
            await admin.replace(path, {**found, "spec": good})
            await theirs.until_so(path, lambda obj: not told(obj))
            await admin.patch(path, {"spec": change})
            await theirs.until_so(path, lambda obj: field in told(obj))
        await admin.delete(path)
        await admin.wait_until_gone(path)

    target = await admin.get(theirs.deployment("shop"))
    assert not target["spec"].get("paused")
    assert (await admin.get(theirs.route("front")))["spec"] == before["spec"]
    for old in free:
        assert spec_of(await admin.get(old_path(theirs, old))) == spec_of(old)


def old_path(theirs: RolloutCluster, obj: client.Json) -> str:
    name = obj["metadata"]["name"]
    return theirs.route(name) if obj["kind"] == "VirtualService" else theirs.deployment(name)


def spec_of(obj: client.Json) -> tuple[object, object]:
    told = obj["metadata"].get("annotations") or {}
    return obj["spec"], [key for key in told if key.startswith("fairlead.dev")]
