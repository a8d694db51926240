"""The whole sequence from a push: a real git server, moto's AWS and a real PostgreSQL."""

from pathlib import Path

import psycopg
import pytest
import yaml

from fairlead.areas.deployments.aws import wiring
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.clients.postgres import connection
from tests import contents
from tests.aws import Cloud
from tests.unit.areas.deployments.aws.conftest import ENVIRONMENT, NAME
from tests.unit.areas.deployments.aws.steps import APP, BUCKET, SQL, cluster, prepare
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.world import TARGET, world

pytestmark = [pytest.mark.xdist_group("moto"), pytest.mark.slow]


@pytest.mark.requirement("deployer G6", "deployer Q1", "deployer Q32")
async def test_a_push_of_files_and_sql_goes_all_the_way(
    tmp_path: Path, cloud: Cloud, server: str, pg_dump: str
) -> None:
    prepare(cloud)
    (tmp_path / "git" / "acme").mkdir(parents=True)
    work = contents.repository(tmp_path / "git" / "acme" / "work")
    sql = {f"deploy/sql/{name}": text.encode() for name, text in SQL["orders"].items()}
    down = {"deploy/sql/0001_orders.down.sql": b"DROP TABLE orders", "deploy/sql/notes.md": b"-"}
    app = yaml.safe_dump(APP).encode()
    commit = contents.tag(work, "v1", {"deploy/shop.yaml": app, **sql, **down})
    contents.git(tmp_path / "git", "clone", "-q", "--bare", str(work), "acme/shop.git")
    settings = DeploymentSettings(BUCKET, aws_endpoint=cloud.url, aws_pg_dump=pg_dump)
    performed = wiring.performed(settings)
    with contents.serving_git(tmp_path / "git") as address:
        there = address.removesuffix("/.git")
        async with world(tmp_path, there, performed, cluster(server)) as made:
            await made.store("environments", full_name=ENVIRONMENT, cluster_name="east")
            target = {**TARGET, "environment": ENVIRONMENT, "provider": "gitlab"}
            await made.store("push-targets", **target)

            sent = await made.send("gitlab", payloads.gitlab(payloads.gitlab_push(commit)))
            found = await made.trigger(sent.json()["trigger"])
            (run,) = found["runs"]
            events = await made.events(f"deployment/{run['deployment']}")
            stack = await made.events(f"stack/{ENVIRONMENT}/shop")

    assert (run["progress"], run["reason"]) == ("DONE", "")
    assert events[0] == "Requested"
    assert {"Triggered", "StackWait", "StackAvailable", "Running", "Done"} <= {*events}
    assert stack == ["Triggered", "DeploymentCompleted", "BecameAvailable"]
    described = cloud.client("cloudformation").describe_stacks(StackName=f"{ENVIRONMENT}-shop")
    (stacked,) = described["Stacks"]
    given = {each["ParameterKey"]: each["ParameterValue"] for each in stacked["Parameters"]}
    assert given["ImageWebApp"] == f"registry.example/shop:{commit}"
    assert given["DesiredCountWeb"] == "1"
    with psycopg.connect(connection.of_database(server, NAME)) as inside:
        tables = inside.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert sorted(name for (name,) in tables) == ["fairlead_migrations", "orders"]
