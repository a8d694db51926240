"""A version's way on the cluster: its own pods and labels, its steps, and how it can end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web

from fairlead import bootstrap
from fairlead.adapters.kubernetes import credentials, rights
from tests.cluster import client
from tests.cluster.canaries.scene import Scene, canary, template, weights

pytestmark = pytest.mark.cluster


async def midway(scene: Scene) -> None:
    """Version 2 has half of the requests, and waits for a person."""
    await scene.create(canary(strategy={"paces": [{"weight": 50, "approve": True}]}))
    async with scene.operating():
        await scene.until("shop", phase="Stable")
        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="AwaitingApproval")


@pytest.mark.requirement("canary R13", "canary R15", "canary R18", "canary R20", "canary R23")
async def test_a_new_version_has_pods_of_its_own_and_is_promoted(scene: Scene) -> None:
    await midway(scene)

    service = await scene.admin.get(scene.space.path("services", "shop-canary-service"))
    pods = await scene.admin.get(scene.deployment("shop-canary-deployment"))
    primary = await scene.admin.get(scene.deployment("shop-deployment"))
    assert service["spec"]["selector"] == {"app": "shop-canary"}
    assert pods["spec"]["selector"]["matchLabels"] == {"app": "shop-canary"}
    assert pods["spec"]["template"]["metadata"]["labels"] == {"app": "shop-canary"}
    assert primary["spec"]["template"]["spec"] != pods["spec"]["template"]["spec"]
    assert await scene.weights("shop") == [50, 50]

    async with scene.operating() as ship:
        await scene.ask("shop", approve="1")
        found = await scene.until("shop", phase="Stable", stableVersion="shop:2")
        await scene.admin.wait_until_gone(scene.deployment("shop-canary-deployment"))
        await ship.settled()

    primary = await scene.admin.get(scene.deployment("shop-deployment"))
    assert primary["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:2"
    assert found["status"]["requests"] == {"approve": "1"}
    assert await scene.weights("shop") == [100, 0]
    wanted = {"RolloutStarted", "StepReached", "Promoted"}
    assert wanted <= await scene.reasons("shop")


@pytest.mark.parametrize("store", ["store", "another"], ids=["kept", "lost"])
async def test_a_baseline_comes_and_goes_with_the_canary(scene: Scene, store: str) -> None:
    steps = {"paces": [{"weight": 20, "approve": True}], "baseline": True}
    await scene.create(canary(strategy=steps))
    async with scene.operating():
        await scene.until("shop", phase="Stable")
        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="AwaitingApproval", baselineWeight=20, primaryWeight=60)
    made = await scene.admin.get(scene.deployment("shop-baseline-deployment"))
    service = await scene.admin.get(scene.space.path("services", "shop-baseline-service"))
    route = (await scene.admin.get(scene.route("shop")))["spec"]["http"][0]["route"]

    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:1"
    assert made["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert service["spec"]["selector"] == {"app": "shop-baseline"}
    assert {one["destination"]["host"]: one["weight"] for one in route} == {
        "shop-service": 60,
        "shop-canary-service": 20,
        "shop-baseline-service": 20,
    }
    async with scene.operating(store) as ship:
        await ship.settled()
        await scene.ask("shop", abort="1")
        await scene.until("shop", phase="TakenBack", baselineWeight=0)
        await scene.admin.wait_until_gone(scene.deployment("shop-baseline-deployment"))
        await scene.admin.wait_until_gone(scene.deployment("shop-canary-deployment"))
        await ship.settled()
    assert await scene.weights("shop") == [100, 0]


@pytest.mark.requirement("canary R27")
async def test_a_canary_reaches_its_first_pause_in_six_requests(scene: Scene) -> None:
    """A Deployment, a weight, two Events, and a status at the start and at the pause."""
    await scene.create(canary(strategy={"paces": [{"weight": 50, "approve": True}]}))
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        await ship.settled()
        before = ship.requests.copy()

        await scene.set_image("shop", "shop:2")
        await scene.until("shop", phase="AwaitingApproval")
        await ship.settled()

        spent = ship.requests - before
        assert spent["create deployments.apps"] == 1
        assert spent["patch virtualservices.networking.istio.io"] == 1
        assert spent.total() <= 6, spent


@pytest.mark.requirement("canary R27", "canary R23")
@pytest.mark.parametrize("store", ["store", "another"], ids=["kept", "lost"])
async def test_a_restart_goes_on_mid_canary(scene: Scene, store: str) -> None:
    await midway(scene)
    made = await scene.admin.get(scene.deployment("shop-canary-deployment"))

    async with scene.operating(store) as ship:
        await ship.settled()
        assert await scene.weights("shop") == [50, 50]
        same = await scene.admin.get(scene.deployment("shop-canary-deployment"))
        assert same["metadata"]["uid"] == made["metadata"]["uid"]
        await scene.ask("shop", approve="1")
        await scene.until("shop", phase="Stable", stableVersion="shop:2")


@pytest.mark.requirement("canary R26")
async def test_what_a_hand_changed_is_put_back(scene: Scene) -> None:
    await midway(scene)
    async with scene.operating() as ship:
        await ship.settled()
        found = await scene.admin.get(scene.route("shop"))
        for one in found["spec"]["http"][0]["route"]:
            one["weight"] = 10 if "canary" in one["destination"]["host"] else 90
        await scene.admin.replace(scene.route("shop"), found)
        await scene.until_so(scene.route("shop"), lambda obj: weights(obj) == [50, 50])

        selector = {"spec": {"selector": {"app": "nobody"}}}
        service = scene.space.path("services", "shop-canary-service")
        await scene.admin.patch(service, selector)
        await scene.until_so(service, lambda obj: obj["spec"]["selector"] == {"app": "shop-canary"})

        edited = {"spec": {"template": template("shop:evil")}}
        await scene.admin.patch(scene.deployment("shop-deployment"), edited)

        def is_back(obj: client.Json) -> bool:
            images = [one["image"] for one in obj["spec"]["template"]["spec"]["containers"]]
            return images == ["shop:1"]

        await scene.until_so(scene.deployment("shop-deployment"), is_back)
        await scene.admin.delete(service)
        await scene.until_so(service, bool)
        status = (await scene.admin.get(scene.path("shop")))["status"]
        await ship.settled()

    assert status["canaryWeight"] == 50
    assert {"Drifted", "Restored"} <= await scene.reasons("shop")


@pytest.mark.requirement("canary R19", "canary R11")
async def test_a_deleted_object_takes_its_children_and_costs_no_write(scene: Scene) -> None:
    await midway(scene)
    async with scene.operating() as ship:
        await ship.settled()
        before = ship.writes

        await scene.admin.delete(scene.path("shop"))
        for where in (
            scene.deployment("shop-deployment"),
            scene.deployment("shop-canary-deployment"),
            scene.space.path("services", "shop-service"),
            scene.route("shop"),
        ):
            await scene.admin.wait_until_gone(where)
        await ship.settled()
        await asyncio.sleep(0.5)

        assert ship.writes == before


@pytest.mark.requirement("canary R14", "canary R17")
async def test_a_newer_version_first_removes_the_canary_of_the_old_one(scene: Scene) -> None:
    await midway(scene)
    old = await scene.admin.get(scene.deployment("shop-canary-deployment"))

    async with scene.operating():
        await scene.set_image("shop", "shop:3")
        await scene.until("shop", phase="AwaitingApproval", canaryVersion="shop:3")

    new = await scene.admin.get(scene.deployment("shop-canary-deployment"))
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "Superseded" in await scene.reasons("shop")


@pytest.mark.requirement("canary R24", "canary R25")
async def test_the_override_goes_straight_once_and_is_set_back(scene: Scene) -> None:
    await scene.create(canary(strategy={"paces": [{"weight": 50, "approve": True}]}))
    async with scene.operating():
        await scene.until("shop", phase="Stable")
        found = await scene.admin.get(scene.path("shop"))
        found["spec"]["override"] = True
        found["spec"]["deploymentSpec"]["template"] = template("shop:2")
        await scene.admin.replace(scene.path("shop"), found)
        await scene.until("shop", phase="Stable", stableVersion="shop:2")
        await scene.until_so(scene.path("shop"), lambda obj: obj["spec"]["override"] is False)

        await scene.set_image("shop", "shop:3")
        await scene.until("shop", phase="AwaitingApproval")


async def test_a_version_that_never_gets_ready_goes_home_and_says_why(scene: Scene) -> None:
    await scene.create(canary(deadline="2s"))
    async with scene.operating() as ship:
        await scene.until("shop", phase="Stable")
        found = await scene.admin.get(scene.path("shop"))
        spec = found["spec"]["deploymentSpec"]["template"]["spec"]
        spec["nodeSelector"] = {"no": "such-node"}
        await scene.admin.replace(scene.path("shop"), found)
        home = await scene.until("shop", phase="TakenBack")
        await scene.admin.wait_until_gone(scene.deployment("shop-canary-deployment"))
        await ship.settled()

    assert "0 of 1 canary pods ready" in home["status"]["message"]
    assert await scene.weights("shop") == [100, 0]
    assert {"GoingHome", "TakenBack"} <= await scene.reasons("shop")


@pytest.mark.requirement("canary R18")
@pytest.mark.parametrize(("value", "phase"), [("99.9", "Stable"), ("71", "TakenBack")])
async def test_checks_end_in_promotion_or_on_the_way_home(
    scene: Scene, value: str, phase: str
) -> None:
    check = {"name": "good", "query": "up", "low": 99, "interval": "1s", "count": 2}
    await scene.create(canary(checks=[check]))
    async with answering(value) as (url, asked), scene.operating(prometheus=url) as ship:
        await scene.until("shop", phase="Stable")
        await scene.set_image("shop", "shop:2")
        await scene.until_so(
            scene.path("shop"),
            lambda obj: (
                obj["status"]["phase"] == phase and obj["status"]["observedGeneration"] == 2
            ),
        )
        await ship.settled()

    assert len(asked) >= 1
    ending = {"Stable": "Promoted", "TakenBack": "TakenBack"}[phase]
    assert ending in await scene.reasons("shop")


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


async def test_requests_by_annotation_are_obeyed_once(scene: Scene) -> None:
    await midway(scene)
    async with scene.operating() as ship:
        await scene.ask("shop", pause="hold it")
        await scene.until("shop", phase="Paused")
        await scene.ask("shop", resume="1")
        await scene.until("shop", phase="AwaitingApproval")
        await scene.ask("shop", abort="1")
        await scene.until("shop", phase="TakenBack")
        await scene.ask("shop", approve="out of place")
        await scene.until_so(
            scene.path("shop"), lambda obj: "approve" in obj["status"].get("requests", {})
        )
        await scene.ask("shop", retry="1")
        found = await scene.until("shop", phase="AwaitingApproval")
        await ship.settled()

    wanted = {"pause": "hold it", "resume": "1", "abort": "1", "approve": "out of place"}
    assert found["status"]["requests"].items() >= wanted.items()
    assert "RequestRefused" in await scene.reasons("shop")


def with_configs() -> client.Json:
    """A shop whose pods read a Secret and a ConfigMap."""
    made = canary()
    container = made["spec"]["deploymentSpec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"secretRef": {"name": "keys"}}, {"configMapRef": {"name": "texts"}}]
    return made


async def create_configs(scene: Scene) -> None:
    secret = {"metadata": {"name": "keys"}, "stringData": {"token": "one"}}
    await scene.admin.create(scene.space.path("secrets"), secret)
    texts = {"metadata": {"name": "texts"}, "data": {"hello": "one"}}
    await scene.admin.create(scene.space.path("configmaps"), texts)


async def until_another(scene: Scene, first: client.Json) -> None:
    """Until another revision than this one is stable."""
    await scene.until_so(
        scene.path("shop"),
        lambda obj: (
            obj["status"]["phase"] == "Stable"
            and obj["status"]["stableRevision"] != first["status"]["stableRevision"]
        ),
    )


async def test_a_changed_secret_that_the_pod_reads_starts_a_run(scene: Scene) -> None:
    await create_configs(scene)
    await scene.create(with_configs())
    async with scene.operating() as ship:
        first = await scene.until("shop", phase="Stable")
        await scene.admin.patch(scene.space.path("secrets", "keys"), {"stringData": {"token": "2"}})

        await until_another(scene, first)
        await ship.settled()

    assert "Promoted" in await scene.reasons("shop")


async def test_an_operator_may_do_without_the_right_to_read_secrets(scene: Scene) -> None:
    kinds = [kind.without("secrets") for kind in bootstrap.cast().kinds]
    rules = [*rights.rules(kinds), *rights.lease_rules()]
    assert not [rule for rule in rules if "secrets" in rule["resources"]]
    account = await scene.space.account("blind", rules)
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    blind = replace(scene, connection=replace(scene.connection, credentials=identity))
    await create_configs(scene)
    await scene.create(with_configs())

    async with blind.operating(without="secrets") as ship:
        first = await scene.until("shop", phase="Stable")
        await scene.admin.patch(scene.space.path("secrets", "keys"), {"stringData": {"token": "2"}})
        await ship.settled()
        found = await scene.admin.get(scene.path("shop"))
        assert found["status"]["stableRevision"] == first["status"]["stableRevision"]
        assert not [asked for asked in ship.requests if "secrets" in asked]

        await scene.admin.patch(scene.space.path("configmaps", "texts"), {"data": {"hello": "2"}})
        await until_another(scene, first)
