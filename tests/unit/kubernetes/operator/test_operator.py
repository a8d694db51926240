"""The operator on the fake API server: quick, and at moments that a real one seldom gives."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlead import bootstrap, settings
from fairlead.bootstrap import operator as wiring
from fairlead.bootstrap import tracing as tracing_
from fairlead.clients import otlp
from fairlead.engine import service, visibility
from fairlead.errors import Rejected
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.kinds import Related
from fairlead.kubernetes.objects import Key, Object, Resource, Selection, uid_of
from fairlead.kubernetes.operator import operator
from fairlead.kubernetes.schema import CRDS
from fairlead.settings import OperatorSettings
from tests.fakes.kubernetes.server import Fault, Request, Server
from tests.operator.sample_kind import BUNDLES, CONFIG_MAPS, KIND, bundle
from tests.operator.workers import RunningOperator, lease, quick, working

GADGETS = CONFIG_MAPS
LONG = "n" * 120


@dataclasses.dataclass
class Bay:
    """A fake API server with the sample kind, and a hand that changes things."""

    server: Server
    connection: Connection
    hand: Client

    async def launch(self, *names: str) -> None:
        for name in names:
            await self.hand.create(BUNDLES, bundle("default", name))

    async def cargoes(self) -> list[str]:
        found = self.hand.each(GADGETS, Selection("default"))
        return [one["data"]["cargo"] async for one in found]

    async def get(self, name: str) -> Object:
        return await self.hand.get(BUNDLES, Key("default", name))


@pytest.fixture
async def bay() -> AsyncIterator[Bay]:
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            await hand.create(CRDS, rbac.definition(KIND))
            yield Bay(server, connection, hand)


async def live_streams(running_operator: RunningOperator) -> list[str]:
    engine = running_operator.operator.engine
    assert engine is not None
    which = visibility.StreamFilter(machine="bundle", ended=False)
    return [one.name for one in await engine.read(lambda s: visibility.streams(s, which))]


async def test_an_object_costs_four_writes_and_then_none(bay: Bay, tmp_path: Path) -> None:
    await bay.launch("a", "b")

    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.until_done()
        first = running_operator.writes
        engine = running_operator.operator.engine
        assert engine is not None
        commits = engine.counts.commits
        before = running_operator.requests.copy()
        running_operator.reconcile_all()
        await running_operator.settled()

    assert first == 8
    assert (running_operator.requests - before).total() == 0
    assert engine.counts.commits == commits


@pytest.mark.parametrize("name", ["a", LONG], ids=["short", "long"])
async def test_a_restart_goes_on_with_its_store(bay: Bay, tmp_path: Path, name: str) -> None:
    await bay.launch(name)
    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.until_done()

    await bay.hand.patch(BUNDLES, Key("default", name), {"spec": {"cargo": "silk"}})
    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.until_done()

    assert await bay.cargoes() == ["silk"] * 3
    assert (await bay.get(name))["status"]["voyages"] == 2


async def test_objects_that_went_while_nobody_looked_end_their_streams(
    bay: Bay, tmp_path: Path
) -> None:
    await bay.launch("a", "b")
    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.until_done()
    gone = uid_of(await bay.get("a"))
    await bay.hand.delete(BUNDLES, Key("default", "a"))

    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.operator.leading.wait()
        engine = running_operator.operator.engine
        assert engine is not None
        await until_committed(engine)
        left = await live_streams(running_operator)

    assert [one for one in left if gone in one] == []
    assert len(left) == 1


async def until_committed(engine: service.Engine) -> None:
    with engine.watch() as signal:
        if not engine.counts.commits:
            await asyncio.wait_for(signal.wait(), 20)


async def test_a_store_older_than_the_status_catches_up(bay: Bay, tmp_path: Path) -> None:
    await bay.launch("a")
    async with working(bay.connection, "default", tmp_path / "old") as running_operator:
        await running_operator.until_done()
    for cargo in ("silk", "salt"):
        await bay.hand.patch(BUNDLES, Key("default", "a"), {"spec": {"cargo": cargo}})
        async with working(bay.connection, "default", tmp_path / "new") as running_operator:
            await running_operator.until_done()

    await bay.hand.patch(BUNDLES, Key("default", "a"), {"spec": {"cargo": "tin"}})
    async with working(bay.connection, "default", tmp_path / "old") as running_operator:
        await running_operator.until_done()

    assert (await bay.get("a"))["status"]["voyages"] == 4


async def test_a_shared_store_serves_the_next_leader(bay: Bay, postgres_url: str) -> None:
    chosen = settings.Settings(
        store=settings.StoreSettings(database_url=postgres_url),
        engine=settings.EngineSettings(poll_seconds=0.1, drain_seconds=1.0),
    )
    shared = wiring.engines(chosen, bootstrap.Installation(kinds=[KIND]))
    times = {"duration": 30.0, "renew_deadline": 20.0, "retry": 0.1}
    await bay.launch("a")

    async with working(bay.connection, "default", shared, lease("default", "1", **times)) as first:
        await first.until_done()
        async with working(
            bay.connection, "default", shared, lease("default", "2", **times)
        ) as second:
            first.task.cancel()
            await asyncio.wait({first.task})
            await bay.hand.patch(BUNDLES, Key("default", "a"), {"spec": {"cargo": "silk"}})
            await second.operator.leading.wait()
            await second.until(lambda: second.bundles[0]["metadata"]["generation"] == 2)
            await second.until_done()
            streams = await live_streams(second)

    assert (await bay.get("a"))["status"]["voyages"] == 2
    assert await bay.cargoes() == ["silk"] * 3
    assert len(streams) == 1


async def test_an_old_request_never_undoes_a_newer_one(bay: Bay, tmp_path: Path) -> None:
    """The first round fails at its last child; the second overtakes it while it waits."""

    def third_child(request: Request) -> bool:
        return request.method == "POST" and request.path.endswith("/configmaps")

    await bay.launch("a")
    bay.server.faults.append(Fault(409, 2, reason="Conflict", only=third_child))
    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.operator.leading.wait()
        await bay.hand.patch(BUNDLES, Key("default", "a"), {"spec": {"cargo": "silk"}})
        await running_operator.until(
            lambda: running_operator.bundles[0]["metadata"]["generation"] == 2
        )
        await running_operator.until_done()

    assert await bay.cargoes() == ["silk"] * 3


async def test_health_and_figures_are_told(bay: Bay, tmp_path: Path) -> None:
    await bay.launch("a")
    async with working(bay.connection, "default", tmp_path) as running_operator:
        await running_operator.until_done()
        async with (
            running_operator.operator.answering("127.0.0.1:0") as address,
            aiohttp.ClientSession(address) as asking,
        ):
            async with asking.get("/healthz") as alive, asking.get("/readyz") as ready:
                codes = (alive.status, ready.status)
            async with asking.get("/metrics") as answer:
                figures = await answer.text()

    assert codes == (200, 200)
    assert "fairlead_operator_leader 1.0" in figures
    assert "fairlead_operator_objects 1.0" in figures
    assert 'resource="configmaps",verb="create"} 3.0' in figures
    assert "fairlead_store_up 1.0" in figures
    assert "fairlead_effect_duration_seconds_bucket" in figures


async def test_an_operator_without_caches_is_not_ready(bay: Bay, tmp_path: Path) -> None:
    bay.server.faults.append(Fault(500, 1000))
    async with (
        working(bay.connection, "default", tmp_path) as running_operator,
        running_operator.operator.answering("127.0.0.1:0") as address,
        aiohttp.ClientSession(address) as asking,
        asking.get("/readyz") as answer,
    ):
        told = await answer.json()

    assert answer.status == 503
    assert told["reasons"] == ["caches are not synced yet"]


async def test_a_kind_that_is_not_installed_keeps_no_other_waiting(
    bay: Bay, tmp_path: Path
) -> None:
    await bay.launch("a")
    api = Resource("tests.fairlead.dev", "v1", "absentees", "Absentee")
    absent = dataclasses.replace(KIND, api=api)

    async with working(
        bay.connection, "default", tmp_path, kinds=[KIND, absent]
    ) as running_operator:
        await running_operator.until_done()
        ready = running_operator.operator.controllers[0].held.objects.is_served
        missing = running_operator.operator.controllers[1].held.objects.is_served

    assert (ready, missing) == (True, False)


async def test_other_shards_are_left_alone(bay: Bay, tmp_path: Path) -> None:
    await bay.launch("a")
    shard = next(one for one in (Shard(0, 2), Shard(1, 2)) if not one.owns(Key("default", "a")))

    async with working(bay.connection, "default", tmp_path, shard=shard) as running_operator:
        await running_operator.operator.leading.wait()
        await running_operator.settled()

    assert running_operator.writes == 0


@pytest.mark.parametrize("listen", ["8601", "here:port", "127.0.0.1:70000", ""])
async def test_a_place_to_answer_must_be_one(bay: Bay, tmp_path: Path, listen: str) -> None:
    async with working(bay.connection, "default", tmp_path) as running_operator:
        with pytest.raises(Rejected, match="invalid address and port"):
            async with running_operator.operator.answering(listen):
                pass


@pytest.mark.parametrize("text", ["1", "a/b", "2/2", "-1/2", "1/2/3", ""])
def test_a_shard_must_be_one(text: str) -> None:
    with pytest.raises(Rejected, match="shard"):
        operator.parse_shard(text)


def test_orders_may_leave_out_secrets() -> None:
    connection = Connection("https://api.test", credentials.Fixed(), namespace="ops")
    secrets = Resource("", "v1", "secrets", "Secret")
    kind = dataclasses.replace(KIND, related=(Related(CONFIG_MAPS), Related(secrets)))

    reading = operator.orders(OperatorSettings(), [kind], connection, elect=False)
    blind = OperatorSettings(operator_secrets="ignored")
    ignoring = operator.orders(blind, [kind], connection, elect=False)

    assert [str(one.api) for one in reading.kinds[0].related] == ["configmaps", "secrets"]
    assert [str(one.api) for one in ignoring.kinds[0].related] == ["configmaps"]


def test_orders_follow_the_settings() -> None:
    chosen = OperatorSettings(operator_namespace="shop", operator_shard="1/3")
    connection = Connection("http://127.0.0.1:1", credentials.Fixed(), namespace="home")

    alone = operator.orders(chosen, [KIND], connection, elect=False)
    elected = operator.orders(chosen, [KIND], connection, elect=True)

    assert alone.candidacy is None
    assert elected.candidacy is not None
    assert elected.candidacy.key == Key("home", "fairlead-operator-1-of-3")
    assert (elected.namespace, elected.shard) == ("shop", Shard(1, 3))


def test_rights_follow_the_kind() -> None:
    rules = {(rule["apiGroups"][0], rule["resources"][0]): rule for rule in rbac.rules([KIND])}

    assert rules["", "configmaps"]["verbs"] == [
        "create", "delete", "get", "list", "patch", "watch",
    ]  # fmt: skip
    assert rules["tests.fairlead.dev", "bundles"]["verbs"] == ["get", "list", "patch", "watch"]
    assert rules["tests.fairlead.dev", "bundles/status"]["verbs"] == ["patch"]
    assert not any("*" in rule["verbs"] or "*" in rule["resources"] for rule in rules.values())


def test_a_status_has_no_defaults_and_a_spec_has() -> None:
    (version,) = rbac.definition(KIND)["spec"]["versions"]
    found = version["schema"]["openAPIV3Schema"]["properties"]

    assert found["spec"]["properties"]["gadgets"]["default"] == 3
    assert "default" not in str(found["status"])


async def test_each_effect_on_the_cluster_leaves_a_span(bay: Bay, tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    tracing = tracing_.Tracing(otlp.provided(SimpleSpanProcessor(spans)).tracer, on=True)
    await bay.launch("north")
    engine = wiring.engines(quick(tmp_path), bootstrap.Installation(kinds=[KIND]), tracing)

    async with working(bay.connection, "default", engine) as running_operator:
        await running_operator.until_done()

    found = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
    assert [one["fairlead.effect"] for one in found] == ["ApplyChildren", "PublishStatus"]
    uid = uid_of(await bay.get("north"))
    assert {one["fairlead.stream"] for one in found} == {f"bundle/default/north/{uid}"}
