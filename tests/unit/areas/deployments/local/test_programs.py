"""A program that migrates by itself: what it plans is evaluated, then it is run by the owner."""

import asyncio
import datetime as dt
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.areas.deployments import migration_handlers
from fairlead.areas.deployments.domain import migration
from fairlead.areas.deployments.domain.spec import Server, Work
from fairlead.areas.deployments.local import programs
from fairlead.areas.deployments.local.databases import Databases as Places
from fairlead.areas.rollouts.local.plan_steps import PlanFiles
from fairlead.clients.postgres import administration, connection
from fairlead.clients.postgres.server.running import Databases
from fairlead.engine import service
from fairlead.engine.outbox import EffectContext
from fairlead.engine.store import sqlite
from fairlead.engine.testing import HandWoundClock
from tests.engines import state, until
from tests.unit.areas.deployments.local.place import DATABASE, STACK, Machine, ended

# Such as Alembic: it knows by a table of its own which version a database has.
TOOL = """
import os, sys
import psycopg

with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as it:
    known = it.execute("SELECT to_regclass('tool_version') IS NOT NULL").fetchone()[0]
    at = it.execute("SELECT version FROM tool_version").fetchone()[0] if known else 0
    if sys.argv[1] == "run" and not known:
        it.execute("CREATE TABLE tool_version AS SELECT 0 AS version")
    for number, sql in enumerate(WANTED[at:], at + 1):
        print(sql + ";")
        if sys.argv[1] == "run" or os.environ.get("CARELESS"):
            it.execute(sql)
            it.execute("UPDATE tool_version SET version = %s", (number,))
"""
MADE = "CREATE TABLE goods (id int PRIMARY KEY)"
NOTED = "ALTER TABLE goods ADD COLUMN note text"
WIDER = "ALTER TABLE goods ALTER COLUMN id TYPE bigint"
ASLEEP = """
SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND starts_with(usename, %s)
"""
SIGNED_IN = {
    "dburl": "postgresql://u:hidden@h/d", "host": "h", "port": "1", "dbname": "d",
    "username": "u", "password": "hidden",
}  # fmt: skip


@pytest.fixture
def server(postgres_server: Databases) -> Iterator[str]:
    connect = administration.connector(postgres_server.admin_url)
    admin = administration.Administration(connect, STACK)
    admin.destroy(DATABASE, confirmed=DATABASE)
    yield postgres_server.admin_url
    admin.destroy(DATABASE, confirmed=DATABASE)


class Shop:
    """A machine whose shop brings its own tool."""

    def __init__(self, folder: Path, server: str) -> None:
        self.tool, self.server = folder / "tool.py", server
        ours = [sys.executable, str(self.tool)]
        command: dict[str, Any] = {"run": [*ours, "run"], "plan": [*ours, "plan"]}
        self.here = Machine(folder, server, postgres={"migrate_command": command})
        kept = sqlite.SqliteStore(folder / "store.db")
        kept.migrate()
        self.wall = HandWoundClock()
        # Time is wound while a real database works, and a lease must outlive that.
        self.engine = self.here.engine(kept, self.wall, dt.timedelta(hours=1))

    async def deployed(
        self, engine: service.Engine, version: str, *sql: str, tool: str = TOOL
    ) -> dict[str, Any]:
        self.tool.write_text(f"WANTED = {sql!r}\n{tool}")
        await self.here.request(engine, version, 0)
        return await ended(engine, version, state, self.wall)

    def asked(self, question: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(connection.of_database(self.server, DATABASE)) as inside:
            return inside.execute(question.encode(), values or None).fetchall()


@pytest.fixture
def shop(tmp_path: Path, server: str) -> Shop:
    return Shop(tmp_path, server)


def steps(found: dict[str, Any]) -> list[str]:
    return [each["step"]["name"] for each in found["steps"]]


@pytest.mark.xdist_group("administration")
async def test_what_the_program_plans_is_evaluated_and_then_run_by_it(shop: Shop) -> None:
    async with shop.engine.running() as engine:
        first = await shop.deployed(engine, "v1", MADE)
        second = await shop.deployed(engine, "v2", MADE, NOTED)
        third = await shop.deployed(engine, "v3", MADE, NOTED)
        fourth = await shop.deployed(engine, "v4", MADE, NOTED, WIDER)

    assert [each["status"] for each in (first, second, third, fourth)] == ["DONE"] * 4, fourth
    assert steps(first) == ["PGMigrate", "VersionMigrate"]
    assert [each["impact"] for each in (second, third, fourth)] == ["BEFORE", "NOP", "DOWNTIME"]
    assert any("adds column goods.note" in reason for reason in second["reasons"])
    assert steps(third)[-1] == "VersionMigrate"
    assert shop.asked("SELECT version FROM tool_version") == [(3,)]
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    assert shop.asked(owners) == [(DATABASE,)]
    users = "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)"
    assert shop.asked(users, f"{DATABASE}_m") == [], "who signed in for a run is gone with it"


@pytest.mark.xdist_group("administration")
async def test_a_plan_that_would_write_changes_nothing_and_is_downtime(shop: Shop) -> None:
    careless = f"import os; os.environ['CARELESS'] = 'yes'\n{TOOL}"
    async with shop.engine.running() as engine:
        await shop.deployed(engine, "v1", MADE)
        found = await shop.deployed(engine, "v2", MADE, NOTED, tool=careless)

    assert found["impact"] == "DOWNTIME"
    (reason,) = [each for each in found["reasons"] if "could not be evaluated" in each]
    assert "cannot execute ALTER TABLE in a read-only transaction" in reason


@pytest.mark.xdist_group("administration")
async def test_a_program_that_fails_breaks_the_stack_with_its_last_words(shop: Shop) -> None:
    tool = "import os, sys; sys.exit('cannot migrate ' + os.environ['DATABASE_URL'])"
    async with shop.engine.running() as engine:
        found = await shop.deployed(engine, "v1", tool=tool)
        stack: dict[str, Any] = await state(engine, f"stack/{STACK}")

    assert (found["status"], stack["status"]) == ("FAILED", "BROKEN")
    assert "ended with code 1: cannot migrate postgresql://" in found["reason"]
    assert "…@" in found["reason"], "without the password"


@pytest.mark.xdist_group("administration")
async def test_the_next_run_ends_what_a_dead_worker_left_running(
    server: str, tmp_path: Path
) -> None:
    """A program outlives its worker, and two of them must not migrate at once."""
    admin = administration.Administration(administration.connector(server), STACK)
    admin.upsert(administration.Database(DATABASE))
    sleeps = "import os, psycopg; psycopg.connect(os.environ['DATABASE_URL']).execute"
    for name, body in (("first", f"{sleeps}('SELECT pg_sleep(3600)')"), ("second", "")):
        text = json.dumps({"run": [sys.executable, "-c", body]})
        PlanFiles(tmp_path).put(f"test/{name}.json", text)
    performed = migration_handlers.handlers(Places(server, tmp_path))[migration.RunMigrations]

    async def run(name: str) -> object:
        work = Work(Server("local"), DATABASE, STACK, command=f"test/{name}.json")
        context = EffectContext(migration.stream(name), name, 1)
        return await performed.perform(migration.RunMigrations(work), context)

    async def asleep() -> bool:
        with psycopg.connect(server) as watching:
            return bool(watching.execute(ASLEEP, (f"{DATABASE}_m",)).fetchone())

    first = asyncio.create_task(run("first"))
    await until(asleep)
    second = await run("second")

    assert second == migration.StepDone(migration.RUN)
    ended = await asyncio.wait_for(first, 60)
    assert isinstance(ended, migration.StepFailed)
    assert "terminating connection due to administrator command" in ended.reason


def test_a_program_that_does_not_end_is_ended() -> None:
    program = programs.Program(["sleep", "3600"])

    with pytest.raises(errors.Rejected, match="sleep did not end in time"):
        programs.output(program, program.run, SIGNED_IN, 0.2)


def test_a_program_knows_nothing_of_the_control_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_DEPLOYMENTS_POSTGRES_URL", "postgresql://admin:secret@h/")
    program = programs.Program(["env"], cwd="/", env={"COLOUR": "blue", "PGUSER": "other"})

    told = programs.output(program, program.run, SIGNED_IN, 60)

    assert {"COLOUR=blue", "PGUSER=u", "PGPASSWORD=hidden", "PGDATABASE=d"} <= {*told.split("\n")}
    assert "FAIRLEAD" not in told


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "cannot start no-such-program: No such file or directory"),
        (["sh", "-c", "echo of hidden >&2; exit 3"], "sh ended with code 3: of …"),
        (["sh", "-c", "yes | head -c 9000000"], "printed more than 8 MiB"),
    ],
)
def test_what_goes_wrong_is_told_without_the_password(command: list[str], said: str) -> None:
    with pytest.raises(errors.Rejected) as refused:
        programs.output(programs.Program(command), command, SIGNED_IN, 60)

    assert said in refused.value.message
