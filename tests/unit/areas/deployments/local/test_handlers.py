"""Deployments to this machine on the real engine, with a real PostgreSQL, cut at every commit."""

import dataclasses
import datetime as dt
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead.areas.deployments.domain import messages
from fairlead.areas.rollouts import workloads
from fairlead.clients.postgres import administration, connection
from fairlead.clients.postgres.server.running import Databases
from fairlead.engine import clock, service, visibility
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.engines import events, state
from tests.unit.areas.deployments.local.place import DATABASE, STACK, Machine, ended

pytestmark = pytest.mark.xdist_group("administration")
# Time is wound while a real database works, and a lease must outlive that.
LEASE = dt.timedelta(hours=1)


@pytest.fixture
def server(postgres_server: Databases) -> Iterator[str]:
    connect = administration.connector(postgres_server.admin_url)
    admin = administration.Administration(connect, STACK)
    admin.destroy(DATABASE, confirmed=DATABASE)
    yield postgres_server.admin_url
    admin.destroy(DATABASE, confirmed=DATABASE)


@pytest.fixture
def store(tmp_path: Path) -> protocol.Store:
    kept = sqlite.SqliteStore(tmp_path / "store.db")
    kept.migrate()
    return kept


def columns(server: str) -> list[str]:
    with psycopg.connect(connection.of_database(server, DATABASE)) as inside:
        rows = inside.execute(
            "SELECT column_name || ' ' || data_type FROM information_schema.columns"
            " WHERE table_name = 'goods' ORDER BY 1"
        ).fetchall()
    return [name for (name,) in rows]


def steps(found: dict[str, Any]) -> dict[str, str]:
    return {each["step"]["name"]: each["status"] for each in found["steps"]}


async def test_versions_are_migrated_by_what_the_evaluation_found(
    server: str, store: protocol.Store, tmp_path: Path
) -> None:
    here = Machine(tmp_path, server)
    async with here.engine(store, clock.SystemClock()).running() as engine:
        await here.request(engine, "v1", 1)
        first = await ended(engine, "v1", state)
        await here.request(engine, "v2", 2)
        second = await ended(engine, "v2", state)
        at_two = columns(server)
        plan = await events(engine, "deployment/v2")
        await here.request(engine, "v3", 3)
        third = await ended(engine, "v3", state)

    assert (first["status"], second["status"], third["status"]) == ("DONE",) * 3, (
        first["reason"],
        second["reason"],
        third["reason"],
    )
    assert list(steps(first)) == ["PGMigrate", "VersionMigrate"]
    assert second["impact"] == "BEFORE"
    assert any("adds column goods.stock" in reason for reason in second["reasons"])
    assert any("no infrastructure" in reason for reason in second["reasons"])
    assert list(steps(second))[4:] == ["PGMigrate", "PGCleanup", "VersionMigrate"]
    assert plan.index("EvalJoined") > plan.index("StepResult")
    assert at_two == ["id integer", "stock integer"]
    # A rewrite: the old version was stopped, and the new one began alone.
    assert third["impact"] == "DOWNTIME"
    assert list(steps(third))[4:] == ["ScaleDown", "PGMigrate", "PGCleanup", "ScaleUp"]
    assert columns(server) == ["id integer", "stock bigint"]
    assert list(here.kept.revisions.values()) == ["v1", "v2", "v3"]


async def test_credentials_are_in_a_file_for_the_owner_alone_and_nowhere_else(
    server: str, store: protocol.Store, tmp_path: Path
) -> None:
    here = Machine(tmp_path, server)
    async with here.engine(store, clock.SystemClock()).running() as engine:
        await here.request(engine, "v1", 1)
        found = await ended(engine, "v1", state)
        told = await engine.read(
            lambda s: visibility.events(s, stream_name("deployment", "v1"), 0, 500)
        )

    (file,) = (tmp_path / "credentials").rglob("*.json")
    kept = psycopg.conninfo.conninfo_to_dict(json.loads(file.read_text())["dburl"])
    assert file.stat().st_mode & 0o077 == 0
    assert str(kept["user"]).startswith(f"{DATABASE}_")
    assert str(kept["password"]) not in f"{found} {told}"


@pytest.mark.requirement("deployer S10")
async def test_a_version_that_is_rolled_back_fails_its_deployment_with_the_reason(
    server: str, store: protocol.Store, tmp_path: Path
) -> None:
    here = Machine(tmp_path, server)
    async with here.engine(store, clock.SystemClock()).running() as engine:
        await here.request(engine, "v1", 1)
        await ended(engine, "v1", state)
        asked = workloads.read(json.loads(here.spec("v2", 1).template))
        here.platform.errors[asked.revision] = 7000.0
        await here.request(engine, "v2", 1)
        found = await ended(engine, "v2", state)
        stack: dict[str, Any] = await state(engine, "stack/fairlead-test/shop")
        here.platform.errors.clear()
        await engine.submit(
            stream_name("stack", "fairlead-test/shop"), messages.Retry("ann"), command_id("again")
        )
        again = await ended(engine, "v2.r2", state)

    assert found["status"] == "FAILED"
    assert found["reason"].startswith("Step VersionMigrate: rolled back: ")
    assert "latency: " in found["reason"]
    assert stack["status"] == "BROKEN"
    assert again["status"] == "DONE", "what was rolled back is tried again"


@dataclasses.dataclass
class Story:
    """The first version with its database; each cut has a store, a machine and no database."""

    folder: Path
    server: str
    here: Machine = dataclasses.field(init=False)
    count: Any = dataclasses.field(default_factory=itertools.count)

    def fresh_store(self) -> protocol.Store:
        admin = administration.Administration(administration.connector(self.server), STACK)
        admin.destroy(DATABASE, confirmed=DATABASE)
        number = next(self.count)
        self.here = Machine(self.folder / str(number), self.server)
        return sqlite.SqliteStore(self.folder / f"{number}.db")

    def build(self, store: protocol.Store, wall: clock.Clock) -> service.Engine:
        return self.here.engine(store, wall, LEASE)

    async def act(self, engine: service.Engine) -> None:
        await self.here.request(engine, "v1", 2)

    async def settled(self, engine: service.Engine) -> bool:
        found: dict[str, Any] = await state(engine, "stack/fairlead-test/shop")
        assert found["status"] != "BROKEN", found["reason"]
        return bool(found["status"] == "AVAILABLE") and not await engine.read(visibility.effects)


@pytest.mark.slow
@pytest.mark.deadline(1500)
async def test_a_plan_cut_at_any_commit_ends_the_same(server: str, tmp_path: Path) -> None:
    story = Story(tmp_path, server)

    async def check(engine: service.Engine) -> None:
        found: dict[str, Any] = await state(engine, "deployment/v1")
        assert (found["status"], steps(found)) == (
            "DONE",
            {"PGMigrate": "DONE", "VersionMigrate": "DONE"},
        )
        assert columns(server) == ["id integer", "stock integer"]
        with psycopg.connect(connection.of_database(server, DATABASE)) as inside:
            assert inside.execute("SELECT count(*) FROM goods").fetchone() == (1,)
        told = await events(engine, "rollout-step/v1-VersionMigrate-1")
        assert told == ["StepStarted", "VersionApplied", "StepEnded"]

    play = Play(story.fresh_store, story.build, story.act, story.settled, LEASE, 300)
    cuts = await crash_at_every_commit(play, check)

    assert cuts > 10
