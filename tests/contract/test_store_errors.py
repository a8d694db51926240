"""What a store refuses for good is an answer; only what may pass by itself is an absence."""

import secrets
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.clients.postgres.server import identity
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.engine.store import postgres, protocol
from tests.contract.test_store import NOW, load, stream, timer, write
from tests.engines import Home


def backend(session: Any) -> object:
    """What tells one connection from another."""
    connection = session._connection
    return connection.info.backend_pid if isinstance(connection, psycopg.Connection) else connection


def limit_files(pid: int, size: str) -> None:
    """As whoever the process belongs to: not every root may do it for others."""
    command = ["prlimit", f"--pid={pid}", f"--fsize={size}:"]
    done = identity.run_as(identity.unprivileged_identity(), command)
    assert done.returncode == 0, done.stderr


def too_large(session: Any) -> protocol.NewTimer:
    """A row that this store takes under no circumstances."""
    if isinstance(session._connection, sqlite3.Connection):
        session._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
    # Letters that do not repeat: PostgreSQL packs a row before it measures it.
    return timer(1, name=secrets.token_hex(10_000))


def test_what_can_never_be_stored_is_rejected_and_the_connection_kept(
    session: protocol.Session,
) -> None:
    before = backend(session)

    with pytest.raises(errors.Rejected, match="cannot store this"):
        write(session, streams=[stream(1)], timers=[too_large(session)])
    write(session, streams=[stream(2)])

    assert [row.name for row in load(session, "fan/1", "fan/2").streams] == ["fan/2"]
    assert backend(session) == before


def test_a_number_that_is_too_large_is_rejected(session: protocol.Session) -> None:
    with pytest.raises(errors.Rejected):
        write(session, streams=[stream(1)], timers=[timer(1, due=2**70)])


def test_a_schema_that_is_not_ours_is_nothing_to_wait_for(
    home: Home, session: protocol.Session
) -> None:
    home.sql("ALTER TABLE timers RENAME COLUMN attempts TO tries")

    with pytest.raises(errors.Corrupt, match="refuses a statement of ours"):
        session.rows("claim_timers", fence=1, knows="{}", now=NOW, limit=1)


def test_a_table_that_may_not_grow_is_waited_for() -> None:
    """A limit or a quota on files: unlike a full disk, that has no code of its own."""
    with PostgresServer() as server:
        store = postgres.PostgresStore(server.create_database("cramped"))
        store.migrate()
        session = store.open()
        write(session, streams=[stream(1)])
        large = [protocol.NewEvent(1, seq, "Loaded", 1, "{}", "x" * 1500) for seq in range(1, 50)]
        pid = session._connection.info.backend_pid

        limit_files(pid, "8192")
        with pytest.raises(errors.Unavailable, match="did not answer: could not extend file"):
            write(session, events=large)
        limit_files(pid, "unlimited")

        write(session, events=large)
        session.close()


def test_a_store_without_tables_may_get_them(bare_home: Home) -> None:
    session = bare_home.store().open()

    with pytest.raises(errors.Unavailable, match="no fairlead tables") as refused:
        session.rows("count_rows")
    session.close()

    assert refused.value.hint == "run fairlead store migrate"


@pytest.mark.parametrize(
    "state",
    [
        "08006",
        "53100",
        "53300",
        "57014",
        "57P01",
        "57P02",
        "57P03",
        "58030",
        "25006",
        "40003",
        "55000",
    ],
)
def test_what_may_pass_by_itself_is_unavailable(postgres_home: Home, state: str) -> None:
    session = postgres_home.store().open()

    with pytest.raises(errors.Unavailable):
        _raise_in_server(session, state)
    session.close()


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("54000", errors.Rejected),
        ("22001", errors.Rejected),
        ("42501", errors.Corrupt),
        ("0A000", errors.Corrupt),
        ("XX001", errors.Corrupt),
    ],
)
def test_what_stays_refused_is_an_answer(
    postgres_home: Home, state: str, kind: type[errors.FairleadError]
) -> None:
    session = postgres_home.store().open()

    with pytest.raises(kind):
        _raise_in_server(session, state)
    session.close()


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    home = Home("sqlite", str(tmp_path / "fairlead.db"))
    home.store().migrate()
    session = home.store().open()
    page = Path(home.address)
    page.write_bytes(page.read_bytes()[:4096] + b"x" * 40_000)

    with pytest.raises(errors.Corrupt, match="damaged"):
        session.rows("count_rows")
    session.close()


def _raise_in_server(session: Any, state: str) -> None:
    """An error of the server's own, by way of a query that fails inside it."""
    with session.transaction() as transaction:
        transaction._connection.execute(
            f"DO $$ BEGIN RAISE EXCEPTION 'as the test says' USING ERRCODE = '{state}'; END $$"
        )
