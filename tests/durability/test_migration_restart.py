"""A PostgreSQL that crashes in the middle of a migration: told, nothing half recorded, mended."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.areas.deployments import migration_handlers
from fairlead.areas.deployments.domain import migration
from fairlead.areas.deployments.domain.spec import Server, Work
from fairlead.areas.deployments.migrations import files, runner
from fairlead.clients.postgres import connection
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.engine import messages, service, visibility
from fairlead.engine.store import sqlite
from tests import engines
from tests.unit.areas.deployments.test_migration_handlers import Here

NAME = "prod_shop"
FIRST = files.Migration("1", "1_a.sql", "CREATE TABLE a (id int); INSERT INTO a VALUES (1)")
IN_ONE = files.Migration("2", "2_b.sql", "INSERT INTO a VALUES (2); ALTER TABLE a ADD b int")
IN_PARTS = files.Migration(
    "2",
    "2_b.sql",
    "INSERT INTO a VALUES (2); CREATE INDEX CONCURRENTLY a_id ON a (id); ALTER TABLE a ADD b int",
)
PATIENT = connection.Patience(lock_seconds=600)
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
LOGINS = "SELECT count(*) FROM pg_roles WHERE rolname ~ '_m[0-9a-f]{6}$'"
ENDS = (
    "SELECT (SELECT array_agg(id ORDER BY id) FROM a),"
    " (SELECT count(*) FROM pg_attribute WHERE attrelid = 'a'::regclass AND attname = 'b'),"
    " (SELECT count(*) FROM pg_index WHERE NOT indisvalid),"
    " (SELECT array_agg(name ORDER BY name) FROM fairlead_migrations WHERE finished_at IS NOT NULL)"
)
WHOLE = ([1, 2], 1, 0, ["1_a.sql", "2_b.sql"])


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


def row(url: str, question: str) -> tuple[Any, ...] | None:
    with psycopg.connect(url) as inside:
        return inside.execute(question.encode()).fetchone()


@contextlib.asynccontextmanager
async def crash_in_the_middle(server: PostgresServer, url: str) -> AsyncIterator[None]:
    """A row that others are writing stops what the block began; then the server crashes."""
    with contextlib.closing(psycopg.connect(url)) as writer:
        writer.execute("INSERT INTO a VALUES (99)")
        yield

        async def blocked() -> bool:
            return await asyncio.to_thread(row, url, BLOCKED) == (1,)

        await engines.until(blocked)
        await asyncio.to_thread(server.restart, "immediate")


@pytest.mark.parametrize(
    ("wanted", "state", "left"),
    [(IN_ONE, "pending", ([1], 0, 0)), (IN_PARTS, "partial", ([1, 2], 0, 1))],
    ids=["in one transaction", "in parts"],
)
async def test_a_run_is_told_of_the_crash_and_the_next_one_ends_it(
    server: PostgresServer, wanted: files.Migration, state: str, left: tuple[Any, ...]
) -> None:
    url = server.create_database("shop")
    runner.run(url, [FIRST])

    async with crash_in_the_middle(server, url):
        run = asyncio.create_task(asyncio.to_thread(runner.run, url, [FIRST, wanted], PATIENT))
    with pytest.raises(errors.Unavailable, match=r"2_b\.sql: the database went away") as told:
        await run

    assert "run again" in told.value.hint
    assert [each for _, each in runner.status(url, [FIRST, wanted])] == ["applied", state]
    assert row(url, ENDS) == (*left, ["1_a.sql"])
    assert runner.run(url, [FIRST, wanted]).applied == ("2_b.sql",)
    assert row(url, ENDS) == WHOLE


@pytest.mark.parametrize("question", ["run", "status"])
async def test_a_crash_while_the_version_table_is_read_is_told_too(
    server: PostgresServer, question: str
) -> None:
    url = server.create_database("shop")
    runner.run(url, [FIRST])
    wanted = [FIRST, IN_ONE]
    asks: dict[str, Callable[[], object]] = {
        "run": functools.partial(runner.run, url, wanted, PATIENT),
        "status": functools.partial(runner.status, url, wanted),
    }

    with contextlib.closing(psycopg.connect(url)) as holder:
        holder.execute("LOCK TABLE fairlead_migrations")
        run = asyncio.create_task(asyncio.to_thread(asks[question]))

        async def blocked() -> bool:
            return await asyncio.to_thread(row, url, BLOCKED) == (1,)

        await engines.until(blocked)
        await asyncio.to_thread(server.restart, "immediate")
    with pytest.raises(errors.Unavailable, match="its version table: the database went away"):
        await run

    assert runner.run(url, wanted).applied == ("2_b.sql",)


@pytest.mark.parametrize("wanted", [IN_ONE, IN_PARTS], ids=["in one transaction", "in parts"])
async def test_a_deployments_migration_goes_on_by_itself_once_the_server_is_back(
    server: PostgresServer, tmp_path: Path, wanted: files.Migration
) -> None:
    url = connection.of_database(server.databases.admin_url, NAME)
    kept = sqlite.SqliteStore(tmp_path / "a.db")
    kept.migrate()

    async def ended(deployment: str, *migrations: files.Migration) -> str:
        here = Here(server.databases.admin_url, migrations)
        handlers = migration_handlers.handlers(here)
        parts = service.Parts(kept, (migration.MIGRATION,), handlers)
        stream = migration.stream(deployment)
        async with service.Engine(parts).running() as engine:
            work = Work(Server("main"), NAME, "prod/shop", migrations="shop")
            ask = migration.MigratePostgresDatabase(deployment, work)
            await engine.submit(stream, ask, messages.command_id(deployment))
            await engines.until(_ended(engine, stream))
            return (await engine.read(lambda s: visibility.events(s, stream)))[-1].type

    assert await ended("d1", FIRST) == "MigrationCompleted"
    async with crash_in_the_middle(server, url):
        second = asyncio.create_task(ended("d2", FIRST, wanted))

    assert await second == "MigrationCompleted"
    assert row(url, ENDS) == WHOLE
    assert row(url, LOGINS) == (0,)


def _ended(engine: service.Engine, stream: messages.StreamName) -> Callable[[], Any]:
    async def looked() -> object:
        return (await engine.read(lambda s: visibility.stream(s, stream))).ended_at

    return looked
