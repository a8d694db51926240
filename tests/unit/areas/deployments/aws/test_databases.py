"""Steps on databases: a real PostgreSQL, and credentials in moto's Secrets Manager."""

import dataclasses
import json
from typing import Any

import msgspec
import psycopg
import pytest

from fairlead import errors
from fairlead.areas.deployments.aws.databases import Databases
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.messages import PerformStep, StepStatus
from fairlead.areas.deployments.domain.plan.steps import works
from fairlead.areas.deployments.domain.spec import Server, Task, Work
from fairlead.clients.aws.session import Aws
from fairlead.clients.postgres import connection
from tests.aws import Cloud
from tests.unit.areas.deployments.aws.conftest import ENVIRONMENT, NAME
from tests.unit.areas.deployments.aws.steps import built, prepare, step, store
from tests.unit.clients.aws.test_tasks import register_instance

pytestmark = pytest.mark.xdist_group("moto")


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """Who performs, and what about."""

    databases: Databases
    work: Work
    cloud: Cloud
    made: Any

    def step(self, kind: str, deployment: str = "d1", **changes: Any) -> PerformStep:
        words = msgspec.to_builtins(dataclasses.replace(self.work, **changes))
        return dataclasses.replace(step(self.made, kind, kind, work=words), token=deployment)

    def secret(self) -> dict[str, str]:
        found = self.cloud.client("secretsmanager").get_secret_value(SecretId=self.work.secret)
        values: dict[str, str] = json.loads(found["SecretString"])
        return values


@pytest.fixture
def site(cloud: Cloud, server: str, pg_dump: str) -> Site:
    prepare(cloud)
    made = built(ENVIRONMENT, server)
    store(cloud, made)
    (work,) = works(made.spec).values()
    return Site(Databases(Aws(cloud.url), pg_dump=pg_dump), work, cloud, made)


def users(server: str) -> list[str]:
    with psycopg.connect(server) as admin:
        found = admin.execute(
            "SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname LIKE %s ORDER BY 1",
            (f"{NAME}%",),
        ).fetchall()
    return [name for (name,) in found]


def test_a_database_is_made_once_with_credentials_that_work(site: Site, server: str) -> None:
    told = [site.databases.upsert(site.step("PGUpsert")).status for _ in range(2)]

    assert told == [StepStatus.DONE, StepStatus.DONE]
    found = site.secret()
    assert users(server) == [found["username"]]
    with psycopg.connect(found["dburl"]) as inside:
        assert inside.execute("SELECT current_user, session_user").fetchone() == (
            *(NAME, found["username"]),
        )


def test_rotating_retires_the_user_of_before_and_a_second_delivery_changes_nothing(
    site: Site, server: str
) -> None:
    site.databases.upsert(site.step("PGUpsert"))
    before = site.secret()

    rotate = site.step("PGUpsert", "d2", rotate=True)
    site.databases.upsert(rotate)
    after = site.secret()
    site.databases.upsert(rotate)

    assert before["username"] != after["username"]
    assert site.secret() == after
    assert users(server) == [after["username"]]


def test_a_crash_after_the_user_and_before_the_secret_ends_with_one_that_works(
    site: Site, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise errors.Unavailable("killed", hint="this is a test")

    with monkeypatch.context() as cut:
        cut.setattr("fairlead.clients.aws.stores.SecretStore.put", crash)
        with pytest.raises(errors.Unavailable, match="killed"):
            site.databases.upsert(site.step("PGUpsert"))
    site.databases.upsert(site.step("PGUpsert"))

    found = site.secret()
    assert users(server) == [found["username"]]
    psycopg.connect(found["dburl"]).close()


def test_a_destroyed_database_comes_back_with_new_credentials(site: Site, server: str) -> None:
    site.databases.upsert(site.step("PGUpsert"))

    told = [site.databases.destroy(site.step("PGDestroy")).status for _ in range(2)]
    left = users(server)
    site.databases.upsert(site.step("PGUpsert", "d2"))

    assert told == [StepStatus.DONE, StepStatus.DONE]
    assert left == []
    psycopg.connect(site.secret()["dburl"]).close()


def test_migrations_are_evaluated_and_counted(site: Site, server: str) -> None:
    missing = site.databases.pending(site.work)
    site.databases.upsert(site.step("PGUpsert"))

    told = site.databases.evaluate(site.step("PGEvaluate"))

    assert missing is None
    assert site.databases.pending(site.work) == 1
    assert (told.status, told.impact) == (StepStatus.DONE, Impact.BEFORE)
    assert told.reasons[0].startswith("CREATE TABLE orders")
    with psycopg.connect(connection.of_database(server, NAME)) as inside:
        assert inside.execute("SELECT to_regclass('orders')").fetchone() == (None,)


def test_a_program_that_migrates_cannot_be_evaluated(site: Site) -> None:
    task = Task("ecs", "shop-migrate", "tasks/m.json")

    opaque = site.databases.evaluate(site.step("PGEvaluate", task=task))
    nothing = site.databases.evaluate(site.step("PGEvaluate", migrations=""))

    assert opaque.impact is Impact.DOWNTIME
    assert "does not say its SQL" in opaque.reasons[0]
    assert nothing.impact is Impact.NOP


def test_sql_that_cannot_be_evaluated_needs_downtime_with_the_reason(site: Site) -> None:
    told = site.databases.evaluate(site.step("PGEvaluate", migrations="not/there.json"))

    assert told.impact is Impact.DOWNTIME
    assert "not stored: not/there.json" in told.reasons[0]


def test_a_server_without_address_or_credentials_is_told(site: Site) -> None:
    nowhere = dataclasses.replace(site.work, server=Server("main"))
    closed = dataclasses.replace(site.work, server=Server("main", "h", 1, "rds/none"))

    with pytest.raises(errors.Rejected, match="no address of the database server: main"):
        site.databases.url(nowhere)
    with pytest.raises(errors.Rejected, match="no credentials of the database server: rds/none"):
        site.databases.url(closed)


def test_a_task_that_migrates_is_begun_once(site: Site) -> None:
    register_instance(site.cloud)
    container = {"Name": "m", "Image": "m", "Memory": 64}
    site.cloud.client("s3").put_object(
        Bucket=site.work.bucket, Key="m.json", Body=json.dumps(container)
    )
    task = Task("main", "shop-migrate", "m.json")
    work = dataclasses.replace(site.work, task=task)

    first, again = site.databases.run_task(work, "d1"), site.databases.run_task(work, "d1")

    assert first == again
    assert site.databases.task_ended(work, first) is None
