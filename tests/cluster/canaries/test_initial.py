"""What an object becomes: its children, whose they are, and that nothing is written twice."""

import pytest

from tests.cluster import client
from tests.cluster.canaries.scene import API, ISTIO, Scene, canary, istio_canary, weights

pytestmark = pytest.mark.cluster

ICD = "istiocanarydeployments"


@pytest.mark.requirement("canary R1", "canary R2", "canary R9", "canary R11", "canary R16")
async def test_an_object_gets_all_its_children_once_and_owns_them(scene: Scene) -> None:
    route = {"name": "all", "timeout": "5s", "fault": {"delay": {"fixedDelay": "1s"}}}
    asked = istio_canary(virtualServiceSpec={"hosts": ["shop.test"], "http": [route]})
    made = await scene.create(asked, ICD)

    async with scene.operating() as ship:
        await scene.until("shop", plural=ICD, phase="Stable")
        await ship.settled()

    found = await scene.admin.get(scene.route("shop"))
    assert (found["spec"]["hosts"], weights(found)) == (["shop.test"], [100, 0])
    assert {key: found["spec"]["http"][0][key] for key in route} == route
    service = await scene.admin.get(scene.space.path("services", "shop-service"))
    assert service["spec"]["selector"] == {"app": "shop"}
    uid = made["metadata"]["uid"]
    for where in (
        scene.route("shop"),
        scene.deployment("shop-deployment"),
        scene.space.path("services", "shop-service"),
        scene.space.path("services", "shop-canary-service"),
    ):
        owners = (await scene.admin.get(where))["metadata"]["ownerReferences"]
        assert [(one["uid"], one["controller"]) for one in owners] == [(uid, True)]
    after = await scene.admin.get(scene.path("shop", ICD))
    assert after["spec"] == made["spec"]


@pytest.mark.requirement("canary R7", "canary R12", "canary R20", "canary R22", "canary R27")
async def test_what_changes_no_version_costs_no_write_and_starts_nothing(scene: Scene) -> None:
    await scene.create(canary())
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        await ship.settled()
        before = ship.writes

        labels = {"metadata": {"labels": {"team": "shop"}}}
        await scene.admin.patch(scene.path("shop"), labels)
        for station in ship.operator.stations:
            for key in station.held.objects.known():
                station.look_again(key)
        await ship.settled()

        assert ship.writes == before
        spelled = await scene.admin.get(scene.path("shop"))
        spelled["spec"]["deploymentSpec"]["template"]["spec"]["restartPolicy"] = "Always"
        await scene.admin.replace(scene.path("shop"), spelled)
        told = await scene.until("shop", observedGeneration=2)
        await ship.settled()

    assert told["status"]["phase"] == "Stable"
    assert ship.writes["create deployments.apps"] == 1
    async with scene.operating() as again:
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
        ({"strategy": {"steps": [50, 20]}}, "spec.strategy: steps that go down"),
    ],
    ids=["selector", "port", "condition", "steps"],
)
async def test_an_object_that_makes_no_sense_makes_no_child_until_it_does(
    scene: Scene, change: client.Json, told: str
) -> None:
    good = canary()
    await scene.create(good)
    await scene.admin.patch(scene.path("shop"), {"spec": change})

    async with scene.operating() as ship:

        def refused(obj: client.Json) -> bool:
            conditions = (obj.get("status") or {}).get("conditions") or ()
            return any(one["reason"] == "InvalidSpec" for one in conditions)

        found = await scene.until_so(scene.path("shop"), refused)
        await ship.settled()
        assert told in found["status"]["conditions"][0]["message"]
        assert (await scene.admin.get(scene.space.path("deployments", api="apps/v1")))[
            "items"
        ] == []
        mended = await scene.admin.get(scene.path("shop"))
        mended["spec"] = good["spec"]
        await scene.admin.replace(scene.path("shop"), mended)
        await scene.until("shop", phase="Stable")


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
    scene: Scene, spec: client.Json
) -> None:
    with pytest.raises(client.ApiError, match="422 Invalid"):
        await scene.create({**canary(), "spec": {**canary()["spec"], **spec}})


@pytest.mark.requirement("canary R10")
async def test_what_an_earlier_object_left_behind_is_taken_over(scene: Scene) -> None:
    port = [{"port": 80, "targetPort": 9999}]
    left = {"metadata": {"name": "shop-service"}, "spec": {"ports": port, "selector": {"a": "b"}}}
    await scene.admin.create(scene.space.path("services"), left)
    destination = {"destination": {"host": "elsewhere"}}
    route = {
        "apiVersion": ISTIO,
        "kind": "VirtualService",
        "metadata": {"name": "shop"},
        "spec": {"hosts": ["old.test"], "http": [{"route": [destination]}]},
    }
    await scene.admin.create(scene.space.path("virtualservices", api=ISTIO), route)
    await scene.create(canary())

    async with scene.operating():
        await scene.until("shop", phase="Stable")

    service = await scene.admin.get(scene.space.path("services", "shop-service"))
    assert service["spec"]["selector"] == {"app": "shop"}
    found = await scene.admin.get(scene.route("shop"))
    assert found["spec"]["hosts"] == ["shop-service"]
    assert [one["kind"] for one in found["metadata"]["ownerReferences"]] == ["CanaryDeployment"]


@pytest.mark.requirement("canary R21")
async def test_a_changed_scale_scales_and_starts_nothing(scene: Scene) -> None:
    await scene.create(canary(replicas=1))
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        scale = {"spec": {"deploymentSpec": {"replicas": 3}}}
        await scene.admin.patch(scene.path("shop"), scale)

        await scene.until_so(
            scene.deployment("shop-deployment"),
            lambda found: (found.get("status") or {}).get("readyReplicas") == 3,
        )
        await ship.settled()

    assert ship.writes["create deployments.apps"] == 1
    assert "RolloutStarted" not in await scene.reasons("shop")


def test_both_kinds_are_of_one_group() -> None:
    assert canary()["apiVersion"] == istio_canary()["apiVersion"] == API
