"""The embedded store: one SQLite file, write-ahead log, every commit on the disk.

One writer at a time holds the file (BEGIN IMMEDIATE), so a batch never loses a race inside
its transaction; several processes may share the file, each waiting its turn.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairlead import errors
from fairlead.engine import messages
from fairlead.engine.store import migrations, protocol, queries

_QUERIES = queries.load("sqlite")
_OLDEST = (3, 37)
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    # FULL, not NORMAL: a commit that returned must survive a power cut.
    "PRAGMA synchronous = FULL",
    "PRAGMA busy_timeout = 30000",
    # 4 MB for each connection, of which a worker has five. More would keep pages that the system
    # keeps anyway, and reading one from there takes a few microseconds.
    "PRAGMA cache_size = -4096",
    # A checkpoint copies pages back and syncs twice; every 16 MB is rare enough.
    "PRAGMA wal_autocheckpoint = 4000",
)


class SqliteStore:
    """A store in one file."""

    writers = 1

    def __init__(self, path: Path, ordered: Sequence[str] = ()) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise errors.Unavailable(
                f"SQLite is too old: {sqlite3.sqlite_version}",
                hint="use a Python with SQLite 3.37 or newer, or a PostgreSQL store",
            )
        self._path = path
        self._ordered = json.dumps(list(ordered))

    def open(self) -> "SqliteSession":
        return SqliteSession(self._connect(), self._ordered)

    def migrate(self) -> list[str]:
        with contextlib.closing(self._connect()) as connection, _translate():
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
            todo = migrations.outstanding(migrations.load("sqlite"), _applied(connection))
            for migration in todo:
                for statement in migration.statements():
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?)", [migration.name])
            connection.execute("COMMIT")
            return [migration.name for migration in todo]

    def pending_migrations(self) -> list[str]:
        with contextlib.closing(self._connect()) as connection, _translate():
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'")
            applied = _applied(connection) if known.fetchone() else []
        return [each.name for each in migrations.outstanding(migrations.load("sqlite"), applied)]

    def now(self) -> datetime:
        return datetime.now(UTC)

    def listen(self, channel: str) -> None:  # noqa: ARG002 - the protocol's argument
        return None

    def _connect(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            try:
                for pragma in PRAGMAS:
                    connection.execute(pragma)
            except sqlite3.Error:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise errors.Unavailable(
                f"cannot open the database: {self._path}: {error}",
                hint="check the folder's rights, or set FAIRLEAD_DATABASE_URL to another place",
            ) from error
        return connection


class SqliteSession:
    """One connection to the file."""

    def __init__(self, connection: sqlite3.Connection, ordered: str) -> None:
        self._connection = connection
        self._ordered = ordered

    @contextlib.contextmanager
    def transaction(self) -> Iterator["SqliteTransaction"]:
        with _translate():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(self._connection, self._ordered)
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        with _translate():
            return self._connection.execute(_QUERIES[query], _plain(values)).fetchall()

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        counts: list[int] = []
        with self.transaction():
            for query, values in steps:
                counts.append(self._count(query, values))
                if first_must_hit and counts[0] == 0:
                    raise protocol.Lost
            self._connection.execute("COMMIT")
        return counts

    def _count(self, query: str, values: Mapping[str, Any]) -> int:
        cursor = self._connection.execute(_QUERIES[query], _plain(values))
        # With RETURNING the count is known only once the rows have been read.
        returned = len(cursor.fetchall()) if cursor.description else 0
        return max(cursor.rowcount, returned)

    def close(self) -> None:
        self._connection.close()


class SqliteTransaction:
    """One batch's hold on the file."""

    def __init__(self, connection: sqlite3.Connection, ordered: str) -> None:
        self._connection = connection
        self._ordered = ordered
        self._next: int | None = None

    def load(self, wanted: protocol.Wanted) -> protocol.Loaded:
        return protocol.Loaded(
            self.more(wanted.streams) if wanted.streams else (),
            self._commands(wanted.commands) if wanted.commands else (),
            self._held(wanted) if wanted.careful else None,
        )

    def more(self, streams: Sequence[str]) -> Sequence[protocol.StreamRow]:
        values = {"names": json.dumps(streams), "ordered": self._ordered}
        return [
            protocol.StreamRow(*row)
            for row in self._connection.execute(_QUERIES["load_streams"], values)
        ]

    def number(self, count: int) -> Sequence[int]:
        if self._next is None:
            row = self._connection.execute(_QUERIES["last_stream"]).fetchone()
            self._next = (row[0] if row else 0) + 1
        first, self._next = self._next, self._next + count
        return range(first, self._next)

    def write(self, writes: protocol.Writes) -> None:
        self._write_streams(writes)
        self._write_outbox(writes)
        self._write_timers(writes)
        self._connection.execute("COMMIT")

    def _write_streams(self, writes: protocol.Writes) -> None:
        now = writes.now
        self._many(
            "insert_streams",
            [
                (s.id, s.name, s.machine, s.version, s.state_type, s.state_version, s.state,
                 s.ended_at, now, now)
                for s in writes.streams
            ],
        )  # fmt: skip
        updated = self._many(
            "update_states",
            [
                (s.version, s.state_type, s.state_version, s.state, s.ended_at, now, s.id, s.seen)
                for s in writes.states
            ],
        )
        if updated != len(writes.states):
            raise protocol.Lost
        self._many(
            "insert_events",
            [(e.stream, e.seq, e.type, e.version, e.data, e.cause, now) for e in writes.events],
        )
        self._many(
            "insert_commands",
            [(c.id, c.stream, c.digest, c.first, c.last, now) for c in writes.commands],
        )

    def _write_outbox(self, writes: protocol.Writes) -> None:
        settled = self._many(
            "settle_effects", [(h.stream, h.seq, h.n, h.fence) for h in writes.settled]
        )
        if settled != len(writes.settled):
            raise protocol.Lost
        self._many(
            "insert_effects",
            [
                (e.stream, e.seq, e.n, e.type, e.version, e.data, e.in_order, e.owner, writes.now)
                for e in writes.effects
            ],
        )
        self._many(
            "postpone_effects",
            [
                (p.attempts, p.due_at, p.dead_at, p.error, p.stream, p.seq, p.n, p.fence)
                for p in writes.postponed
            ],
        )

    def _write_timers(self, writes: protocol.Writes) -> None:
        # Fired before set: a machine that sets the timer that woke it must keep the new one.
        fired = self._many("fire_timers", [(k.stream, k.name, k.seq) for k in writes.fired])
        if fired != len(writes.fired):
            raise protocol.Lost
        self._many("cancel_timers", writes.cancelled)
        self._many(
            "set_timers",
            [(t.stream, t.name, t.seq, t.due_at, t.type, t.version, t.data) for t in writes.timers],
        )
        self._many("end_timers", [(stream,) for stream in writes.ended])

    def _many(self, query: str, rows: Sequence[tuple[Any, ...]]) -> int:
        if not rows:
            return 0
        return self._connection.executemany(_QUERIES[query], rows).rowcount

    def _commands(self, ids: Sequence[str]) -> list[protocol.CommandRow]:
        found = self._connection.execute(_QUERIES["load_commands"], {"ids": json.dumps(ids)})
        return [protocol.CommandRow(*row) for row in found]

    def _held(self, wanted: protocol.Wanted) -> frozenset[messages.Hold | messages.TimerKey]:
        holds = [(h.stream, h.seq, h.n, h.fence) for h in wanted.settles]
        settings = [(k.stream, k.name, k.seq) for k in wanted.fires]
        effects = self._connection.execute(_QUERIES["held_effects"], {"keys": json.dumps(holds)})
        timers = self._connection.execute(_QUERIES["held_timers"], {"keys": json.dumps(settings)})
        return frozenset(
            [messages.Hold(*row) for row in effects] + [messages.TimerKey(*row) for row in timers]
        )


def _applied(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute(_QUERIES["applied_migrations"])]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists travel as JSON, which SQLite can unfold."""
    return {
        name: json.dumps(value) if isinstance(value, list) else value
        for name, value in values.items()
    }


@contextlib.contextmanager
def _translate() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise protocol.Lost(str(error)) from error
    except sqlite3.OperationalError as error:
        raise errors.Unavailable(
            f"the database did not answer: {error}",
            hint="check the disk's free space and that no other program locks the file",
        ) from error
    except sqlite3.DatabaseError as error:
        raise errors.Corrupt(
            f"the database file is damaged: {error}", hint="restore it from a backup"
        ) from error
