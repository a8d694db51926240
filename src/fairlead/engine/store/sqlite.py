"""The embedded store: one SQLite file, write-ahead log, every commit on the disk.

One writer at a time holds the file (BEGIN IMMEDIATE), so a batch never loses a race inside
its transaction; several processes may share the file, each waiting its turn.
"""

import contextlib
import functools
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fairlead import errors
from fairlead.engine import clock, messages
from fairlead.engine.store import (
    epochs,
    migrations,
    protocol,
    queries,
    sqlite_connection,
    write_queue,
)

_QUERIES = queries.load("sqlite")
_OLDEST = (3, 37)
_PATIENCE = 30.0
"""Seconds that a session waits for the file, where nobody named a deadline."""

_LOOK = 0.0005
_APART = 1000
"""Milliseconds that the file's clock may be off before it is set anew."""


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
        self._write_queue = write_queue.WriteQueue()

    def open(self, deadline: float | None = None) -> "SqliteSession":
        connection = self._connect() if deadline is None else self._connect(0)
        return SqliteSession(connection, self._ordered, self._write_queue, deadline)

    def migrate(self) -> list[str]:
        with contextlib.closing(self._connect()) as connection, _translate():
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
            todo = migrations.outstanding(migrations.load("sqlite"), _applied(connection))
            for migration in todo:
                for statement in migration.statements():
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations (name) VALUES (?)", [migration.name])
                if goes_with := migration.compatible_with:
                    connection.execute(_QUERIES["mark_migration"], [goes_with, migration.name])
            connection.execute("COMMIT")
            return [migration.name for migration in todo]

    def pending_migrations(self) -> list[str]:
        with contextlib.closing(self._connect()) as connection, _translate():
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'")
            applied = _applied(connection) if known.fetchone() else []
        return [each.name for each in migrations.outstanding(migrations.load("sqlite"), applied)]

    def now(self) -> datetime:
        """What the leases of this file have; set by the time of day while nobody is at work."""
        session = self.open()
        try:
            _set_clock(session)
            ((at,),) = session.rows("store_clock")
        finally:
            session.close()
        return clock.from_millis(at)

    def listen(self, channel: str) -> None:  # noqa: ARG002 - the protocol's argument
        return None

    def _connect(self, patience: float = _PATIENCE) -> sqlite3.Connection:
        return sqlite_connection.connect(self._path, patience)


class SqliteSession:
    """One connection to the file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        ordered: str,
        queue: write_queue.WriteQueue,
        deadline: float | None = None,
    ) -> None:
        self._connection = connection
        self._ordered = ordered
        self._queue = queue
        self._deadline = deadline
        self._epoch: str | None = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator["SqliteTransaction"]:
        with _translate():
            if self._epoch is None:
                self._epoch = epochs.current(self, self._place())
            with self._queue.turn(_PATIENCE):
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SqliteTransaction(self._connection, self._ordered, self._epoch)
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        with _translate():
            if self._deadline is not None:
                end = time.monotonic() + self._deadline
                with self._queue.turn(self._deadline):
                    return self._rows_in_time(query, values, end)
            return self._connection.execute(_QUERIES[query], _plain(values)).fetchall()

    def page(
        self, query: str, limit: int, most_bytes: int, **values: Any
    ) -> tuple[list[tuple[Any, ...]], bool]:
        found: list[tuple[Any, ...]] = []
        size = 0
        bound = _plain({**values, "limit": limit + 1})
        with (
            _translate(),
            contextlib.closing(self._connection.execute(_QUERIES[query], bound)) as c,
        ):
            # SQLite finds a row when it is asked for: those that are too many are never read.
            for row in c:
                if len(found) == limit or (found and size > most_bytes):
                    return found, True
                found.append(row)
                size += sum(len(value) for value in row if isinstance(value, str))
        return found, False

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

    def _rows_in_time(
        self, query: str, values: Mapping[str, Any], end: float
    ) -> list[tuple[Any, ...]]:
        # SQLite itself would look every tenth of a second whether the file is free. The busy writer
        # of another process leaves it free for a millisecond between two batches, and none of
        # its looks would hit.
        while True:
            try:
                return self._connection.execute(_QUERIES[query], _plain(values)).fetchall()
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() >= end:
                    raise
            time.sleep(_LOOK)

    def _count(self, query: str, values: Mapping[str, Any]) -> int:
        cursor = self._connection.execute(_QUERIES[query], _plain(values))
        # With RETURNING the count is known only once the rows have been read.
        returned = len(cursor.fetchall()) if cursor.description else 0
        return max(cursor.rowcount, returned)

    def close(self) -> None:
        self._connection.close()

    def _place(self) -> str:
        """Another one when a file was moved here; one that was copied here stays unnoticed.

        More cannot be asked: opening the file again, and closing it, would end SQLite's locks.
        """
        ((_, _, path),) = self._connection.execute("PRAGMA database_list").fetchall()
        found = Path(path).stat()
        return f"{found.st_dev}.{found.st_ino}"


class SqliteTransaction:
    """One batch's hold on the file."""

    def __init__(self, connection: sqlite3.Connection, ordered: str, epoch: str) -> None:
        self._connection = connection
        self._ordered = ordered
        self.epoch = epoch
        self._next: int | None = None
        self._homes: dict[int, tuple[str, str]] = {}
        """Queue and machine of streams; they cannot change while the file is ours."""

    def load(self, needed: protocol.Needed) -> protocol.Loaded:
        rows, left_out = self._streams(needed.streams, needed.bytes) if needed.streams else ((), ())
        return protocol.Loaded(
            rows,
            self._commands(needed.commands) if needed.commands else (),
            self._held(needed) if needed.careful else None,
            frozenset(left_out),
        )

    def more(self, streams: Sequence[str]) -> Sequence[protocol.StreamRow]:
        return self._streams(streams, protocol.UNBOUNDED)[0]

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
        for new in writes.streams:
            self._homes[new.id] = new.queue, new.machine
        self._many(
            "insert_streams",
            [
                (s.id, s.name, s.machine, s.version, s.state_type, s.state_version, s.state,
                 s.ended_at, s.queue, now, now)
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
        if writes.attributes:
            self._write_attributes(writes.attributes)

    def _write_attributes(self, attributes: Sequence[protocol.NewAttribute]) -> None:
        there = [each for each in attributes if each.value is not None]
        self._many("put_attributes", [(a.stream, a.machine, a.name, a.value) for a in there])
        gone = [(each.stream, each.name) for each in attributes if each.value is None]
        self._many("drop_attributes", gone)

    def _write_outbox(self, writes: protocol.Writes) -> None:
        settled = self._many(
            "settle_effects", [(h.stream, h.seq, h.n, h.fence) for h in writes.settled]
        )
        if settled != len(writes.settled):
            raise protocol.Lost
        self._many(
            "withdraw_effects",
            [(w.stream, w.seq, w.type, w.data, w.data) for w in writes.withdrawn],
        )
        self._insert_effects(writes)
        self._many(
            "postpone_effects",
            [
                (p.attempts, p.due_at, p.dead_at, p.error, p.stream, p.seq, p.n, p.fence)
                for p in writes.postponed
            ],
        )

    def _insert_effects(self, writes: protocol.Writes) -> None:
        rows = [
            (e.stream, e.seq, e.n, e.type, e.version, e.data, e.in_order, e.owner, writes.now,
             self.epoch, *self._home(e.stream))
            for e in writes.effects
        ]  # fmt: skip
        # Apart: to look for others of its lane makes an effect without one dearer by a sixth.
        both = list(zip(writes.effects, rows, strict=True))
        self._many("insert_effects", [row for effect, row in both if not effect.in_order])
        lanes = [(*row, effect.stream) for effect, row in both if effect.in_order]
        self._many("insert_lane_effects", lanes)

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

    def _streams(
        self, names: Sequence[str], room: int
    ) -> tuple[Sequence[protocol.StreamRow], Sequence[str]]:
        """As many as fit, and the names of the others."""
        values = {"names": json.dumps(names), "ordered": self._ordered}
        found: list[protocol.StreamRow] = []
        left_out: list[str] = []
        for values_ in self._connection.execute(_QUERIES["load_streams"], values):
            row = protocol.StreamRow(*values_)
            room -= len(row.state)
            if room < 0:
                left_out.append(row.name)
                continue
            found.append(row)
            self._homes[row.id] = row.queue, row.name.partition("/")[0]
        return found, left_out

    def _home(self, stream: int) -> tuple[str, str]:
        if stream not in self._homes:
            raise protocol.Lost(f"not loaded: stream {stream}")
        return self._homes[stream]

    def _many(self, query: str, rows: Sequence[tuple[Any, ...]]) -> int:
        if not rows:
            return 0
        return self._connection.executemany(_QUERIES[query], rows).rowcount

    def _commands(self, ids: Sequence[str]) -> list[protocol.CommandRow]:
        found = self._connection.execute(_QUERIES["load_commands"], {"ids": json.dumps(ids)})
        return [protocol.CommandRow(*row) for row in found]

    def _held(self, needed: protocol.Needed) -> frozenset[messages.Hold | messages.TimerKey]:
        holds = [(h.stream, h.seq, h.n, h.fence) for h in needed.settles]
        settings = [(k.stream, k.name, k.seq) for k in needed.fires]
        effects = self._connection.execute(_QUERIES["held_effects"], {"keys": json.dumps(holds)})
        timers = self._connection.execute(_QUERIES["held_timers"], {"keys": json.dumps(settings)})
        return frozenset(
            [messages.Hold(*row) for row in effects] + [messages.TimerKey(*row) for row in timers]
        )


def _applied(connection: sqlite3.Connection) -> list[tuple[str, str | None]]:
    return [
        migrations.as_applied(row) for row in connection.execute(_QUERIES["applied_migrations"])
    ]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists travel as JSON, which SQLite can unfold; what leases count by goes along."""
    plain = {
        name: json.dumps(value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    return {"now": None, "steady": _steady(), **plain}


def _set_clock(session: SqliteSession) -> None:
    """The file's clock is its zero, a time of day, and how long this machine has been running.

    It is set while nobody is at work, so a step of the time of day moves no lease and no timer.
    """
    if _clock_stands(session):
        return
    with session.transaction():
        # Looked at again: another process may have set it, or gone to work by it, just now.
        if _clock_stands(session):
            return
        zero = clock.to_millis(clock.time_of_day()) - _steady()
        if session.rows("get_fact", name="clock_boot") not in ([], [(_boot(),)]):
            # A lease of before a restart of the machine has nobody behind it, whatever it says.
            session.rows("end_all_workers", now=zero + _steady())
        session.rows("set_fact", name="clock_boot", value=_boot())
        session.rows("set_fact", name="clock_zero", value=str(zero))
        session._connection.execute("COMMIT")  # noqa: SLF001 - of this module


def _clock_stands(session: SqliteSession) -> bool:
    if session.rows("get_fact", name="clock_boot") != [(_boot(),)]:
        return False
    if session.rows("live_workers"):
        return True
    ((at,),) = session.rows("store_clock")
    return bool(abs(at - clock.to_millis(clock.time_of_day())) <= _APART)


def _steady() -> clock.Millis:
    """The same for all processes of one boot, which are all that can share the file."""
    if not _boot():
        return clock.to_millis(clock.time_of_day())
    return int(clock.running_seconds() * 1000)


@functools.cache
def _boot() -> str:
    """Which start of this machine it is; empty where only the time of day is shared by all."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@contextlib.contextmanager
def _translate() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise protocol.Lost(str(error)) from error
    except sqlite3.Error as error:
        raise _sorted(error) from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise errors.Rejected(
            f"the database cannot store this: {error}", hint="check numbers and characters"
        ) from error


_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PASSING = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
        *(sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_SCHEMA),
    }
)


def _sorted(error: sqlite3.Error) -> errors.FairleadError:
    """By what happens next: all that is not about the file is the answer to one request."""
    # The lowest byte is the kind; the rest of the number only says more about it.
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    if isinstance(error, sqlite3.DataError):
        return errors.Rejected(f"the database cannot store this: {error}", hint="make it shorter")
    if kind in _DAMAGED:
        return errors.Corrupt(
            f"the database file is damaged: {error}", hint="restore it from a backup"
        )
    if str(error).startswith("no such table"):
        return errors.Unavailable(
            "the database has no fairlead tables", hint="run fairlead store migrate"
        )
    if kind in _PASSING:
        return errors.Unavailable(
            f"the database did not answer: {error}",
            hint="check the disk's free space and that no other program locks the file",
        )
    return errors.Corrupt(
        f"the database refuses a statement of ours: {error}",
        hint="check that the schema is fairlead's own",
    )
