"""Which migrations a database has: its own table says so, that of golang-migrate is understood too.

Ours has a row per file, with how many of its units are done, so that a file which PostgreSQL does
not let run in one transaction can be gone on with where it was cut. Until it is whole, its digest
is that of the units that are done: what has failed may be mended in the file.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from fairlead import errors
from fairlead.areas.deployments.migrations.files import Migration
from fairlead.areas.deployments.migrations.units import Unit
from fairlead.clients.postgres.connection import Connection

_CREATE = """
CREATE TABLE IF NOT EXISTS public.fairlead_migrations (
  version text PRIMARY KEY,
  name text NOT NULL,
  digest text NOT NULL,
  units_done int NOT NULL,
  units int NOT NULL,
  begun bigint[],
  started_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz
)
"""
_EXISTS = "SELECT to_regclass('public.fairlead_migrations') IS NOT NULL"
# Other tools have a table of that name too; the column `dirty` is golang-migrate's alone.
_GOLANG = (
    "SELECT EXISTS (SELECT FROM pg_attribute WHERE attname = 'dirty'"
    " AND attrelid = to_regclass('public.schema_migrations'))"
)
_GOLANG_KEY = "golang-migrate"
_ROWS = "SELECT version, digest, units_done, units, begun FROM public.fairlead_migrations"
_RECORD = """
INSERT INTO public.fairlead_migrations
  (version, name, digest, units_done, units, begun, finished_at)
VALUES (%(version)s, %(name)s, %(digest)s, %(done)s, %(units)s, %(begun)s,
  CASE WHEN %(done)s = %(units)s THEN now() END)
ON CONFLICT (version) DO UPDATE SET units_done = excluded.units_done, units = excluded.units,
  digest = excluded.digest, begun = excluded.begun, name = excluded.name,
  finished_at = excluded.finished_at
"""


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that was begun, and how far it came."""

    version: str
    digest: str
    done: int
    units: int
    begun: list[int] | None = None
    """Of a unit without a transaction that was begun: what was there before, of what it changes."""

    @property
    def whole(self) -> bool:
        return self.done >= self.units


def ensure(connection: Connection) -> None:
    connection.execute(_CREATE)


def applied(connection: Connection) -> dict[str, Applied]:
    """By version; what golang-migrate has recorded counts as applied, and a dirty one stops us."""
    found = _golang(connection)
    if _yes(connection, _EXISTS):
        found |= {row[0]: Applied(*row) for row in connection.execute(_ROWS).fetchall()}
    return found


def pending(connection: Connection, wanted: Sequence[Migration]) -> list[Migration]:
    """Those that are not whole, in order; Conflict where a file is not what was applied."""
    known = applied(connection)
    return [each for each in wanted if not _is_whole(each, known)]


def record(
    connection: Connection,
    migration: Migration,
    parts: Sequence[Unit],
    done: int,
    begun: Sequence[int] | None = None,
) -> None:
    """In the transaction of the unit itself, where it has one."""
    values = {
        "version": migration.version,
        "name": migration.name,
        "digest": migration.digest if done == len(parts) else _digest(parts[:done]),
        "done": done,
        "units": len(parts),
        "begun": None if begun is None else [*begun],
    }
    connection.execute(_RECORD, values)


def _is_whole(migration: Migration, known: dict[str, Applied]) -> bool:
    found = known.get(migration.version)
    if found is None:
        golang = known.get(_GOLANG_KEY)
        return golang is not None and migration.order <= (int(golang.version),)
    same = migration.digest if found.whole else _digest(migration.units()[: found.done])
    if found.digest != same:
        raise errors.Conflict(
            f"a migration that was applied has been edited since: {migration.name}",
            hint="restore the file, and put the change into a new migration",
        )
    return found.whole


def _digest(parts: Sequence[Unit]) -> str:
    texts = (statement.sql for unit in parts for statement in unit.statements)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _golang(connection: Connection) -> dict[str, Applied]:
    if not _yes(connection, _GOLANG):
        return {}
    row = connection.execute("SELECT version, dirty FROM public.schema_migrations").fetchone()
    if row is None:
        return {}
    version, dirty = row
    if dirty:
        raise errors.Conflict(
            f"golang-migrate left the database dirty at version: {version}",
            hint="mend it and run migrate force VERSION",
        )
    return {_GOLANG_KEY: Applied(str(version), "", 1, 1)}


def _yes(connection: Connection, question: LiteralString) -> bool:
    row = connection.execute(question).fetchone()
    return bool(row and row[0])
