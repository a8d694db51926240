"""A migration machine on the engine with a real PostgreSQL behind it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from fairlead.areas.deployments import migration_handlers
from fairlead.areas.deployments.domain import migration
from fairlead.areas.deployments.domain.spec import Server, Work
from fairlead.areas.deployments.migrations import files
from fairlead.clients.postgres import administration, connection
from fairlead.clients.postgres.server.running import Databases, PostgresServer
from fairlead.engine import messages, service, visibility
from fairlead.engine.store import sqlite
from tests.engines import until

pytestmark = pytest.mark.xdist_group("administration")
NAME, STACK = "fairlead_test_machine", "test/machine"
GOOD = files.Migration("1", "1_shop.sql", "CREATE TABLE shop (id int)")
BAD = files.Migration("2", "2_shop.sql", "CREATE TABLE shop (id int)")


@pytest.fixture
def server(postgres_server: Databases) -> Iterator[str]:
    connect = administration.connector(postgres_server.admin_url)
    admin = administration.Administration(connect, STACK)
    admin.destroy(NAME, confirmed=NAME)
    yield postgres_server.admin_url
    admin.destroy(NAME, confirmed=NAME)


@dataclass(frozen=True, slots=True)
class Here:
    """A server and migrations that the test has in its hand."""

    address: str
    wanted: Sequence[files.Migration]

    def url(self, _: Work) -> str:
        return self.address

    def migrations(self, _: Work) -> Sequence[files.Migration]:
        return self.wanted

    def hand_over(self, work: Work, token: str) -> None: ...

    def run_command(self, work: Work, user: administration.NewUser) -> None:
        raise AssertionError(user)

    def run_task(self, work: Work, token: str) -> str:
        raise AssertionError(token)

    def task_ended(self, work: Work, task: str) -> str | None:
        raise AssertionError(task)


async def ended(
    store: Path,
    url: str,
    wanted: Sequence[files.Migration],
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> list[str]:
    kept = sqlite.SqliteStore(store)
    kept.migrate()
    handlers = migration_handlers.handlers(Here(url, wanted))
    parts = service.Parts(kept, (migration.MIGRATION,), handlers)
    stream = migration.stream("d1")
    async with service.Engine(parts).running() as engine:
        with engine.watch() as signal:
            work = Work(Server("main"), NAME, STACK, migrations="shop")
            ask = migration.MigratePostgresDatabase("d1", work)
            await engine.submit(stream, ask, messages.command_id("ask"))
            if meanwhile is not None:
                await meanwhile()
            async with asyncio.timeout(60):
                while not (await engine.read(lambda s: visibility.stream(s, stream))).ended_at:
                    await signal.wait()
                    signal.clear()
        events = await engine.read(lambda s: visibility.events(s, stream))
    return [f"{event.type} {event.data}" for event in events]


@pytest.mark.requirement("deployer Q21", "deployer Q22", "deployer Q23", "deployer Q24")
async def test_a_database_is_made_migrated_and_owned(server: str, tmp_path: Path) -> None:
    events = await ended(tmp_path / "a.db", server, [GOOD])

    assert events[-1].startswith("MigrationCompleted")
    with psycopg.connect(connection.of_database(server, NAME)) as inside:
        ((owner,),) = inside.execute(
            "SELECT tableowner FROM pg_tables WHERE tablename = 'shop'"
        ).fetchall()
    assert owner == NAME


async def test_the_sql_runs_as_the_owner_and_not_as_the_administrator(
    server: str, tmp_path: Path
) -> None:
    greedy = files.Migration("1", "1_role.sql", "CREATE ROLE fairlead_test_greedy")
    events = await ended(tmp_path / "a.db", server, [greedy])

    assert events[-1].startswith("MigrationFailed")
    assert "permission denied" in events[-1]


async def test_a_migration_that_cannot_work_fails_the_machine(server: str, tmp_path: Path) -> None:
    events = await ended(tmp_path / "a.db", server, [GOOD, BAD])

    assert events[-1].startswith("MigrationFailed")
    assert "2_shop.sql: relation" in events[-1]


ATTACKS = (
    "RESET ROLE",
    "SET ROLE NONE",
    "RESET ALL",
    "RESET SESSION AUTHORIZATION",
)


@pytest.mark.parametrize("leave", ATTACKS)
async def test_the_sql_cannot_leave_its_role(server: str, tmp_path: Path, leave: str) -> None:
    told = f"{leave}; CREATE TABLE who AS SELECT session_user::text AS it, current_user::text AS me"
    first = files.Migration("1", "1_leave.sql", told)
    greedy = files.Migration("3", "3_role.sql", f"{leave}; CREATE ROLE fairlead_test_greedy")

    events = await ended(tmp_path / "a.db", server, [first, greedy])

    assert events[-1].startswith("MigrationFailed")
    with psycopg.connect(connection.of_database(server, NAME)) as inside:
        ((session, current, owner),) = inside.execute(
            "SELECT it, me, tableowner FROM who, pg_tables WHERE tablename = 'who'"
        ).fetchall()
        ((greedy_ones,),) = inside.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname = 'fairlead_test_greedy'"
        ).fetchall()
    assert session.startswith(f"{NAME}_m")
    assert current in {NAME, session}
    assert owner == NAME, "what was made under another name is given back"
    assert greedy_ones == 0


@pytest.mark.parametrize("become", ["SET ROLE postgres", "SET SESSION AUTHORIZATION postgres"])
async def test_the_sql_cannot_become_the_administrator(
    server: str, tmp_path: Path, become: str
) -> None:
    events = await ended(
        tmp_path / "a.db", server, [files.Migration("1", "1_become.sql", f"{become}; SELECT 1")]
    )

    assert events[-1].startswith("MigrationFailed")
    assert "permission denied" in events[-1]


async def test_the_login_of_a_run_is_gone_after_it_and_one_that_was_left_goes_with_the_next(
    server: str, tmp_path: Path
) -> None:
    admin = administration.Administration(administration.connector(server), STACK)
    admin.upsert(administration.Database(NAME))
    left = administration.NewUser(f"{NAME}_m0a1b2c", "left by a run that was killed")
    admin.rotate(NAME, left)

    events = await ended(tmp_path / "a.db", server, [GOOD])

    assert events[-1].startswith("MigrationCompleted")
    with psycopg.connect(server) as connected:
        found = connected.execute(
            "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", (f"{NAME}_m",)
        ).fetchall()
    assert found == []


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"


async def test_a_server_that_crashes_in_the_middle_of_a_migration_is_migrated_in_the_end(
    tmp_path: Path,
) -> None:
    more = files.Migration("2", "2_more.sql", "INSERT INTO shop VALUES (1); LOCK TABLE held")
    with PostgresServer() as server:
        connect = administration.connector(server.databases.admin_url)
        admin = administration.Administration(connect, STACK)
        admin.upsert(administration.Database(NAME))
        inside = connection.of_database(server.databases.admin_url, NAME)
        with psycopg.connect(inside) as others:
            others.execute("CREATE TABLE held ()")
        admin.clean_up(NAME)
        others = psycopg.connect(inside)
        others.execute("LOCK TABLE held")

        async def crash() -> None:
            async def waits() -> bool:
                with psycopg.connect(inside) as it:
                    return it.execute(WAITS, (NAME,)).fetchone() != (0,)

            # Its row is written, and it waits for the lock that somebody holds.
            await until(waits)
            server.restart("immediate")

        events = await ended(tmp_path / "a.db", server.databases.admin_url, [GOOD, more], crash)
        others.close()
        with psycopg.connect(inside) as again:
            rows = again.execute("SELECT id FROM shop").fetchall()
            users = again.execute(
                "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", (f"{NAME}_m",)
            ).fetchall()

    assert events[-1].startswith("MigrationCompleted")
    assert rows == [(1,)], "what was cut was rolled back, and done once"
    assert users == []
