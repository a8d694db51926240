"""The document's sequence on a real git server, moto's AWS and a real PostgreSQL, killed often.

`test_core` cuts it at every commit, on a recorded cloud. Here one and the same story is cut again
and again, before and after commits, until it has come to its end in spite of that.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from fairlead import errors
from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.deployments.aws import wiring
from fairlead.areas.deployments.domain.definition import Store
from fairlead.areas.deployments.domain.ref import TakePush
from fairlead.areas.deployments.domain.trigger.messages import Source, Target
from fairlead.areas.deployments.requests import AwsTarget
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.areas.deployments.triggers import handlers
from fairlead.areas.deployments.triggers.repositories import GitHost, Repositories
from fairlead.clients.github import Account, GitHub
from fairlead.clients.postgres import connection
from fairlead.engine import clock, service, visibility
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Fuse, FusedStore, HandWoundClock
from tests import contents
from tests.aws import Cloud
from tests.engines import events, state
from tests.unit.areas.deployments.aws.conftest import ENVIRONMENT, NAME, STACK
from tests.unit.areas.deployments.aws.steps import APP, BUCKET, SQL, cluster, prepare
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.world import TARGET

pytestmark = [pytest.mark.xdist_group("moto"), pytest.mark.slow, pytest.mark.deadline(600)]
MACHINES = parts.machines([parts.core(DEPLOYMENTS)])
# Longer than a real database needs, shorter than the hour of a step.
LEASE = dt.timedelta(minutes=1)
PATH = "deploy/shop.yaml"


@dataclasses.dataclass
class Story:
    """A push to a new stack."""

    cloud: Cloud
    server: str
    settings: DeploymentSettings
    git: str
    commit: str

    def build(self, store: protocol.Store, wall: clock.Clock) -> service.Engine:
        made: list[service.Engine] = []
        # Anew for each life, so that each asks the git server.
        hosts = {"gitlab": GitHost(self.git)}
        repositories = Repositories(GitHub(Account("")), hosts)
        ports = handlers.TriggerPorts(repositories, lambda: made[0], AwsTarget("", BUCKET))
        performed = {**wiring.performed(self.settings), **handlers.handlers(ports)}
        tuning = service.Tuning(lease=LEASE)
        given = service.Parts(store, MACHINES, performed, wall=wall, tuning=tuning)
        made.append(service.Engine(given))
        return made[0]

    async def act(self, engine: service.Engine) -> None:
        target = {**TARGET, "environment": ENVIRONMENT, "provider": "gitlab"}
        stored = (
            ("cluster/east", cluster(self.server)),
            (f"environment/{ENVIRONMENT}", {"full_name": ENVIRONMENT, "cluster_name": "east"}),
            (f"push-target/{ENVIRONMENT}/shop", target),
        )
        for name, content in stored:
            stream = stream_name(*name.split("/", 1))
            await engine.submit(stream, Store(content, "ann"), command_id(f"store {name}"))
        source = Source("gitlab", "acme/shop", "refs/heads/main", self.commit)
        shop = (Target(ENVIRONMENT, "shop", PATH),)
        push = TakePush("main", payloads.NONE, source, shop, "push", "gitlab:ann")
        await engine.submit(stream_name("ref", "main"), push, command_id("hook 1"))

    async def lived(self, engine: service.Engine, wall: HandWoundClock, fuse: Fuse) -> None:
        """Until it is settled or dead; time moves fast only while nothing is under way."""
        while not fuse.blown and not await self.settled(engine):
            found = await engine.read(visibility.effects)
            working = any(each.held for each in found)
            wall.advance(dt.timedelta(milliseconds=50 if working else 2000))
            await asyncio.sleep(0.02)

    async def settled(self, engine: service.Engine) -> bool:
        if await engine.read(visibility.effects):
            return False
        (run,) = (await state(engine, "trigger/main:1"))["runs"]
        assert run["progress"] not in ("FAILED", "REFUSED"), run
        return bool(run["progress"] == "DONE")


@pytest.fixture
def story(tmp_path: Path, cloud: Cloud, server: str, pg_dump: str) -> Iterator[Story]:
    (tmp_path / "git" / "acme").mkdir(parents=True)
    prepare(cloud)
    work = contents.repository(tmp_path / "git" / "acme" / "work")
    sql = {f"deploy/sql/{name}": text.encode() for name, text in SQL["orders"].items()}
    commit = contents.tag(work, "v1", {PATH: yaml.safe_dump(APP).encode(), **sql})
    contents.git(tmp_path / "git", "clone", "-q", "--bare", str(work), "acme/shop.git")
    settings = DeploymentSettings(BUCKET, aws_endpoint=cloud.url, aws_pg_dump=pg_dump)
    with contents.serving_git(tmp_path / "git") as address:
        there = address.removesuffix("/.git")
        yield Story(cloud, server, settings, there, commit)


def outside(story: Story) -> dict[str, Any]:
    """What AWS and the database were brought to, and how often each was asked for."""
    cloudformation = story.cloud.client("cloudformation")
    name = f"{ENVIRONMENT}-shop"
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    given = {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}
    told = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    began = [
        each["ResourceStatus"]
        for each in told
        if each["ResourceType"] == "AWS::CloudFormation::Stack"
        and each["ResourceStatus"].endswith("_IN_PROGRESS")
    ]
    with psycopg.connect(connection.of_database(story.server, NAME)) as inside:
        tables = inside.execute(
            "SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        applied = inside.execute("SELECT name FROM fairlead_migrations").fetchall()
        users = inside.execute(
            "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND starts_with(rolname, %s)", (NAME,)
        ).fetchone()
    return {
        "begun": sorted(began),
        "image": given["ImageWebApp"],
        "count": given["DesiredCountWeb"],
        "tables": tables,
        "applied": applied,
        "users": users,
        "stored": len(story.cloud.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]),
        "secrets": len(story.cloud.client("secretsmanager").list_secrets()["SecretList"]),
    }


@pytest.mark.parametrize("lengths", [range(4, 9), range(3, 11), (6,)], ids=str)
@pytest.mark.requirement(
    "deployer G6", "deployer Q1", "deployer Q16", "deployer Q21", "deployer Q29", "deployer Q32"
)
async def test_a_push_that_is_killed_again_and_again_ends_the_same_outside(
    story: Story, tmp_path: Path, lengths: Sequence[int]
) -> None:
    """Each life ends at its n-th commit, the lease's among them: before it, the next one after."""
    store = sqlite.SqliteStore(tmp_path / "store.db")
    store.migrate()
    wall, lives = HandWoundClock(), 0
    for commits, after in itertools.cycle(itertools.product(lengths, (False, True))):
        fuse = Fuse(commits, after=after)
        with contextlib.suppress(errors.Unavailable):
            async with story.build(FusedStore(store, fuse), wall).running() as engine:
                await story.act(engine)
                await story.lived(engine, wall, fuse)
        if not fuse.blown:
            break
        lives += 1
        # The dead worker's lease must run out before anybody may touch what it held.
        wall.advance(LEASE * 2)
    async with story.build(store, wall).running() as engine:
        await ended_well(story, engine)

    assert lives > 5


async def ended_well(story: Story, engine: service.Engine) -> None:
    (run,) = (await state(engine, "trigger/main:1"))["runs"]
    found: dict[str, Any] = await state(engine, f"deployment/{run['deployment']}")
    ended = [(each["step"]["name"], each["status"]) for each in found["steps"]]
    assert ended == [(name, "DONE") for name in ("InfraMigrate", "PGMigrate", "ScaleUp")]
    assert (found["status"], found["by"]) == ("DONE", "gitlab:ann")
    assert await events(engine, f"stack/{STACK}") == [
        *("Triggered", "DeploymentCompleted", "BecameAvailable")
    ]
    told = await events(engine, f"postgres-migration/{run['deployment']}-PGMigrate-1")
    assert told == [
        *("MigrationRequested", "DatabaseUpserted", "PermissionsCleaned", "MigrationsRun"),
        *("PermissionsCleaned", "MigrationCompleted"),
    ]
    assert outside(story) == {
        # Made once and scaled once, however often each was asked for.
        "begun": ["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"],
        "image": f"registry.example/shop:{story.commit}",
        "count": "1",
        "tables": [("fairlead_migrations", NAME), ("orders", NAME)],
        "applied": [("0001_orders.sql",)],
        "users": (1,),
        "stored": 2,
        "secrets": 2,
    }
