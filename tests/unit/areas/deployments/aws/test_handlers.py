"""The whole sequence on moto's AWS and a real PostgreSQL: the engine, and nothing recorded.

Every effect is also performed twice before its answer counts, or its first answer is lost, as when
AWS throttles after it acted: it ends the same, and what is outside was done once.
"""

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.area import parts
from fairlead.areas.deployments import area, host
from fairlead.areas.deployments.aws import wiring
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.areas.deployments.specs import build
from fairlead.clients.aws.session import Account, Aws
from fairlead.clients.aws.stores import SecretStore
from fairlead.clients.postgres import connection
from fairlead.engine import outbox, service, visibility
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import sqlite
from fairlead.engine.testing import HandWoundClock
from tests.aws import REGION, Cloud
from tests.engines import events, state, tell
from tests.unit.areas.deployments.aws.conftest import ENVIRONMENT, NAME
from tests.unit.areas.deployments.aws.steps import APP, BUCKET, built, prepare
from tests.unit.clients.aws.test_tasks import register_instance

pytestmark = [pytest.mark.xdist_group("moto"), pytest.mark.slow]
MACHINES = parts.machines([parts.core(area.DEPLOYMENTS)])
PATIENCE = 240.0
STATES = ("RUNNING", "STOPPED")
CONTAINER = {"name": "migrate", "image": {"name": "shop"}}
POSTGRES = {"server_group": "main", "db_name": "fl_orders", "migrate_container": CONTAINER}
BY_TASK = {**APP, "databases": [{"name": "orders", "postgres": POSTGRES}]}
OVER = {"DONE", "FAILED", "TERMINATED"}


@dataclasses.dataclass
class Site:
    """An engine whose queue is served by AWS."""

    folder: Path
    cloud: Cloud
    server: str
    pg_dump: str
    times: int = 1
    loses: bool = False
    """Whether the first answer to each effect is lost."""

    wall: HandWoundClock = dataclasses.field(default_factory=HandWoundClock)

    @property
    def settings(self) -> DeploymentSettings:
        return DeploymentSettings(BUCKET, aws_endpoint=self.cloud.url, aws_pg_dump=self.pg_dump)

    def engine(self) -> service.Engine:
        kept = sqlite.SqliteStore(self.folder / "fairlead.db")
        kept.migrate()
        served = {
            type_: dataclasses.replace(each, perform=self._repeated(each.perform))
            for type_, each in wiring.performed(self.settings).items()
        }
        queues = {host.queue(self.settings): served}
        # Time is wound faster than threads renew a lease.
        tuning = service.Tuning(lease=timedelta(days=1))
        return service.Engine(
            service.Parts(kept, MACHINES, wall=self.wall, tuning=tuning, queues=queues)
        )

    def _repeated(
        self, perform: Callable[[Any, outbox.EffectContext], Awaitable[object | None]]
    ) -> Callable[[Any, outbox.EffectContext], Awaitable[object | None]]:
        async def again(effect: Any, about: outbox.EffectContext) -> object | None:
            for _ in range(self.times - 1):
                await perform(effect, about)
            answer = await perform(effect, about)
            if self.loses and about.attempt == 1:
                raise errors.Unavailable("AWS: Throttling: too fast", hint="it is tried again")
            return answer

        return again

    async def request(
        self, engine: service.Engine, name: str, made: build.Built, *flags: Flag
    ) -> None:
        spec = dataclasses.replace(made.spec, flags=flags)
        asked = messages.Request(name, spec, made.template, "test", "ann", beside=made.beside)
        stream, queue = stream_name("deployment", name), host.queue(self.settings)
        await engine.submit(stream, asked, command_id(f"request {name}"), queue=queue)

    async def ended(self, engine: service.Engine, name: str) -> Any:
        async def over() -> bool:
            return (await state(engine, f"deployment/{name}"))["status"] in OVER

        await self.until(engine, over)
        return await state(engine, f"deployment/{name}")

    async def until(self, engine: service.Engine, check: Callable[[], Awaitable[bool]]) -> None:
        """Time moves fast only while nothing is under way, however long AWS takes."""
        async with asyncio.timeout(PATIENCE):
            while not await check():
                found = await engine.read(visibility.effects)
                working = any(each.held for each in found)
                # What nobody holds waits for its next try, all else for a timer.
                self.wall.advance(timedelta(milliseconds=50) if working else timedelta(seconds=2))
                await asyncio.sleep(0.02)

    def tasks(self) -> list[str]:
        ecs = self.cloud.client("ecs")
        both = [ecs.list_tasks(cluster="ecs", desiredStatus=each) for each in STATES]
        return [arn for each in both for arn in each["taskArns"]]

    def stack(self) -> Any:
        found = self.cloud.client("cloudformation").describe_stacks(StackName=f"{ENVIRONMENT}-shop")
        (stack,) = found["Stacks"]
        given = {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}
        return stack["StackStatus"], given

    def edit(self, change: Callable[[Any], None], **parameters: str) -> str:
        """As a person does in the console; the count of services after it."""
        name, cloudformation = f"{ENVIRONMENT}-shop", self.cloud.client("cloudformation")
        template = cloudformation.get_template(StackName=name)["TemplateBody"]
        body = template if isinstance(template, dict) else json.loads(template)
        change(body)
        given = {**self.stack()[1], **parameters}
        cloudformation.update_stack(
            StackName=name,
            TemplateBody=json.dumps(body),
            Parameters=[
                {"ParameterKey": key, "ParameterValue": value} for key, value in given.items()
            ],
        )
        return str(self.stack()[1]["DesiredCountWeb"])

    def tables(self) -> list[tuple[str, str]]:
        with psycopg.connect(connection.of_database(self.server, NAME)) as inside:
            return inside.execute(
                "SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            ).fetchall()


@pytest.fixture
def site(
    request: pytest.FixtureRequest, tmp_path: Path, cloud: Cloud, server: str, pg_dump: str
) -> Site:
    """Each effect is performed twice, where the test does not say otherwise."""
    prepare(cloud)
    return Site(tmp_path, cloud, server, pg_dump, *getattr(request, "param", (2, False)))


in_every_way = pytest.mark.parametrize(
    "site", [(1, False), (2, False), (1, True)], ids=["once", "twice", "lost"], indirect=True
)


@pytest.mark.requirement(
    "deployer Q5", "deployer Q12", "deployer Q16", "deployer Q17", "deployer Q21"
)
@in_every_way
async def test_the_sequence_ends_done_on_a_real_database(site: Site) -> None:
    made = built(ENVIRONMENT, site.server)
    async with site.engine().running() as engine:
        await site.request(engine, "d1", made)

        found = await site.ended(engine, "d1")

        assert (found["status"], found["reason"]) == ("DONE", "")
        steps = [each["step"]["name"] for each in found["steps"]]
        assert steps == ["InfraMigrate", "PGMigrate", "ScaleUp"]
        assert (await state(engine, f"stack/{ENVIRONMENT}/shop"))["status"] == "AVAILABLE"
        assert "MigrationCompleted" in await events(engine, "postgres-migration/d1-PGMigrate-1")
    status, given = site.stack()
    assert status in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    assert (given["DesiredCountWeb"], given["ScaledFromWeb"]) == ("1", "")
    assert given["ImageWebApp"] == "registry.example/shop:v1"
    assert site.tables() == [("fairlead_migrations", NAME), ("orders", NAME)]
    stored = site.cloud.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    assert {each["Key"] for each in stored} == {made.spec.template.key, *made.beside}
    kept = SecretStore(Aws(site.cloud.url).client("secretsmanager", Account(REGION)))
    credentials = kept.get(f"{ENVIRONMENT}/shop/orders")
    assert credentials is not None
    psycopg.connect(credentials["dburl"]).close()


async def test_a_second_version_is_evaluated_and_walks_its_branch(site: Site) -> None:
    first = built(ENVIRONMENT, site.server)
    second = built(ENVIRONMENT, site.server, version="v2")
    async with site.engine().running() as engine:
        await site.request(engine, "d1", first)
        await site.ended(engine, "d1")
        await site.request(engine, "d2", second)

        found = await site.ended(engine, "d2")

        # Nothing is pending, and only images change.
        assert (found["status"], found["reason"]) == ("DONE", "")
        assert found["impact"] == "NOP"
        assert [each["step"]["name"] for each in found["steps"]][-1] == "VersionMigrate"
    _, given = site.stack()
    assert given["ImageWebApp"] == "registry.example/shop:v2"
    assert given["DesiredCountWeb"] == "1"


@in_every_way
async def test_downtime_scales_down_and_comes_back_with_as_many(site: Site) -> None:
    first = built(ENVIRONMENT, site.server)
    second = built(ENVIRONMENT, site.server, {**APP, "blobstores": []}, "v2")
    async with site.engine().running() as engine:
        await site.request(engine, "d1", first)
        await site.ended(engine, "d1")
        await site.request(engine, "d2", second)

        found = await site.ended(engine, "d2")

        assert (found["status"], found["impact"]) == ("DONE", "DOWNTIME")
        begun = [each["step"]["name"] for each in found["steps"]]
        assert begun[4:] == ["ScaleDown", "InfraMigrate", "PGMigrate", "PGCleanup", "ScaleUp"]
    _, given = site.stack()
    assert (given["DesiredCountWeb"], given["ScaledFromWeb"]) == ("1", "")
    assert given["ImageWebApp"] == "registry.example/shop:v2"


async def test_no_bucket_fails_the_deployment_and_leaves_the_stack_usable(site: Site) -> None:
    made = built(ENVIRONMENT, site.server)
    away = dataclasses.replace(made.spec.template, bucket="elsewhere")
    lost = dataclasses.replace(made, spec=dataclasses.replace(made.spec, template=away))
    async with site.engine().running() as engine:
        await site.request(engine, "d1", lost)
        failed = await site.ended(engine, "d1")
        await site.request(engine, "d2", made)
        done = await site.ended(engine, "d2")

    assert failed["status"] == "FAILED"
    assert "NoSuchBucket" in failed["reason"]
    assert done["status"] == "DONE"


async def test_quick_with_nothing_pending_updates_the_stack_alone(site: Site) -> None:
    async with site.engine().running() as engine:
        await site.request(engine, "d1", built(ENVIRONMENT, site.server))
        await site.ended(engine, "d1")
        second = built(ENVIRONMENT, site.server, version="v2")
        await site.request(engine, "d2", second, Flag.QUICK)

        found = await site.ended(engine, "d2")

    assert [each["step"]["name"] for each in found["steps"]] == ["CFUpsert"]
    assert site.stack()[1]["ImageWebApp"] == "registry.example/shop:v2"


async def test_a_migration_that_fails_breaks_the_stack_and_a_fix_mends_it(site: Site) -> None:
    sql = {"orders": {"0001_orders.sql": "SELECT no_such_function()"}}
    made = built(ENVIRONMENT, site.server, sql=sql)
    async with site.engine().running() as engine:
        await site.request(engine, "d1", made)
        failed = await site.ended(engine, "d1")
        broken = await state(engine, f"stack/{ENVIRONMENT}/shop")
        await tell(
            engine, f"stack/{ENVIRONMENT}/shop", messages.ForceAvailable("ann", "another SQL")
        )
        await site.request(engine, "d2", built(ENVIRONMENT, site.server))
        done = await site.ended(engine, "d2")

    assert "0001_orders.sql: function no_such_function() does not exist" in failed["reason"]
    assert broken["status"] == "BROKEN"
    # What the first one scaled down or never scaled up runs in the end.
    assert done["status"] == "DONE"
    assert site.stack()[1]["DesiredCountWeb"] == "1"


@pytest.mark.requirement("deployer Q23")
async def test_a_program_migrates_as_a_task_that_is_begun_once(site: Site) -> None:
    register_instance(site.cloud, "ecs")
    async with site.engine().running() as engine:
        await site.request(engine, "d1", built(ENVIRONMENT, site.server, BY_TASK))

        found = await site.ended(engine, "d1")

        assert (found["status"], found["reason"]) == ("DONE", "")
        told = await events(engine, "postgres-migration/d1-PGMigrate-1")
        assert "RunUnderway" in told
    assert len(site.tasks()) == 1


async def test_a_stack_that_somebody_else_made_becomes_ours(site: Site) -> None:
    body = json.dumps({"Resources": {"Theirs": {"Type": "AWS::SNS::Topic"}}})
    cloudformation = site.cloud.client("cloudformation")
    cloudformation.create_stack(StackName=f"{ENVIRONMENT}-shop", TemplateBody=body)
    async with site.engine().running() as engine:
        await site.request(engine, "d1", built(ENVIRONMENT, site.server))

        found = await site.ended(engine, "d1")

    # What they had goes, so it is taken for downtime; there was nothing of ours to scale.
    assert (found["status"], found["impact"], found["reason"]) == ("DONE", "DOWNTIME", "")
    assert "Theirs (AWS::SNS::Topic): Remove: DOWNTIME" in found["reasons"]
    assert site.stack()[1]["DesiredCountWeb"] == "1"


async def test_what_somebody_changed_in_the_console_is_kept_or_told(site: Site) -> None:
    async with site.engine().running() as engine:
        await site.request(engine, "d1", built(ENVIRONMENT, site.server))
        await site.ended(engine, "d1")
        scaled = site.edit(lambda _: None, DesiredCountWeb="4")
        await site.request(engine, "d2", built(ENVIRONMENT, site.server, version="v2"))
        kept = await site.ended(engine, "d2")
        after = site.stack()[1]
        topic = {"Type": "AWS::SNS::Topic"}
        site.edit(lambda template: template["Resources"].update(Theirs=topic))
        await site.request(engine, "d3", built(ENVIRONMENT, site.server, version="v3"))

        told = await site.ended(engine, "d3")

    assert (scaled, kept["status"], kept["impact"]) == ("4", "DONE", "NOP")
    # The count is theirs to choose; what no template of ours knows goes, with its reason.
    assert (after["DesiredCountWeb"], after["ImageWebApp"]) == ("4", "registry.example/shop:v2")
    assert (told["status"], told["impact"]) == ("DONE", "DOWNTIME")
    assert "Theirs (AWS::SNS::Topic): Remove: DOWNTIME" in told["reasons"]
    assert site.stack()[1]["DesiredCountWeb"] == "4"
