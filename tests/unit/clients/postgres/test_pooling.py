"""A server's process that is lent is told from one that is ours, on a real pgbouncer too."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fairlead import errors
from fairlead.areas.deployments.migrations import files, runner
from fairlead.clients.postgres import connection, pooling
from fairlead.clients.postgres.server.running import Databases, PostgresServer
from tests import ha
from tools.servers import pgbouncer

TABLE = files.Migration("1", "1_table.sql", "CREATE TABLE a (id int)")
OURS = "SELECT to_regclass('a') IS NOT NULL, to_regclass('fairlead_migrations') IS NOT NULL"
LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


@pytest.mark.parametrize(
    ("ours", "theirs", "lent"),
    [
        ([1, 1, 1, 1], [2, 2], False),
        ([1, 1, 1, 1], [1, 1], True),
        ([1, 1, 2, 2], [3, 3], True),
        ([1, 1, 1, 1], [2, 3], True),
        # In turn: never the same at the same time.
        ([1, 2, 1, 2], [3, 3], True),
    ],
)
def test_a_process_is_lent_where_it_changes_or_serves_both(
    ours: list[int], theirs: list[int], *, lent: bool
) -> None:
    assert pooling.lent(ours, theirs) is lent


def test_without_a_pooler_no_second_connection_is_needed(
    postgres_server: Databases, postgres_url: str
) -> None:
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_server.admin_url, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{name}" LOGIN CONNECTION LIMIT 1'.encode())
        try:
            url = connection.as_user(postgres_url, name, "")
            with connection.connect(url) as only:
                with pytest.raises(errors.Unavailable):
                    connection.connect(url)

                pooling.check_session(only, url)
        finally:
            admin.execute(f'DROP ROLE "{name}"'.encode())


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    ha.needed(pgbouncer.find)
    with PostgresServer() as running:
        yield running


@pytest.mark.ha
@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("others", [0, 3], ids=["alone", "among others"])
def test_a_run_through_a_pool_that_lends_is_refused_before_it_does_anything(
    server: PostgresServer, tmp_path: Path, mode: pgbouncer.Mode, others: int
) -> None:
    direct = server.create_database(f"{mode}_{others}")
    with pgbouncer.PgBouncer(tmp_path, server.port, mode) as pooler:
        url = pooler.url(f"{mode}_{others}")
        # Each leaves a process behind that the pool may hand out next.
        beside = [psycopg.connect(url, autocommit=True) for _ in range(others)]
        for each in beside:
            each.execute("SELECT pg_backend_pid()")

        with pytest.raises(errors.Rejected, match="by transaction: 127") as refused:
            runner.run(url, [TABLE])

        with psycopg.connect(direct) as inside:
            assert inside.execute(OURS).fetchone() == (False, False)
            # Left with a lent process, the lock would keep every later run away.
            assert inside.execute(LOCKS).fetchone() == (0,)
        for each in beside:
            each.close()
    assert "pool_mode = session" in refused.value.hint


@pytest.mark.ha
def test_a_run_through_a_pool_in_session_mode_is_done(
    server: PostgresServer, tmp_path: Path
) -> None:
    direct = server.create_database("session")
    with pgbouncer.PgBouncer(tmp_path, server.port, "session") as pooler:
        url = pooler.url("session")

        first = runner.run(url, [TABLE])
        again = runner.run(url, [TABLE])

    assert (first.applied, again.applied) == (("1_table.sql",), ())
    with psycopg.connect(direct) as inside:
        assert inside.execute(OURS).fetchone() == (True, True)
