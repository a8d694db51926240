"""What an object becomes: its children, whose they are, and that nothing is written twice."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import (
    API,
    ISTIO,
    RolloutCluster,
    canary,
    istio_canary,
    weights,
)

pytestmark = pytest.mark.cluster

ICD = "istiocanarydeployments"


@pytest.mark.requirement("canary R1", "canary R2", "canary R9", "canary R11", "canary R16")
async def test_an_object_gets_all_its_children_once_and_owns_them(rollouts: RolloutCluster) -> None:
    route = {"name": "all", "timeout": "5s", "fault": {"delay": {"fixedDelay": "1s"}}}
    described = {"hosts": ["shop.test"], "gateways": ["public"], "http": [route]}
    asked = istio_canary(virtualServiceSpec=described)
    made = await rollouts.create(asked, ICD)

    async with rollouts.operating() as running:
        await rollouts.until("shop", plural=ICD, phase="Stable")
        await running.settled()

    found = await rollouts.admin.get(rollouts.route("shop"))
    assert (found["spec"]["hosts"], weights(found)) == (["shop.test"], [100, 0])
    assert {key: found["spec"]["http"][0][key] for key in route} == route
    service = await rollouts.admin.get(rollouts.space.path("services", "shop-service"))
    assert service["spec"]["selector"] == {"app": "shop"}
    uid = made["metadata"]["uid"]
    for where in (
        rollouts.route("shop"),
        rollouts.deployment("shop-deployment"),
        rollouts.space.path("services", "shop-service"),
        rollouts.space.path("services", "shop-canary-service"),
    ):
        owners = (await rollouts.admin.get(where))["metadata"]["ownerReferences"]
        assert [(one["uid"], one["controller"]) for one in owners] == [(uid, True)]
    after = await rollouts.admin.get(rollouts.path("shop", ICD))
    assert after["spec"] == made["spec"]


@pytest.mark.requirement("canary R7", "canary R12", "canary R20", "canary R22", "canary R27")
async def test_what_changes_no_version_costs_no_write_and_starts_nothing(
    rollouts: RolloutCluster,
) -> None:
    await rollouts.create(canary())
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        await running.settled()
        before = running.writes

        labels = {"metadata": {"labels": {"team": "shop"}}}
        await rollouts.admin.patch(rollouts.path("shop"), labels)
        for controller in running.operator.controllers:
            for key in controller.held.objects.known():
                controller.requeue(key)
        await running.settled()

        assert running.writes == before
        spelled = await rollouts.admin.get(rollouts.path("shop"))
        spelled["spec"]["deploymentSpec"]["template"]["spec"]["restartPolicy"] = "Always"
        await rollouts.admin.replace(rollouts.path("shop"), spelled)
        told = await rollouts.until("shop", observedGeneration=2)
        await running.settled()

    assert told["status"]["phase"] == "Stable"
    assert running.writes["create deployments.apps"] == 1
    async with rollouts.operating() as again:
        await again.settled()
    assert again.writes.total() == 0


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"deploymentSpec": {"selector": {"matchLabels": {"app": "till"}}}},
            "spec.deploymentSpec.selector.matchLabels",
        ),
        ({"serviceSpec": {"ports": None}}, "spec.serviceSpec.ports"),
        ({"checks": [{"name": "errors", "query": "up", "success": "result <"}]}, "spec.checks[0]"),
        ({"strategy": {"steps": [50, 20]}}, "spec.strategy: weights of steps go down"),
    ],
    ids=["selector", "port", "condition", "steps"],
)
async def test_an_object_that_makes_no_sense_makes_no_child_until_it_does(
    rollouts: RolloutCluster, change: client.Json, told: str
) -> None:
    good = canary()
    await rollouts.create(good)
    await rollouts.admin.patch(rollouts.path("shop"), {"spec": change})

    async with rollouts.operating() as running:

        def refused(obj: client.Json) -> bool:
            conditions = (obj.get("status") or {}).get("conditions") or ()
            return any(one["reason"] == "InvalidSpec" for one in conditions)

        found = await rollouts.until_so(rollouts.path("shop"), refused)
        await running.settled()
        assert told in found["status"]["conditions"][0]["message"]
        assert (await rollouts.admin.get(rollouts.space.path("deployments", api="apps/v1")))[
            "items"
        ] == []
        mended = await rollouts.admin.get(rollouts.path("shop"))
        mended["spec"] = good["spec"]
        await rollouts.admin.replace(rollouts.path("shop"), mended)
        await rollouts.until("shop", phase="Stable")


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    "spec",
    [
        {"strategy": {"steps": [120]}},
        {"targetRef": {"name": "shop"}},
        {"provider": {"smoke": {}}},
        {"provider": {"istio": {}, "replicas": {}}},
        {"deploymentSpec": {"replicas": -1, "template": {}}},
    ],
    ids=["weight", "two forms", "unknown provider", "two providers", "replicas"],
)
async def test_the_definition_itself_refuses_what_no_operator_should_see(
    rollouts: RolloutCluster, spec: client.Json
) -> None:
    with pytest.raises(client.ApiError, match="422 Invalid"):
        await rollouts.create({**canary(), "spec": {**canary()["spec"], **spec}})


@pytest.mark.requirement("canary R10")
async def test_what_an_earlier_object_left_behind_is_taken_over(rollouts: RolloutCluster) -> None:
    port = [{"port": 80, "targetPort": 9999}]
    labels = {"fairlead.dev/rollout": "shop"}
    meta = {"name": "shop-service", "labels": labels}
    left = {"metadata": meta, "spec": {"ports": port, "selector": {"a": "b"}}}
    await rollouts.admin.create(rollouts.space.path("services"), left)
    destination = {"destination": {"host": "elsewhere"}}
    route = {
        "apiVersion": ISTIO,
        "kind": "VirtualService",
        "metadata": {"name": "shop", "labels": labels},
        "spec": {"hosts": ["old.test"], "http": [{"route": [destination]}]},
    }
    await rollouts.admin.create(rollouts.space.path("virtualservices", api=ISTIO), route)
    await rollouts.create(canary())

    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")

    service = await rollouts.admin.get(rollouts.space.path("services", "shop-service"))
    assert service["spec"]["selector"] == {"app": "shop"}
    found = await rollouts.admin.get(rollouts.route("shop"))
    assert found["spec"]["hosts"] == ["shop-service"]
    assert [one["kind"] for one in found["metadata"]["ownerReferences"]] == ["CanaryDeployment"]


@pytest.mark.requirement("canary R21")
async def test_a_changed_scale_scales_and_starts_nothing(rollouts: RolloutCluster) -> None:
    await rollouts.create(canary(replicas=1))
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        scale = {"spec": {"deploymentSpec": {"replicas": 3}}}
        await rollouts.admin.patch(rollouts.path("shop"), scale)

        await rollouts.until_so(
            rollouts.deployment("shop-deployment"),
            lambda found: (found.get("status") or {}).get("readyReplicas") == 3,
        )
        await running.settled()

    assert running.writes["create deployments.apps"] == 1
    assert "RolloutStarted" not in await rollouts.reasons("shop")


def test_both_kinds_are_of_one_group() -> None:
    assert canary()["apiVersion"] == istio_canary()["apiVersion"] == API
