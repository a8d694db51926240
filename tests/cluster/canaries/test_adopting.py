"""Objects of others: held and amended while a rollout looks after them, given back at its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import API, ISTIO, RolloutCluster, template, weights
from tests.cluster.canaries.test_senseless import told

pytestmark = pytest.mark.cluster

POLICIES = "admissionregistration.k8s.io/v1"


def deployment(image: str) -> client.Json:
    """As a GitOps tool applies it, again and again."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "shop"}},
            "template": template(image),
        },
    }


def route() -> client.Json:
    destination = {"destination": {"host": "shop", "port": {"number": 80}}}
    http = {"match": [{"uri": {"prefix": "/"}}], "route": [destination], "timeout": "3s"}
    return {
        "apiVersion": ISTIO,
        "kind": "VirtualService",
        "metadata": {"name": "front"},
        "spec": {"hosts": ["shop.test"], "gateways": ["mesh"], "http": [http]},
    }


@pytest.fixture
async def theirs(rollouts: RolloutCluster) -> RolloutCluster:
    """A Deployment, a Service and a route that are there already."""
    await rollouts.admin.apply(rollouts.deployment("shop"), deployment("shop:1"), "gitops")
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"metadata": {"name": "shop"}, "spec": {"ports": ports, "selector": {"app": "shop"}}}
    await rollouts.admin.create(rollouts.space.path("services"), service)
    await rollouts.admin.create(rollouts.space.path("virtualservices", api=ISTIO), route())
    made = {
        "apiVersion": API,
        "kind": "CanaryDeployment",
        "metadata": {"name": "shop"},
        "spec": {
            "targetRef": {"name": "shop"},
            "service": {"name": "shop", "port": 80},
            "provider": {"istio": {"vsName": "front", "delay": 0.1}},
            "strategy": {"paces": [{"weight": 50, "approve": True}]},
        },
    }
    await rollouts.create(made)
    return rollouts


@pytest.mark.requirement("canary R6")
async def test_a_target_is_held_promoted_and_held_again(theirs: RolloutCluster) -> None:
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        held = await theirs.admin.get(theirs.deployment("shop"))
        assert held["spec"]["paused"] is True

        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        # The same manifest once more, as a GitOps tool does it every few minutes.
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await running.settled()
        found = await theirs.admin.get(theirs.route("front"))
        assert weights(found) == [50, 50]
        assert found["spec"]["http"][0]["timeout"] == "3s"
        assert found["spec"]["gateways"] == ["mesh"]

        await theirs.ask("shop", approve="1")
        await theirs.until("shop", phase="Stable", stableVersion="shop:2")
        done = await theirs.until_so(
            theirs.deployment("shop"), lambda obj: obj["spec"].get("paused") is True
        )
        await running.settled()

    assert done["status"]["updatedReplicas"] == done["status"]["readyReplicas"] == 2
    assert weights(await theirs.admin.get(theirs.route("front"))) == [100, 0]


async def test_a_target_that_was_rolled_back_starts_no_canary_of_what_it_runs(
    theirs: RolloutCluster,
) -> None:
    async with theirs.operating() as running:
        first = await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        await theirs.ask("shop", approve="1")
        await theirs.until("shop", phase="Stable", stableVersion="shop:2")
        await theirs.until_so(theirs.deployment("shop"), lambda obj: held_at(obj, "shop:2"))

        await theirs.ask("shop", rollback=first["status"]["stableRevision"])

        await theirs.until("shop", stableVersion="shop:1")
        await theirs.until_so(theirs.deployment("shop"), lambda obj: held_at(obj, "shop:1"))
        await running.settled()
        done = await theirs.admin.get(theirs.path("shop"))

    assert done["status"]["phase"] == "Stable"
    assert await theirs.weights("front") == [100, 0]


async def test_a_change_while_a_live_target_is_taken_on_is_a_canary(theirs: RolloutCluster) -> None:
    slow_mesh = {"spec": {"provider": {"istio": {"delay": 5}}}}
    await theirs.admin.patch(theirs.path("shop"), slow_mesh)
    async with theirs.operating():
        await theirs.until_so(theirs.deployment("shop"), lambda obj: held_at(obj, "shop:1"))

        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")

        found = await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")
        assert found["status"]["stableVersion"] == "shop:1"
        assert await images(theirs) == {"shop:1"}
        assert await theirs.weights("front") == [50, 50]


async def test_a_change_of_a_held_target_is_a_canary_also_where_nothing_is_remembered(
    theirs: RolloutCluster,
) -> None:
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
    await theirs.admin.patch(f"{theirs.path('shop')}/status", {"status": None})
    await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")

    async with theirs.operating("another"):
        found = await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:2")

    assert found["status"]["stableVersion"] == "shop:1"
    assert await images(theirs) == {"shop:1"}


@pytest.mark.parametrize("pause", ["at once", "seen", "seen by another"])
async def test_a_route_that_is_made_again_gets_its_weights_back(
    theirs: RolloutCluster, pause: str
) -> None:
    routes = theirs.space.path("virtualservices", api=ISTIO)
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        await theirs.admin.delete(theirs.route("front"))
        await theirs.admin.wait_until_gone(theirs.route("front"))
        if pause != "at once":
            await theirs.until("shop", phase="Paused")
            await running.settled()
        if pause != "seen by another":
            await theirs.admin.create(routes, route())
            await theirs.until_so(theirs.route("front"), lambda obj: weights(obj) == [50, 50])
    if pause == "seen by another":
        async with theirs.operating() as running:
            await running.settled()
            await theirs.admin.create(routes, route())
            await theirs.until_so(theirs.route("front"), lambda obj: weights(obj) == [50, 50])


@pytest.mark.requirement("canary R6", "canary R19")
async def test_a_deleted_object_gives_target_and_route_back(theirs: RolloutCluster) -> None:
    before = await theirs.admin.get(theirs.route("front"))
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")

        await theirs.admin.delete(theirs.path("shop"))
        await theirs.admin.wait_until_gone(theirs.path("shop"))

    after = await theirs.admin.get(theirs.route("front"))
    target = await theirs.admin.get(theirs.deployment("shop"))
    assert after["spec"] == before["spec"]
    assert not target["spec"].get("paused")
    assert not [key for key in target["metadata"]["annotations"] if key.startswith("fairlead.dev")]


@pytest.mark.requirement("canary R8", "canary R19")
@pytest.mark.parametrize("store", ["store", "another"], ids=["kept", "lost"])
async def test_an_object_that_makes_no_sense_any_more_still_gives_back(
    theirs: RolloutCluster, store: str
) -> None:
    before = await theirs.admin.get(theirs.route("front"))
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
    down = {"spec": {"strategy": {"steps": [50, 20], "paces": None}}}
    await theirs.admin.patch(theirs.path("shop"), down)

    async with theirs.operating(store):
        await theirs.admin.delete(theirs.path("shop"))
        await theirs.admin.wait_until_gone(theirs.path("shop"))

    after = await theirs.admin.get(theirs.route("front"))
    target = await theirs.admin.get(theirs.deployment("shop"))
    assert after["spec"] == before["spec"]
    assert not target["spec"].get("paused")


def slow(image: str) -> client.Json:
    """One pod after the other, so that there is a moment between two versions."""
    made = deployment(image)
    made["spec"] |= {
        "minReadySeconds": 2,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }
    return made


async def promoting(theirs: RolloutCluster) -> None:
    """Version 2 has all requests, and the target is on its way to become it."""
    await theirs.admin.apply(theirs.deployment("shop"), slow("shop:1"), "gitops")
    await theirs.until("shop", phase="Stable")
    await theirs.until_so(theirs.deployment("shop"), lambda obj: obj["spec"].get("paused") is True)
    await theirs.admin.apply(theirs.deployment("shop"), slow("shop:2"), "gitops")
    await theirs.until("shop", phase="AwaitingApproval")
    await theirs.ask("shop", approve="1")
    await theirs.until_so(
        theirs.deployment("shop"),
        lambda obj: (
            not obj["spec"].get("paused")
            and obj["status"].get("observedGeneration") == obj["metadata"]["generation"]
            and 0 < obj["status"].get("updatedReplicas", 0) < obj["status"]["replicas"]
        ),
    )


def held_at(obj: client.Json, image: str) -> bool:
    says: str = obj["spec"]["template"]["spec"]["containers"][0]["image"]
    return says == image and obj["spec"].get("paused") is True


async def images(theirs: RolloutCluster) -> set[str]:
    """What the target's pods run."""
    found = await theirs.admin.get(theirs.space.path("pods"))
    return {
        one["spec"]["containers"][0]["image"]
        for one in found["items"]
        if one["metadata"]["labels"]["app"] == "shop" and "deletionTimestamp" not in one["metadata"]
    }


@pytest.mark.requirement("canary R6", "canary R14")
async def test_a_target_edited_in_its_promotion_goes_its_own_way_next(
    theirs: RolloutCluster,
) -> None:
    async with theirs.operating() as running:
        await promoting(theirs)

        await theirs.admin.apply(theirs.deployment("shop"), slow("shop:3"), "gitops")

        await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:3")
        await running.settled()
        await theirs.until_so(theirs.deployment("shop"), lambda obj: held_at(obj, "shop:3"))
        assert (await theirs.admin.get(theirs.path("shop")))["status"]["stableVersion"] == "shop:2"
        assert await images(theirs) == {"shop:2"}
        assert "Parked" in await theirs.reasons("shop")
        await theirs.ask("shop", approve="2")
        await theirs.until("shop", phase="Stable", stableVersion="shop:3")
        # Without force: nobody claims the template but who applies it.
        await theirs.admin.apply(theirs.deployment("shop"), slow("shop:4"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:4")


async def test_an_edit_that_waits_outlives_an_abort_and_an_operator(theirs: RolloutCluster) -> None:
    async with theirs.operating():
        await promoting(theirs)
        await theirs.admin.apply(theirs.deployment("shop"), slow("shop:3"), "gitops")
        await theirs.until_so(
            theirs.deployment("shop"),
            lambda obj: "fairlead.dev/parked" in obj["metadata"]["annotations"],
        )
    async with theirs.operating("another"):
        await theirs.ask("shop", abort="1")
        found = await theirs.until("shop", phase="AwaitingApproval", canaryVersion="shop:3")
        held = await theirs.until_so(theirs.deployment("shop"), lambda obj: held_at(obj, "shop:3"))

    assert found["status"]["stableVersion"] in ("shop:1", "shop:2")
    assert "fairlead.dev/parked" not in held["metadata"]["annotations"]
    assert await images(theirs) == {found["status"]["stableVersion"]}


async def test_an_edit_that_waits_is_given_back(theirs: RolloutCluster) -> None:
    async with theirs.operating():
        await promoting(theirs)
        await theirs.admin.apply(theirs.deployment("shop"), slow("shop:3"), "gitops")
        await theirs.until_so(
            theirs.deployment("shop"),
            lambda obj: "fairlead.dev/parked" in obj["metadata"]["annotations"],
        )
        await theirs.admin.delete(theirs.path("shop"))
        await theirs.admin.wait_until_gone(theirs.path("shop"))

    target = await theirs.admin.get(theirs.deployment("shop"))
    assert target["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:3"
    assert not target["spec"].get("paused")
    assert not [key for key in target["metadata"]["annotations"] if key.startswith("fairlead.dev")]


@contextlib.asynccontextmanager
async def frozen(rollouts: RolloutCluster, group: str, plural: str, one: str) -> AsyncIterator[str]:
    """While a policy of the cluster denies every change of these objects; answers its words."""
    name = f"{rollouts.space.name}-{plural}"
    where = client.path(POLICIES, "validatingadmissionpolicies", name=name)
    binding = client.path(POLICIES, "validatingadmissionpolicybindings", name=name)
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [plural],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": rollouts.space.name}}
    match = {"resourceRules": [rule], "namespaceSelector": here}
    denies = [{"expression": "false", "message": "change freeze"}]
    await rollouts.admin.apply(
        where,
        {
            "apiVersion": POLICIES,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"matchConstraints": match, "validations": denies, "failurePolicy": "Fail"},
        },
    )
    await rollouts.admin.apply(
        binding,
        {
            "apiVersion": POLICIES,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    )
    try:
        async with asyncio.timeout(60):
            await _until_denied(rollouts, one)
        yield "change freeze"
    finally:
        await rollouts.admin.delete(binding)
        await rollouts.admin.delete(where)


async def _until_denied(rollouts: RolloutCluster, one: str) -> None:
    for number in range(100_000):
        try:
            await rollouts.admin.patch(one, {"metadata": {"labels": {"tried": str(number)}}})
        except client.ApiError as refused:
            if refused.status == 422:
                return
            raise


async def until_it_stays(theirs: RolloutCluster) -> str:
    """Until a deleted object says why it is still there."""

    def conditions(obj: client.Json) -> list[client.Json]:
        found = (obj.get("status") or {}).get("conditions") or ()
        return [one for one in found if one["type"] == "GivenBack"]

    held = await theirs.until_so(theirs.path("shop"), lambda obj: bool(conditions(obj)))
    assert held["metadata"]["finalizers"] == ["fairlead.dev/rollout"]
    (told,) = conditions(held)
    assert told["status"] == "False"
    return str(told["message"])


@pytest.mark.requirement("canary R19")
async def test_an_object_stays_until_its_route_is_given_back(theirs: RolloutCluster) -> None:
    before = await theirs.admin.get(theirs.route("front"))
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        route = theirs.route("front")
        async with frozen(theirs, "networking.istio.io", "virtualservices", route) as words:
            await theirs.admin.delete(theirs.path("shop"))
            told = await until_it_stays(theirs)
            assert words in told
            assert "virtualservices" in told
            assert weights(await theirs.admin.get(route)) == [50, 50]
            # Another object, whose writes nobody refuses.
            target = await theirs.admin.get(theirs.deployment("shop"))
            assert not target["spec"].get("paused")
        await theirs.admin.wait_until_gone(theirs.path("shop"))
        assert "GiveBackFailed" in await theirs.reasons("shop")

    assert (await theirs.admin.get(route))["spec"] == before["spec"]


@pytest.mark.requirement("canary R19")
async def test_an_object_stays_until_its_target_is_given_back(theirs: RolloutCluster) -> None:
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        target = theirs.deployment("shop")
        await theirs.until_so(target, lambda obj: obj["spec"].get("paused") is True)
        async with frozen(theirs, "apps", "deployments", target) as words:
            await theirs.admin.delete(theirs.path("shop"))
            told = await until_it_stays(theirs)
            assert words in told
            assert "deployments" in told
            assert (await theirs.admin.get(target))["spec"]["paused"] is True
        await theirs.admin.wait_until_gone(theirs.path("shop"))

    assert not (await theirs.admin.get(target))["spec"].get("paused")


async def test_who_takes_the_finalizer_off_lets_it_go_as_it_is(theirs: RolloutCluster) -> None:
    async with theirs.operating():
        await theirs.until("shop", phase="Stable")
        target = theirs.deployment("shop")
        await theirs.until_so(target, lambda obj: obj["spec"].get("paused") is True)
        async with frozen(theirs, "apps", "deployments", target):
            await theirs.admin.delete(theirs.path("shop"))
            await until_it_stays(theirs)
            await theirs.admin.patch(theirs.path("shop"), {"metadata": {"finalizers": None}})
            await theirs.admin.wait_until_gone(theirs.path("shop"))

    assert (await theirs.admin.get(target))["spec"]["paused"] is True


@pytest.mark.requirement("canary R8")
async def test_a_second_object_on_a_target_is_told_the_name_of_the_first(
    theirs: RolloutCluster,
) -> None:
    async with theirs.operating() as running:
        await theirs.until("shop", phase="Stable")
        await running.settled()
        first = await theirs.admin.get(theirs.path("shop"))
        second = {**first, "metadata": {"name": "till"}, "status": None}
        await theirs.create(second)

        await theirs.until_so(
            theirs.path("till"), lambda obj: "CanaryDeployment shop is in the way" in told(obj)
        )
        await theirs.admin.apply(theirs.deployment("shop"), deployment("shop:2"), "gitops")
        await theirs.until("shop", phase="AwaitingApproval")
        await running.settled()
        assert not (await theirs.admin.get(theirs.path("till")))["status"].get("phase")
