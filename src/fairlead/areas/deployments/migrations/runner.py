"""Applies pending migrations in order, each unit with its record in one transaction.

    lock ──► pending ──► per unit: BEGIN, statements, record, COMMIT ──► unlock

One runner at a time: it holds an advisory lock. What PostgreSQL allows in no transaction is done
first and recorded after, so a crash between the two does it again: an index that is there and
valid counts as done, a half-made one is dropped and made anew.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psycopg

from fairlead import errors
from fairlead.areas.deployments.migrations import scratch, units, version_table
from fairlead.areas.deployments.migrations.files import Migration
from fairlead.areas.deployments.migrations.statements import Statement
from fairlead.clients.postgres import pooling
from fairlead.clients.postgres.connection import Connection, Patience

_MAY = "the user must be able to make and write public.fairlead_migrations"
ADVISORY_KEY = 0x6661_6972
"""Of all runners of one database: PostgreSQL's advisory locks are per database."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did."""

    applied: tuple[str, ...] = ()


def run(url: str, wanted: Sequence[Migration], patience: Patience | None = None) -> Outcome:
    """Apply what is pending, as the URL's user; what was applied before stays, whatever happens."""
    patience = patience or Patience()
    with (
        _told("its version table", _MAY),
        scratch.admin(url) as connection,
        _alone(connection, url),
    ):
        limit = f"{patience.lock_seconds * 1000:.0f}"
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (limit,))
        version_table.ensure(connection)
        pending = version_table.pending(connection, wanted)
        for migration in pending:
            _apply(connection, migration, patience)
    return Outcome(tuple(each.name for each in pending))


def status(url: str, wanted: Sequence[Migration]) -> list[tuple[Migration, str]]:
    """Each migration with `applied`, `partial` or `pending`; changes nothing."""
    with _told("its version table", _MAY), scratch.admin(url) as connection:
        known = version_table.applied(connection)
        pending = {each.version for each in version_table.pending(connection, wanted)}
    return [(each, _state(each.version in pending, begun=each.version in known)) for each in wanted]


def _state(pending: bool, *, begun: bool) -> str:  # noqa: FBT001 - named where it is called
    if not pending:
        return "applied"
    return "partial" if begun else "pending"


@contextlib.contextmanager
def _alone(connection: Connection, url: str) -> Iterator[None]:
    pooling.check_session(connection, url)
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (ADVISORY_KEY,)).fetchone()
    if not row or not row[0]:
        raise errors.Unavailable(
            "another runner migrates this database",
            hint="wait until it has ended; its session is in pg_stat_activity",
        )
    try:
        yield
    finally:
        with contextlib.suppress(psycopg.Error):
            connection.execute("SELECT pg_advisory_unlock(%s)", (ADVISORY_KEY,))


def _apply(connection: Connection, migration: Migration, patience: Patience) -> None:
    parts = migration.units()
    done = version_table.applied(connection).get(migration.version)
    with _told(migration.name, "mend the migration; what failed is rolled back"):
        for number in range(done.done if done else 0, len(parts)):
            step = functools.partial(_unit, connection, migration, parts, number)
            _patiently(step, migration, patience)
    if not parts:
        version_table.record(connection, migration, 0, 0)
    patience.tell(f"applied: {migration.name}")


def _patiently(step: Callable[[], None], migration: Migration, patience: Patience) -> None:
    for attempt in range(1, patience.attempts + 1):
        try:
            return step()
        except psycopg.errors.LockNotAvailable as error:
            if attempt == patience.attempts:
                raise errors.Unavailable(
                    f"{migration.name}: no lock after {attempt} attempts of"
                    f" {patience.lock_seconds:g} s",
                    hint="end the transaction that holds it (see pg_locks), and run again",
                ) from error
            patience.tell(
                f"{migration.name}: a lock is held by others, attempt {attempt + 1} follows"
            )
            patience.sleep(patience.pause_seconds)
    return None


@contextlib.contextmanager
def _told(about: str, hint: str) -> Iterator[None]:
    """What the database says, sorted by whether another try may mend it; else with the hint."""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise errors.Unavailable(
            f"{about}: locked by others",
            hint="end the transaction that holds it (see pg_locks), and run again",
        ) from error
    except psycopg.OperationalError as error:
        raise errors.Unavailable(
            f"{about}: the database went away: {type(error).__name__}",
            hint="run again: what was committed is recorded, the rest is rolled back",
        ) from error
    except psycopg.Error as error:
        said = error.diag.message_primary or type(error).__name__
        raise errors.Rejected(f"{about}: {said}", hint=hint) from error


def _unit(
    connection: Connection, migration: Migration, parts: Sequence[units.Unit], at: int
) -> None:
    unit, total = parts[at], len(parts)
    if unit.transactional:
        with connection.transaction():
            for statement in unit.statements:
                _send(connection, statement)
            version_table.record(connection, migration, at + 1, total)
        return
    (statement,) = unit.statements
    version_table.record(connection, migration, at, total)
    if not _is_done(connection, statement):
        _send(connection, statement)
    version_table.record(connection, migration, at + 1, total)


def _is_done(connection: Connection, statement: Statement) -> bool:
    """Of `CREATE INDEX CONCURRENTLY name`: a run before may have made it, wholly or by half."""
    name = _index_name(statement)
    if name is None:
        return False
    row = connection.execute(
        "SELECT i.indisvalid, i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c"
        " ON c.oid = i.indexrelid WHERE c.relname = %s AND pg_table_is_visible(c.oid)",
        (name,),
    ).fetchone()
    if row is None:
        return False
    valid, shown = row
    if not valid:
        connection.execute(f"DROP INDEX CONCURRENTLY {shown}".encode())
    return bool(valid)


def _index_name(statement: Statement) -> str | None:
    words = statement.tokens
    if words[0] != "CREATE" or "CONCURRENTLY" not in words:
        return None
    rest = words[words.index("CONCURRENTLY") + 1 :]
    if rest[:3] == ("IF", "NOT", "EXISTS"):
        rest = rest[3:]
    if not rest or rest[0] == "ON":
        return None
    return rest[0][1:-1].replace('""', '"') if rest[0].startswith('"') else rest[0].lower()


def _send(connection: Connection, statement: Statement) -> None:
    psycopg.RawCursor(connection).execute(statement.sql.encode(), binary=True)
