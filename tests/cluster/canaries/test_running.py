"""A version's way on the cluster: its own pods and labels, its steps, and how it can end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web

from fairlead import bootstrap
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary, template, weights
from tests.cluster.space import LEASE_RULES

pytestmark = pytest.mark.cluster


async def midway(rollouts: RolloutCluster) -> None:
    """Version 2 has half of the requests, and waits for a person."""
    await rollouts.create(canary(strategy={"paces": [{"weight": 50, "approve": True}]}))
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="AwaitingApproval")


@pytest.mark.requirement("canary R13", "canary R15", "canary R18", "canary R20", "canary R23")
async def test_a_new_version_has_pods_of_its_own_and_is_promoted(rollouts: RolloutCluster) -> None:
    await midway(rollouts)

    service = await rollouts.admin.get(rollouts.space.path("services", "shop-canary-service"))
    pods = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))
    primary = await rollouts.admin.get(rollouts.deployment("shop-deployment"))
    assert service["spec"]["selector"] == {"app": "shop-canary"}
    assert pods["spec"]["selector"]["matchLabels"] == {"app": "shop-canary"}
    assert pods["spec"]["template"]["metadata"]["labels"] == {"app": "shop-canary"}
    assert primary["spec"]["template"]["spec"] != pods["spec"]["template"]["spec"]
    assert await rollouts.weights("shop") == [50, 50]

    async with rollouts.operating() as running:
        await rollouts.ask("shop", approve="1")
        found = await rollouts.until("shop", phase="Stable", stableVersion="shop:2")
        await rollouts.admin.wait_until_gone(rollouts.deployment("shop-canary-deployment"))
        await running.settled()

    primary = await rollouts.admin.get(rollouts.deployment("shop-deployment"))
    assert primary["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:2"
    assert found["status"]["requests"] == {"approve": "1"}
    assert await rollouts.weights("shop") == [100, 0]
    wanted = {"RolloutStarted", "StepReached", "Promoted"}
    assert wanted <= await rollouts.reasons("shop")


@pytest.mark.parametrize("store", ["store", "another"], ids=["kept", "lost"])
async def test_a_baseline_comes_and_goes_with_the_canary(
    rollouts: RolloutCluster, store: str
) -> None:
    steps = {"paces": [{"weight": 20, "approve": True}], "baseline": True}
    await rollouts.create(canary(strategy=steps))
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="AwaitingApproval", baselineWeight=20, primaryWeight=60)
    made = await rollouts.admin.get(rollouts.deployment("shop-baseline-deployment"))
    service = await rollouts.admin.get(rollouts.space.path("services", "shop-baseline-service"))
    route = (await rollouts.admin.get(rollouts.route("shop")))["spec"]["http"][0]["route"]

    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:1"
    assert made["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert service["spec"]["selector"] == {"app": "shop-baseline"}
    assert {one["destination"]["host"]: one["weight"] for one in route} == {
        "shop-service": 60,
        "shop-canary-service": 20,
        "shop-baseline-service": 20,
    }
    async with rollouts.operating(store) as running:
        await running.settled()
        await rollouts.ask("shop", abort="1")
        await rollouts.until("shop", phase="RolledBack", baselineWeight=0)
        await rollouts.admin.wait_until_gone(rollouts.deployment("shop-baseline-deployment"))
        await rollouts.admin.wait_until_gone(rollouts.deployment("shop-canary-deployment"))
        await running.settled()
    assert await rollouts.weights("shop") == [100, 0]


@pytest.mark.requirement("canary R27")
async def test_a_canary_reaches_its_first_pause_in_six_requests(rollouts: RolloutCluster) -> None:
    """A Deployment, a weight, two Events, and a status at the start and at the pause."""
    await rollouts.create(canary(strategy={"paces": [{"weight": 50, "approve": True}]}))
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        await running.settled()
        before = running.requests.copy()

        await rollouts.set_image("shop", "shop:2")
        await rollouts.until("shop", phase="AwaitingApproval")
        await running.settled()

        spent = running.requests - before
        assert spent["create deployments.apps"] == 1
        assert spent["patch virtualservices.networking.istio.io"] == 1
        assert spent.total() <= 6, spent


async def test_a_canary_follows_its_replicas_within_a_step_in_few_requests(
    rollouts: RolloutCluster,
) -> None:
    await midway(rollouts)
    async with rollouts.operating() as running:
        for total in (4, 8):
            before = running.writes
            await rollouts.admin.patch(rollouts.path("shop"), _replicas(total))
            await rollouts.until_ready("shop-deployment", total)
            await rollouts.until_ready("shop-canary-deployment", total // 2)
            await running.settled()
        spent = running.writes - before
        await rollouts.admin.patch(rollouts.path("shop"), _replicas(0))
        found = await rollouts.until_so(
            rollouts.path("shop"), lambda obj: "0 replicas" in obj["status"]["message"]
        )
        await running.settled()
        primary = await rollouts.admin.get(rollouts.deployment("shop-deployment"))

    assert (found["status"]["phase"], primary["spec"]["replicas"]) == ("AwaitingApproval", 8)
    assert await rollouts.weights("shop") == [50, 50]
    # Each Deployment once (its first change takes it over), and the status.
    assert spent.total() <= 3, spent


def _replicas(count: int) -> client.Json:
    return {"spec": {"deploymentSpec": {"replicas": count}}}


@pytest.mark.requirement("canary R27", "canary R23")
@pytest.mark.parametrize("store", ["store", "another"], ids=["kept", "lost"])
async def test_a_restart_goes_on_mid_canary(rollouts: RolloutCluster, store: str) -> None:
    await midway(rollouts)
    made = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))

    async with rollouts.operating(store) as running:
        await running.settled()
        assert await rollouts.weights("shop") == [50, 50]
        same = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))
        assert same["metadata"]["uid"] == made["metadata"]["uid"]
        await rollouts.ask("shop", approve="1")
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")


@pytest.mark.requirement("canary R26")
async def test_what_a_hand_changed_is_put_back(rollouts: RolloutCluster) -> None:
    await midway(rollouts)
    async with rollouts.operating() as running:
        await running.settled()
        found = await rollouts.admin.get(rollouts.route("shop"))
        for one in found["spec"]["http"][0]["route"]:
            one["weight"] = 10 if "canary" in one["destination"]["host"] else 90
        await rollouts.admin.replace(rollouts.route("shop"), found)
        await rollouts.until_so(rollouts.route("shop"), lambda obj: weights(obj) == [50, 50])

        selector = {"spec": {"selector": {"app": "nobody"}}}
        service = rollouts.space.path("services", "shop-canary-service")
        await rollouts.admin.patch(service, selector)
        await rollouts.until_so(
            service, lambda obj: obj["spec"]["selector"] == {"app": "shop-canary"}
        )

        edited = {"spec": {"template": template("shop:evil")}}
        await rollouts.admin.patch(rollouts.deployment("shop-deployment"), edited)

        def is_back(obj: client.Json) -> bool:
            images = [one["image"] for one in obj["spec"]["template"]["spec"]["containers"]]
            return images == ["shop:1"]

        await rollouts.until_so(rollouts.deployment("shop-deployment"), is_back)
        await rollouts.admin.delete(service)
        await rollouts.until_so(service, bool)
        status = (await rollouts.admin.get(rollouts.path("shop")))["status"]
        await running.settled()

    assert status["canaryWeight"] == 50
    assert {"Drifted", "Restored"} <= await rollouts.reasons("shop")


@pytest.mark.requirement("canary R19", "canary R11")
async def test_a_deleted_object_takes_its_children_and_costs_no_write(
    rollouts: RolloutCluster,
) -> None:
    await midway(rollouts)
    async with rollouts.operating() as running:
        await running.settled()
        before = running.writes

        await rollouts.admin.delete(rollouts.path("shop"))
        for where in (
            rollouts.deployment("shop-deployment"),
            rollouts.deployment("shop-canary-deployment"),
            rollouts.space.path("services", "shop-service"),
            rollouts.route("shop"),
        ):
            await rollouts.admin.wait_until_gone(where)
        await running.settled()
        await asyncio.sleep(0.5)

        assert running.writes == before


@pytest.mark.requirement("canary R14", "canary R17")
async def test_a_newer_version_first_removes_the_canary_of_the_old_one(
    rollouts: RolloutCluster,
) -> None:
    await midway(rollouts)
    old = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))

    async with rollouts.operating():
        await rollouts.set_image("shop", "shop:3")
        await rollouts.until("shop", phase="AwaitingApproval", canaryVersion="shop:3")

    new = await rollouts.admin.get(rollouts.deployment("shop-canary-deployment"))
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "Superseded" in await rollouts.reasons("shop")


@pytest.mark.requirement("canary R24", "canary R25")
async def test_the_override_skips_its_steps_once_and_is_set_back(rollouts: RolloutCluster) -> None:
    await rollouts.create(canary(strategy={"paces": [{"weight": 50, "approve": True}]}))
    async with rollouts.operating():
        await rollouts.until("shop", phase="Stable")
        found = await rollouts.admin.get(rollouts.path("shop"))
        found["spec"]["override"] = True
        found["spec"]["deploymentSpec"]["template"] = template("shop:2")
        await rollouts.admin.replace(rollouts.path("shop"), found)
        await rollouts.until("shop", phase="Stable", stableVersion="shop:2")
        await rollouts.until_so(rollouts.path("shop"), lambda obj: obj["spec"]["override"] is False)

        await rollouts.set_image("shop", "shop:3")
        await rollouts.until("shop", phase="AwaitingApproval")


async def test_a_version_that_never_gets_ready_rolls_back_and_says_why(
    rollouts: RolloutCluster,
) -> None:
    await rollouts.create(canary(deadline="2s"))
    async with rollouts.operating() as running:
        await rollouts.until("shop", phase="Stable")
        found = await rollouts.admin.get(rollouts.path("shop"))
        spec = found["spec"]["deploymentSpec"]["template"]["spec"]
        spec["nodeSelector"] = {"no": "such-node"}
        await rollouts.admin.replace(rollouts.path("shop"), found)
        home = await rollouts.until("shop", phase="RolledBack")
        await rollouts.admin.wait_until_gone(rollouts.deployment("shop-canary-deployment"))
        await running.settled()

    assert "0 of 1 canary pods ready" in home["status"]["message"]
    assert await rollouts.weights("shop") == [100, 0]
    assert {"RollingBack", "RolledBack"} <= await rollouts.reasons("shop")


@pytest.mark.requirement("canary R18")
@pytest.mark.parametrize(("value", "phase"), [("99.9", "Stable"), ("71", "RolledBack")])
async def test_checks_end_in_promotion_or_in_a_rollback(
    rollouts: RolloutCluster, value: str, phase: str
) -> None:
    check = {"name": "good", "query": "up", "low": 99, "interval": "1s", "count": 2}
    await rollouts.create(canary(checks=[check]))
    async with answering(value) as (url, asked), rollouts.operating(prometheus=url) as running:
        await rollouts.until("shop", phase="Stable")
        await rollouts.set_image("shop", "shop:2")
        await rollouts.until_so(
            rollouts.path("shop"),
            lambda obj: (
                obj["status"]["phase"] == phase and obj["status"]["observedGeneration"] == 2
            ),
        )
        await running.settled()

    assert len(asked) >= 1
    ending = {"Stable": "Promoted", "RolledBack": "RolledBack"}[phase]
    assert ending in await rollouts.reasons("shop")


@contextlib.asynccontextmanager
async def answering(value: str) -> AsyncIterator[tuple[str, list[str]]]:
    """A Prometheus that knows one number, and what it was asked."""
    asked: list[str] = []

    async def query(request: web.Request) -> web.Response:
        sent = await request.post() if request.method == "POST" else request.query
        asked.append(str(sent["query"]))
        sample = {"metric": {}, "value": [1.0, value]}
        data = {"resultType": "vector", "result": [sample]}
        return web.json_response({"status": "success", "data": data})

    app = web.Application()
    app.router.add_route("*", "/api/v1/query", query)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def test_requests_by_annotation_are_obeyed_once(rollouts: RolloutCluster) -> None:
    await midway(rollouts)
    async with rollouts.operating() as running:
        await rollouts.ask("shop", pause="hold it")
        await rollouts.until("shop", phase="Paused")
        await rollouts.ask("shop", resume="1")
        await rollouts.until("shop", phase="AwaitingApproval")
        await rollouts.ask("shop", abort="1")
        await rollouts.until("shop", phase="RolledBack")
        await rollouts.ask("shop", approve="out of place")
        await rollouts.until_so(
            rollouts.path("shop"), lambda obj: "approve" in obj["status"].get("requests", {})
        )
        await rollouts.ask("shop", retry="1")
        found = await rollouts.until("shop", phase="AwaitingApproval")
        await running.settled()

    wanted = {"pause": "hold it", "resume": "1", "abort": "1", "approve": "out of place"}
    assert found["status"]["requests"].items() >= wanted.items()
    assert "RequestRefused" in await rollouts.reasons("shop")


def with_configs() -> client.Json:
    """A shop whose pods read a Secret and a ConfigMap."""
    made = canary()
    container = made["spec"]["deploymentSpec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"secretRef": {"name": "keys"}}, {"configMapRef": {"name": "texts"}}]
    return made


async def create_configs(rollouts: RolloutCluster) -> None:
    secret = {"metadata": {"name": "keys"}, "stringData": {"token": "one"}}
    await rollouts.admin.create(rollouts.space.path("secrets"), secret)
    texts = {"metadata": {"name": "texts"}, "data": {"hello": "one"}}
    await rollouts.admin.create(rollouts.space.path("configmaps"), texts)


async def until_another(rollouts: RolloutCluster, first: client.Json) -> None:
    """Until another revision than this one is stable."""
    await rollouts.until_so(
        rollouts.path("shop"),
        lambda obj: (
            obj["status"]["phase"] == "Stable"
            and obj["status"]["stableRevision"] != first["status"]["stableRevision"]
        ),
    )


async def test_a_changed_secret_that_the_pod_reads_starts_a_run(rollouts: RolloutCluster) -> None:
    await create_configs(rollouts)
    await rollouts.create(with_configs())
    async with rollouts.operating() as running:
        first = await rollouts.until("shop", phase="Stable")
        await rollouts.admin.patch(
            rollouts.space.path("secrets", "keys"), {"stringData": {"token": "2"}}
        )

        await until_another(rollouts, first)
        await running.settled()

    assert "Promoted" in await rollouts.reasons("shop")


async def test_an_operator_may_do_without_the_right_to_read_secrets(
    rollouts: RolloutCluster,
) -> None:
    kinds = [kind.without("secrets") for kind in wiring.with_kinds(bootstrap.installation()).kinds]
    rules = [*rbac.rules(kinds), *LEASE_RULES]
    assert not [rule for rule in rules if "secrets" in rule["resources"]]
    account = await rollouts.space.account("blind", rules)
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    blind = replace(rollouts, connection=replace(rollouts.connection, credentials=identity))
    await create_configs(rollouts)
    await rollouts.create(with_configs())

    async with blind.operating(without="secrets") as running:
        first = await rollouts.until("shop", phase="Stable")
        await rollouts.admin.patch(
            rollouts.space.path("secrets", "keys"), {"stringData": {"token": "2"}}
        )
        await running.settled()
        found = await rollouts.admin.get(rollouts.path("shop"))
        assert found["status"]["stableRevision"] == first["status"]["stableRevision"]
        # Its own key, which it may not read either; then its seals last as long as it does.
        assert {asked for asked in running.requests if "secrets" in asked} == {"get secrets"}

        await rollouts.admin.patch(
            rollouts.space.path("configmaps", "texts"), {"data": {"hello": "2"}}
        )
        await until_another(rollouts, first)
