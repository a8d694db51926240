"""Who writes a canary, before the shipped webhook: no more is made for them than they may make."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes.client import client as api
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.install import manifests
from fairlead.kubernetes.install.workload import Options
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.webhook.webhook import AdmissionReviews, WebhookPlace
from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary
from tests.cluster.conftest import Connect
from tests.cluster.test_manifests import Kubectl, without_definitions
from tests.cluster.test_reviews import HOOKS
from tools.cluster import control_plane
from tools.cluster.process import free_port

pytestmark = pytest.mark.cluster
CANARIES = {
    "apiGroups": ["fairlead.dev"],
    "resources": ["canarydeployments"],
    "verbs": ["create", "get", "patch", "update"],
}
MADE = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["services"], "verbs": ["create"]},
    {
        "apiGroups": ["networking.istio.io"],
        "resources": ["virtualservices"],
        "verbs": ["create"],
    },
]
ROUTES = {
    "apiGroups": ["gateway.networking.k8s.io"],
    "resources": ["httproutes"],
    "verbs": ["create"],
}


@pytest.fixture
async def reviewed(
    rollouts: RolloutCluster, cluster: control_plane.ControlPlane
) -> AsyncIterator[RolloutCluster]:
    """With the webhook as it is installed, but for its address."""
    kinds = wiring.with_kinds(bootstrap.installation()).kinds
    space, name, port = rollouts.space, f"op-{rollouts.space.name}", free_port()
    options = Options("registry.test/fairlead:1", name, space.name, space.name)
    found = without_definitions(manifests.documents(kinds, replace(options, failure_policy="Fail")))
    pods = [one for one in found if one["kind"] != "Deployment"]
    await Kubectl(cluster).run(pods, "apply", "--server-side")
    where = f"{HOOKS}/{name}"
    await point(rollouts.admin, where, port)
    identity = credentials.Fixed(credentials.Identity(token=await space.token(name)))
    connection = replace(rollouts.connection, credentials=identity)
    place = WebhookPlace("127.0.0.1", port, name, Key(space.name, options.certificate))
    async with api.Client(connection) as hand:
        serving = asyncio.create_task(AdmissionReviews(place, kinds, hand, Clock()).run())
        try:
            await until_asked(rollouts)
            yield rollouts
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            with contextlib.suppress(client.ApiError):
                await rollouts.admin.delete(where)


async def point(admin: client.Client, where: str, port: int) -> None:
    """Let the API server ask here, where a Service would send it to the pods."""
    hooks = (await admin.get(where))["webhooks"]
    change: list[dict[str, Any]] = []
    for index, hook in enumerate(hooks):
        at = f"/webhooks/{index}/clientConfig"
        url = f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"
        change.append({"op": "remove", "path": f"{at}/service"})
        change.append({"op": "add", "path": f"{at}/url", "value": url})
    body = json.dumps(change).encode()
    await admin.send("PATCH", where, body, "application/json-patch+json")


async def until_asked(rollouts: RolloutCluster) -> None:
    """Until the API server trusts the webhook and hears it."""
    async with asyncio.timeout(60):
        while "_SERVICES" not in await refusal(rollouts.admin, rollouts, lb()):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.1)


def lb() -> client.Json:
    return canary(serviceSpec={"ports": [{"port": 80}], "type": "LoadBalancer"})


async def refusal(hand: client.Client, rollouts: RolloutCluster, obj: client.Json) -> str:
    """What is said to a dry run of this; empty where it would be taken."""
    where = rollouts.space.path("canarydeployments", api="fairlead.dev/v1alpha1")
    try:
        await hand.send("POST", where, obj, query={"dryRun": "All"})
    except client.ApiError as error:
        return str(error)
    return ""


async def test_a_canary_gives_nobody_more_rights_than_they_have(
    reviewed: RolloutCluster, connect: Connect
) -> None:
    space = reviewed.space
    dev = await connect((await space.account("dev", [CANARIES])).token)
    ops = await connect((await space.account("ops", [CANARIES, *MADE])).token)

    said = await refusal(dev, reviewed, canary())
    assert "spec.deploymentSpec: the operator would create deployments.apps" in said
    assert "spec.serviceSpec: the operator would create services" in said
    assert "spec.provider.istio: the operator would create virtualservices" in said
    assert f"which system:serviceaccount:{space.name}:dev may not" in said

    assert await refusal(ops, reviewed, canary()) == ""
    adopting = canary(provider={"istio": {"vsName": "front"}})
    said = await refusal(ops, reviewed, adopting)
    assert "spec.provider.istio.vsName: the operator would patch virtualservices" in said
    for beyond in (
        lb(),
        canary(provider={"istio": {"virtualService": {"hosts": ["*"]}}}),
        canary(provider={"istio": {"virtualService": {"hosts": ["kubernetes.default"]}}}),
        canary(provider={"istio": {"virtualService": {"gateways": ["istio-system/public"]}}}),
        canary(provider={"istio": {"virtualService": {"exportTo": ["*"]}}}),
    ):
        assert "the operator allows what FAIRLEAD_OPERATOR_" in await refusal(
            reviewed.admin, reviewed, beyond
        )

    parents = {"route": {"parentRefs": [{"name": "public"}]}}
    said = await refusal(ops, reviewed, canary(provider={"gatewayApi": parents}))
    assert "spec.provider.gatewayApi: the operator would create httproutes" in said
    said = await refusal(ops, reviewed, canary(provider={"gatewayApi": {"routeName": "front"}}))
    assert "spec.provider.gatewayApi.routeName: the operator would patch httproutes" in said
    gate = await connect((await space.account("gate", [CANARIES, *MADE, ROUTES])).token)
    assert await refusal(gate, reviewed, canary(provider={"gatewayApi": parents})) == ""

    await ops.create(space.path("canarydeployments", api="fairlead.dev/v1alpha1"), canary())
    where = reviewed.path("shop")
    await dev.patch(where, {"spec": {"paused": True}})
    with pytest.raises(client.ApiError, match=r"spec\.serviceSpec: the operator would create"):
        await dev.patch(where, {"spec": {"serviceSpec": {"sessionAffinity": "ClientIP"}}})
