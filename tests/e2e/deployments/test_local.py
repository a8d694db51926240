"""Deployments to this machine as users type them: a real PostgreSQL, a real Envoy, a real kill."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml

from fairlead.cli.demo import shop
from fairlead.cli.demo.load import Load
from fairlead.clients.postgres import administration, connection
from fairlead.clients.postgres.server.running import Databases
from fairlead.clients.postgres.server.wheel import installed_wheel
from fairlead.clients.processes import clean_up
from tests.contract.local.shop_versions import free_port
from tests.e2e import local

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
NAME = "fl_here_shop_goods"
DEPLOYMENT = "fl-here/shop"
OK = {"name": "ok", "metric": "request-success-rate", "low": 99, "interval": "1s"}
SQL = {
    "0001_goods.sql": "CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (1);",
    "0002_stock.sql": "ALTER TABLE goods ADD COLUMN stock int NOT NULL DEFAULT 0;"
    " INSERT INTO goods VALUES (2, 5);",
    "0003_wider.sql": "ALTER TABLE goods ALTER COLUMN stock TYPE bigint;",
}


@pytest.fixture
def server(postgres_server: Databases) -> Iterator[str]:
    connect = administration.connector(postgres_server.admin_url)
    admin = administration.Administration(connect, "fl-here/shop")
    admin.destroy(NAME, confirmed=NAME)
    yield postgres_server.admin_url
    admin.destroy(NAME, confirmed=NAME)


class Here:
    """A folder with the files of a shop, and a control plane that knows a database server."""

    def __init__(self, folder: Path, server: str) -> None:
        self.site = local.Site(folder / "state", free_port(), free_port())
        self.folder = folder
        self.server = server
        self.watched = True
        (folder / "sql").mkdir()
        self.more = {
            "FAIRLEAD_DEPLOYMENTS_POSTGRES_URL": server,
            "FAIRLEAD_AWS_PG_DUMP": str(installed_wheel().programs / "pg_dump"),
        }

    def write(self, version: str, migrations: int, *arguments: str) -> None:
        for name, text in list(SQL.items())[:migrations]:
            (self.folder / "sql" / name).write_text(text)
        program = [sys.executable, shop.__file__, "--version", version, *arguments]
        workload = {
            "listen": self.site.shop,
            "program": {"command": program, "health": "/healthz"},
            "strategy": {"steps": [50], "pause": "2s", "bake": "1s"},
            "checks": [OK] if self.watched else [],
        }
        files = {
            "app.yaml": {
                "name": "shop",
                "workload": workload,
                "databases": [{"name": "goods", "postgres": {"migrations": "sql"}}],
            },
            "env.yaml": {"full_name": "fl-here"},
            "release.yaml": {
                "kind": "deployment",
                "version": version,
                "fixes": version == "v4",
                "application": "app.yaml",
                "environment": "env.yaml",
            },
        }
        for name, content in files.items():
            (self.folder / name).write_text(yaml.safe_dump(content, sort_keys=False))

    async def deploy(self, *more: str) -> Any:
        release = str(self.folder / "release.yaml")
        return await self.site.type("deploy", release, *more, remote=True)

    async def state(self, version: str) -> dict[str, Any]:
        name = f"{DEPLOYMENT}/{version}"
        shown = await self.site.type("get", "deployment", name, "-o", "json", remote=True)
        assert shown.returncode == 0, shown.stderr
        found: dict[str, Any] = json.loads(shown.stdout)["data"]
        return found

    async def ended(self, version: str) -> dict[str, Any]:
        async with asyncio.timeout(200):
            while True:
                found = await self.state(version)
                if found["status"] in {"DONE", "FAILED"}:
                    return found
                await asyncio.sleep(0.3)

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(connection.of_database(self.server, NAME)) as inside:
            return inside.execute(query.encode(), values or None).fetchall()

    async def waiting_for_a_lock(self) -> None:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND starts_with(usename, %s)"
        )
        async with asyncio.timeout(120):
            while True:
                if self.rows(query, NAME) != [(0,)]:
                    return
                await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def placed(folder: Path, server: str) -> AsyncIterator[Here]:
    here = Here(folder, server)
    try:
        yield here
    finally:
        await clean_up(folder / "state" / "local" / "processes", drain_seconds=2.0)


def steps(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["step"]["name"], each["status"]) for each in found["steps"]]


@pytest.mark.deadline(900)
async def test_a_shop_with_its_database_goes_through_its_versions(
    tmp_path: Path, server: str
) -> None:
    async with placed(tmp_path, server) as here:
        with here.site.up(here.more):
            here.write("v1", 1)
            first = await here.deploy("--wait", "-o", "json")
            async with Load(here.site.url, per_second=30).running() as load:
                here.write("v2", 2)
                plan = await planned(here, "BEFORE")
                second = await here.deploy("--wait", "-o", "json")
                told = await here.state("v2")
                shown = await here.site.type("get", "deployment", f"{DEPLOYMENT}/v2", remote=True)
                bad = await rolled_back(here)
                lost = load.tally.lost
            here.write("v4", 3)
            stopped = await here.deploy("--wait", "-o", "json")
            last = await here.state("v4")
            async with httpx.AsyncClient() as client:
                answer = await client.get(here.site.url, timeout=60)

    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["outcome"] == "v1 is deployed"
    assert second.returncode == 0, second.stderr
    assert [name for name, _ in steps(told)] == plan, "what was shown is what ran"
    assert (told["impact"], {status for _, status in steps(told)}) == ("BEFORE", {"DONE"})
    assert "adds column goods.stock" in shown.stdout
    assert lost == 0
    assert bad["reason"].startswith("Step VersionMigrate: rolled back: failed at 50 %: ok: ")
    assert stopped.returncode == 0, stopped.stderr
    # Nothing ran while the table was rewritten; the stack was broken by v3, and v4 mends it.
    assert [name for name, _ in steps(last)][-4:] == [
        *("ScaleDown", "PGMigrate", "PGCleanup", "ScaleUp")
    ]
    assert answer.headers["X-Version"] == "v4"


async def planned(here: Here, impact: str) -> list[str]:
    """The steps that `fairlead plan` shows for a database that was found to be so."""
    observed = {
        "stack": "UPDATE_COMPLETE",
        "databases": {"goods": {"pending": 1, "class": impact}},
        "changes": [],
    }
    (here.folder / "observed.yaml").write_text(yaml.safe_dump(observed))
    files = [str(here.folder / f"{name}.yaml") for name in ("app", "env", "observed")]
    options = ("--app", files[0], "--env", files[1], "--observed", files[2])
    shown = await here.site.type("plan", *options, "-o", "json")
    assert shown.returncode == 0, shown.stderr
    return [each["name"] for each in json.loads(shown.stdout)["steps"]]


async def rolled_back(here: Here) -> dict[str, Any]:
    here.write("v3", 2, "--errors", "0.5")
    done = await here.deploy("--wait")
    assert done.returncode != 0
    return await here.state("v3")


@pytest.mark.deadline(900)
async def test_killed_in_the_middle_of_a_migration_it_ends_the_same(
    tmp_path: Path, server: str
) -> None:
    async with placed(tmp_path, server) as here:
        # No customers: a check would wait for requests.
        here.watched = False
        with here.site.up(here.more):
            here.write("v1", 1)
            first = await here.deploy("--wait")
        here.write("v2", 2)
        with psycopg.connect(connection.of_database(server, NAME)) as other:
            other.execute("LOCK TABLE goods IN ACCESS SHARE MODE")
            with here.site.up(here.more) as up:
                second = await here.deploy()
                # The migration waits for somebody who reads, and its runner is killed there.
                await here.waiting_for_a_lock()
                up.process.send_signal(signal.SIGKILL)
                up.process.wait(60)
        with here.site.up(here.more):
            told = await here.ended("v2")
        rows = here.rows("SELECT id FROM goods ORDER BY id")
        users = here.rows("SELECT rolname FROM pg_roles WHERE rolname ~ %s", f"^{NAME}_m")

    assert (first.returncode, second.returncode) == (0, 0), (first.stderr, second.stderr)
    assert (told["status"], told["reason"]) == ("DONE", "")
    assert rows == [(1,), (2,)], "each statement was done once"
    assert users == [], "no login is left"
