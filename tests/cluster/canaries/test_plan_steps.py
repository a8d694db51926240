"""Plans whose version is a canary in Kubernetes: a database, a real API server, and an operator.

Two processes share a store, as a control plane and an operator do: one walks the plan and migrates
the database, the other one writes the version into the object and rolls it out.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.areas.deployments import migration_handlers
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.areas.deployments.local import handlers
from fairlead.areas.deployments.local.databases import Databases
from fairlead.areas.deployments.specs import build, reading, workload
from fairlead.areas.rollouts.local.plan_steps import PlanFiles
from fairlead.clients.postgres import administration, connection
from fairlead.clients.postgres.server import running as servers
from fairlead.clients.postgres.server.wheel import installed_wheel
from fairlead.engine import service, visibility
from fairlead.engine.messages import command_id, stream_name
from tests.cluster.canaries.hold import policy_in_force
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary
from tests.cluster.canaries.test_adopting import theirs
from tests.cluster.canaries.test_at_rest import at_rest
from tests.engines import events, state, tell, until

pytestmark = pytest.mark.cluster
__all__ = ["theirs"]

QUEUE = "local@test"
DEPLOYMENT = "shop-deployment"
DATABASE, STACK = "fairlead_cluster_shop_goods", "fairlead-cluster/shop"
SQL = {
    "0001_goods.sql": "CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (1)",
    "0002_stock.sql": "ALTER TABLE goods ADD COLUMN stock int NOT NULL DEFAULT 0",
    "0003_wider.sql": "ALTER TABLE goods ALTER COLUMN stock TYPE bigint",
}
OVER = {"DONE", "FAILED", "TERMINATED"}
SECONDS = 120.0


@pytest.fixture(params=["paused", "guarded"])
async def held(
    request: pytest.FixtureRequest, theirs: RolloutCluster
) -> AsyncIterator[RolloutCluster]:
    """A target that is paused between runs, and one that the cluster's policy guards."""
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "guarded":
            await stack.enter_async_context(policy_in_force(theirs))
        yield theirs


@pytest.fixture
def server(postgres_server: servers.Databases) -> Iterator[str]:
    connect = administration.connector(postgres_server.admin_url)
    admin = administration.Administration(connect, STACK)
    admin.destroy(DATABASE, confirmed=DATABASE)
    yield postgres_server.admin_url
    admin.destroy(DATABASE, confirmed=DATABASE)


@dataclass
class ControlPlane:
    """Who walks plans; its operator is another process, with the same store."""

    rollouts: RolloutCluster
    server: str
    operator_queue: str
    engine: service.Engine

    async def request(self, version: str, migrations: int = 0, *flags: Flag) -> None:
        app: dict[str, Any] = {
            "name": "shop",
            "kubernetes": {"containers": [{"name": "web", "image_url": f"shop:{version}"}]},
        }
        if migrations:
            app["databases"] = [{"name": "goods", "postgres": {"migrations": "sql"}}]
        place = {"queue": self.operator_queue, "namespace": self.rollouts.space.name}
        environment = {"full_name": "fairlead-cluster", "kubernetes": place}
        sql = {"goods": dict(list(SQL.items())[:migrations])}
        here = workload.Machine(QUEUE, self.rollouts.folder / "credentials", postgres=True)
        application = build.build_application(reading.application(app), version, sql)
        made = workload.build_spec(application, reading.environment(environment), here, flags)
        asked = messages.Request(version, made.spec, made.template, by="ann", beside=made.beside)
        stream = stream_name("deployment", version)
        await self.engine.submit(stream, asked, command_id(f"request {version}"), queue=QUEUE)

    async def ended(self, version: str) -> dict[str, Any]:
        with self.engine.watch() as signal:
            async with asyncio.timeout(SECONDS):
                while True:
                    found: dict[str, Any] = await state(self.engine, f"deployment/{version}")
                    if found["status"] in OVER:
                        return found
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.5):
                            await signal.wait()
                    signal.clear()


@contextlib.asynccontextmanager
async def control_plane(
    rollouts: RolloutCluster, operator_queue: str, server: str
) -> AsyncIterator[ControlPlane]:
    folder = rollouts.folder / "store"
    chosen = settings_.Settings(
        store=settings_.StoreSettings(state_dir=folder),
        engine=settings_.EngineSettings(poll_seconds=0.1, drain_seconds=1.0),
    )
    databases = Databases(server, rollouts.folder, str(installed_wheel().programs / "pg_dump"))
    made: list[service.Engine] = []
    performed = {
        **handlers.handlers(PlanFiles(rollouts.folder), databases, lambda: made[-1]),
        **migration_handlers.handlers(databases),
    }
    given = replace(bootstrap.installation(), queues={QUEUE: performed})
    async with given.engine(chosen, given.store(chosen.store)).running() as engine:
        made.append(engine)
        yield ControlPlane(rollouts, server, operator_queue, engine)


def steps(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["step"]["name"], each["status"]) for each in found["steps"]]


@pytest.mark.requirement("deployer P4a", "deployer P4b")
async def test_a_plan_spans_a_database_and_a_canary(rollouts: RolloutCluster, server: str) -> None:
    await rollouts.create(canary(strategy={"steps": [50]}))
    async with (
        rollouts.operating() as running,
        control_plane(rollouts, running.operator.queue, server) as control,
    ):
        first = await rollouts.until("shop", phase="Stable")
        await control.request("2", migrations=2)
        second = await control.ended("2")
        after_second = await rollouts.until("shop", phase="Stable")
        rollout = f"rollout/{rollouts.space.name}/shop/{first['metadata']['uid']}"
        canaried = await events(control.engine, rollout)
        await control.request("3", migrations=3)
        third = await control.ended("3")
        after_third = await rollouts.until("shop", phase="Stable")
        told = await events(control.engine, "rollout-step/3-ScaleDown-1")

    assert first["status"]["stableVersion"] == "shop:1"
    assert (second["status"], second["impact"]) == ("DONE", "BEFORE"), second["reason"]
    assert [name for name, _ in steps(second)][4:] == ["PGMigrate", "PGCleanup", "VersionMigrate"]
    assert after_second["status"]["stableVersion"] == "shop:2"
    # It was a canary with half of the traffic, and not only another image.
    assert {"Followed", "ShiftStarted", "RunEnded", "FollowEnded"} <= {*canaried}
    assert (third["status"], third["impact"]) == ("DONE", "DOWNTIME"), third["reason"]
    begun = [name for name, _ in steps(third)][4:]
    assert begun == ["ScaleDown", "PGMigrate", "PGCleanup", "ScaleUp"]
    assert told == ["StepStarted", "VersionApplied", "StepEnded"]
    assert after_third["status"]["stableVersion"] == "shop:3"
    assert after_third["spec"]["deploymentSpec"]["replicas"] == 2, "as many as before"


async def test_an_operator_that_starts_again_wakes_nothing_during_a_migration(
    rollouts: RolloutCluster, server: str
) -> None:
    """It tells its machines anew what each object asks for, in the middle of a plan's downtime."""
    await rollouts.create(canary(strategy={"steps": [50]}))
    async with contextlib.AsyncExitStack() as stack:
        async with rollouts.operating() as first:
            await rollouts.until("shop", phase="Stable")
            queue = first.operator.queue
            control = await stack.enter_async_context(control_plane(rollouts, queue, server))
            await control.request("2", migrations=2)
            assert (await control.ended("2"))["status"] == "DONE"
            inside = psycopg.connect(connection.of_database(server, DATABASE))
            stack.callback(inside.close)
            inside.execute("LOCK TABLE goods IN ROW EXCLUSIVE MODE")
            await control.request("3", migrations=3)
            await rollouts.until_so(
                rollouts.deployment(DEPLOYMENT), lambda obj: obj["spec"]["replicas"] == 0
            )
        async with rollouts.operating() as second:
            await second.settled()
            asleep = await rollouts.admin.get(rollouts.deployment(DEPLOYMENT))
            stands = await state(control.engine, "deployment/3")
            inside.rollback()
            found = await control.ended("3")
            await rollouts.until("shop", phase="Stable", stableVersion="shop:3")
            awake = await rollouts.admin.get(rollouts.deployment(DEPLOYMENT))

    assert dict(steps(stands))["ScaleUp"] == "BLOCKED", "the migration was waiting for a lock"
    assert asleep["spec"]["replicas"] == 0
    assert found["status"] == "DONE", found["reason"]
    assert awake["spec"]["replicas"] == 2


@pytest.mark.requirement("deployer S10")
async def test_a_canary_of_a_target_that_is_rolled_back_fails_its_plan_with_the_reason(
    held: RolloutCluster, server: str
) -> None:
    async with (
        held.operating() as running,
        control_plane(held, running.operator.queue, server) as control,
    ):
        await held.until("shop", phase="Stable")
        await control.request("2")
        await held.until("shop", phase="AwaitingApproval")
        await held.ask("shop", abort="the numbers look odd")
        found = await control.ended("2")
        stack: dict[str, Any] = await state(control.engine, f"stack/{STACK}")
        after = await held.until("shop", canaryWeight=0, stableVersion="shop:1")
        await tell(control.engine, f"stack/{STACK}", messages.Retry("ann"))
        await held.until("shop", phase="AwaitingApproval")
        await held.ask("shop", approve="1")
        again = await control.ended("2.r2")

    assert found["status"] == "FAILED"
    assert found["reason"].startswith("Step VersionMigrate: rolled back: ")
    assert "aborted by annotation" in found["reason"]
    assert stack["status"] == "BROKEN"
    assert after["status"]["canaryWeight"] == 0
    # The object says what it said before: that a plan asks for it again makes it a new run.
    assert (again["status"], again["reason"]) == ("DONE", "")


async def test_a_target_that_a_plan_stops_comes_back_with_as_many_and_is_held_again(
    held: RolloutCluster, server: str
) -> None:
    async with (
        held.operating() as running,
        control_plane(held, running.operator.queue, server) as control,
    ):
        await held.until("shop", phase="Stable")
        await control.request("2", 0, Flag.SEQUENTIAL)
        found = await control.ended("2")
        await held.until("shop", phase="Stable", stableVersion="shop:2")
        # One that is held with no pods gets them afterwards.
        await held.until_ready("shop", 2)
        target = await held.until_so(
            held.deployment("shop"), lambda obj: at_rest(obj) or obj["spec"].get("paused") is True
        )

    # Nobody approved: nothing ran beside which a canary could stand.
    assert (found["status"], steps(found)) == (
        "DONE",
        [("ScaleDown", "DONE"), ("ScaleUp", "DONE")],
    )
    assert target["spec"]["replicas"] == target["status"]["readyReplicas"] == 2


async def test_an_operator_that_was_away_brings_no_version_of_a_plan_that_has_ended(
    theirs: RolloutCluster, server: str
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with theirs.operating() as first:
            await theirs.until("shop", phase="Stable")
            queue = first.operator.queue
            control = await stack.enter_async_context(control_plane(theirs, queue, server))
        await control.request("2")

        async def asked() -> bool:
            return bool(await events(control.engine, "rollout-step/2-VersionMigrate-1"))

        await until(asked)
        await tell(control.engine, "deployment/2", messages.Terminate("ann", "wrong day"))
        ended = await control.ended("2")
        async with theirs.operating() as second:
            await second.settled()
            target = await theirs.admin.get(theirs.deployment("shop"))
            left = await control.engine.read(visibility.effects)

    (web,) = target["spec"]["template"]["spec"]["containers"]
    assert (ended["status"], web["image"], [*left]) == ("TERMINATED", "shop:1", [])


async def test_a_terminated_plan_gives_its_canary_up_and_what_is_missing_is_told(
    theirs: RolloutCluster, server: str
) -> None:
    async with (
        theirs.operating() as running,
        control_plane(theirs, running.operator.queue, server) as control,
    ):
        await theirs.until("shop", phase="Stable")
        await control.request("2")
        await theirs.until("shop", phase="AwaitingApproval")
        await tell(control.engine, "deployment/2", messages.Terminate("ann", "wrong day"))
        ended = await control.ended("2")
        after = await theirs.until("shop", canaryWeight=0, stableVersion="shop:1")
        await tell(control.engine, f"stack/{STACK}", messages.ForceAvailable("ann", "as it was"))
        await theirs.admin.delete(theirs.path("shop"))
        await theirs.admin.wait_until_gone(theirs.path("shop"))
        await control.request("3")
        missing = await control.ended("3")

    assert ended["status"] == "TERMINATED"
    assert after["status"]["stableVersion"] == "shop:1"
    assert missing["status"] == "FAILED"
    assert "no such rollout in this cluster" in missing["reason"]
