"""Applies pending migrations in order, each unit with its record in one transaction.

    lock ──► pending ──► per unit: BEGIN, statements, record, COMMIT ──► unlock

One runner at a time: it holds an advisory lock. What PostgreSQL allows in no transaction is
recorded as begun, done, and recorded as done: after a crash, `lone_statements` tells what is left.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psycopg

from fairlead import errors
from fairlead.areas.deployments.migrations import lone_statements, scratch, units, version_table
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
    known = version_table.applied(connection).get(migration.version)
    done = known.done if known else 0
    with _told(migration.name, "mend the migration; what failed is rolled back"):
        for number in range(done, len(parts)):
            step = functools.partial(_unit, connection, migration, parts, number)
            _patiently(step, migration, patience)
        if done >= len(parts):
            version_table.record(connection, migration, parts, len(parts))
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
    unit = parts[at]
    if unit.transactional:
        with connection.transaction():
            for statement in unit.statements:
                _send(connection, statement)
            version_table.record(connection, migration, parts, at + 1)
        return
    (statement,) = unit.statements
    known = version_table.applied(connection).get(migration.version)
    record = functools.partial(version_table.record, connection, migration, parts)
    before, done = known.begun if known and known.done == at else None, False
    if before is None or not lone_statements.is_of(statement, before):
        before = lone_statements.look(connection, statement)
        record(at, before)
    else:
        done = lone_statements.mend(connection, statement, before)
    try:
        if not done:
            _send(connection, statement)
    except psycopg.Error:
        # What it left by half would be in the way of the file once that is mended. If the server
        # went away, the next run finds the record of what was begun.
        with contextlib.suppress(psycopg.Error):
            lone_statements.mend(connection, statement, before)
            record(at)
        raise
    record(at + 1)


def _send(connection: Connection, statement: Statement) -> None:
    psycopg.RawCursor(connection).execute(statement.sql.encode(), binary=True)
