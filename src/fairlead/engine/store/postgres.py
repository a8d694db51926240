"""The shared store: PostgreSQL, for many workers on many machines.

A batch costs two round trips: everything it must know, then everything it decided together
with the commit, each sent as one pipeline. Rows travel as one JSON text a table, which
costs the client least. The first try takes no locks and checks versions; a batch that lost
a race locks its streams, always in the order of their numbers.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import psycopg
from psycopg import pq

from fairlead import errors
from fairlead.engine import messages
from fairlead.engine.store import migrations, protocol, queries

_QUERIES = queries.load("postgres")
_BLOCK = 1000
_MIGRATION_LOCK = 7_246_019
_LOST = (
    psycopg.errors.IntegrityError,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
# A batch names every row by its key. So its statements are planned once a session, and never
# as a scan or a hash of a table: a plan made while it was small would stay when it is large,
# and dead rows of the outbox make even a small one slow to scan. Measured in two
# rounds on a busy machine: 24 to 28 us of the server's time a transition, 35 to 41 before.
_BY_KEY = """
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off
"""
_encode = msgspec.json.Encoder().encode


# A cable that is cut says nothing: ask whether the server lives, and give up in seconds.
_PATIENCE: dict[str, Any] = {
    "application_name": "fairlead",
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class PostgresStore:
    """A store in one database."""

    # Measured: a second writer gains nothing, for Python decides one batch at a time, and
    # two of them race each other on parents that many children report to.
    writers = 1

    def __init__(self, url: str, ordered: Sequence[str] = ()) -> None:
        self._url = url
        self._ordered = list(ordered)

    def open(self) -> "PostgresSession":
        return PostgresSession(self._connect(), self._ordered)

    def migrate(self) -> list[str]:
        with self._asking() as connection, connection.transaction():
            # Two programs that start together must not both create the tables.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)")
            todo = migrations.outstanding(migrations.load("postgres"), _applied(connection))
            for migration in todo:
                for statement in migration.statements():
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (%s)", [migration.name])
            _adopt_restored(connection)
            return [migration.name for migration in todo]

    def pending_migrations(self) -> list[str]:
        with self._asking() as connection:
            known = connection.execute("SELECT to_regclass('migrations')").fetchone()
            applied = _applied(connection) if known and known[0] else []
        return [each.name for each in migrations.outstanding(migrations.load("postgres"), applied)]

    def now(self) -> datetime:
        with self._asking() as connection:
            row = connection.execute(_QUERIES["store_clock"]).fetchone()
        assert row is not None
        return cast("datetime", row[0]).astimezone(UTC)

    def listen(self, channel: str) -> "PostgresListener":
        connection = self._connect()
        statement = psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel))
        try:
            with _translate():
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return PostgresListener(connection)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[psycopg.Connection]:
        """A connection for a few questions; where it breaks off, our own error says so."""
        with contextlib.closing(self._connect()) as connection, _translate():
            yield connection

    def _connect(self) -> psycopg.Connection:
        try:
            connection = psycopg.connect(self._url, autocommit=True, **_PATIENCE)
            connection.prepare_threshold = 2
            connection.execute(_QUERIES["limit_silence"])
        except psycopg.Error as error:
            raise errors.Unavailable(
                f"cannot reach the database: {_where(self._url)}: {str(error).strip()}",
                hint="check FAIRLEAD_DATABASE_URL and that the server accepts this user",
            ) from error
        return connection


class PostgresListener:
    """A connection that only hears."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def wait(self, seconds: float) -> bool:
        with _translate():
            return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))

    def close(self) -> None:
        self._connection.close()


class PostgresSession:
    """One connection to the database."""

    def __init__(self, connection: psycopg.Connection, ordered: list[str]) -> None:
        self._connection = connection
        self._ordered = ordered
        self._numbers: list[int] = []
        self._by_key = False

    @contextlib.contextmanager
    def transaction(self) -> Iterator["PostgresTransaction"]:
        with _translate():
            if not self._by_key:
                # Only where batches are written: lists and searches need the planner's freedom.
                self._connection.execute(_BY_KEY)
                self._by_key = True
            try:
                yield PostgresTransaction(self._connection, self._ordered, self._numbers)
            finally:
                if self._connection.info.transaction_status not in _OVER:
                    self._connection.execute("ROLLBACK")

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        with _translate():
            cursor = self._connection.execute(_QUERIES[query], values)
            return cursor.fetchall() if cursor.description else []

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        counts: list[int] = []
        with _translate(), self._connection.transaction():
            for query, values in steps:
                counts.append(self._connection.execute(_QUERIES[query], values).rowcount)
                if first_must_hit and counts[0] == 0:
                    raise protocol.Lost
        return counts

    def close(self) -> None:
        self._connection.close()


class PostgresTransaction:
    """One batch's hold on the database."""

    def __init__(
        self, connection: psycopg.Connection, ordered: list[str], numbers: list[int]
    ) -> None:
        self._connection = connection
        self._ordered = ordered
        self._numbers = numbers
        self._locking = False

    def load(self, wanted: protocol.Wanted) -> protocol.Loaded:
        self._locking = wanted.careful
        names = list(wanted.streams)
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            if wanted.careful:
                # A statement of its own: one that waited for a lock would count the effects
                # of a lane as they were before it waited.
                self._ask("lock_streams", names=names)
            streams = self._ask("load_streams", names=names, ordered=self._ordered)
            # After the lock, so that it sees what the one before us committed.
            commands = self._ask("load_commands", ids=list(wanted.commands))
        # Not in the pipeline: after one the server does not count our silence (limit_silence),
        # and from here on we hold locks.
        held = self._ask_held(wanted) if wanted.careful else None
        return protocol.Loaded(
            [protocol.StreamRow(*row) for row in streams.fetchall()],
            [protocol.CommandRow(*row) for row in commands.fetchall()],
            _held(*held) if held else None,
        )

    def more(self, streams: Sequence[str]) -> Sequence[protocol.StreamRow]:
        if self._locking:
            # Waiting here, with other streams locked, could close a circle of waiting batches.
            self._ask("lock_streams_now", names=list(streams))
        cursor = self._ask("load_streams", names=list(streams), ordered=self._ordered)
        return [protocol.StreamRow(*row) for row in cursor.fetchall()]

    def number(self, count: int) -> Sequence[int]:
        while len(self._numbers) < count:
            (block,) = self._ask("stream_block").fetchone() or (0,)
            self._numbers.extend(range(block * _BLOCK, (block + 1) * _BLOCK))
        taken = self._numbers[:count]
        del self._numbers[:count]
        return taken

    def write(self, writes: protocol.Writes) -> None:
        with self._connection.pipeline():
            self._write_streams(writes)
            self._write_outbox(writes)
            self._write_timers(writes)
            self._connection.execute("COMMIT")

    def _write_streams(self, writes: protocol.Writes) -> None:
        now = writes.now
        if writes.streams:
            self._put("insert_streams", now, now, _encode(writes.streams))
        if writes.states:
            self._put("update_states", now, _encode(writes.states), len(writes.states))
        if writes.events:
            self._put("insert_events", now, _encode(writes.events))
        if writes.commands:
            self._put("insert_commands", now, _encode(writes.commands))

    def _write_outbox(self, writes: protocol.Writes) -> None:
        if writes.settled:
            self._put("settle_effects", _encode(writes.settled), len(writes.settled))
        if writes.effects:
            self._put("insert_effects", writes.now, _encode(writes.effects))
        if writes.postponed:
            self._put("postpone_effects", _encode(writes.postponed))
        if any(effect.owner is None for effect in writes.effects):
            self._ask("notify", channel=protocol.WORK_CHANNEL)

    def _write_timers(self, writes: protocol.Writes) -> None:
        # Fired before set: a machine that sets the timer that woke it must keep the new one.
        if writes.fired:
            self._put("fire_timers", _encode(writes.fired), len(writes.fired))
        if writes.cancelled:
            pairs = [{"stream": stream, "name": name} for stream, name in writes.cancelled]
            self._put("cancel_timers", _encode(pairs))
        if writes.timers:
            self._put("set_timers", _encode(writes.timers))
        if writes.ended:
            self._put("end_timers", writes.ended)

    def _put(self, query: str, *values: Any) -> None:
        # Text, not bytes: the server takes JSON as text.
        texts = [value.decode() if isinstance(value, bytes) else value for value in values]
        self._connection.execute(_QUERIES[query], texts)

    def _ask(self, query: str, **values: Any) -> psycopg.Cursor[Any]:
        return self._connection.execute(_QUERIES[query], values)

    def _ask_held(self, wanted: protocol.Wanted) -> tuple[psycopg.Cursor[Any], psycopg.Cursor[Any]]:
        settles = _encode(wanted.settles).decode()
        fires = _encode(wanted.fires).decode()
        return (
            self._ask("held_effects", keys=settles),
            self._ask("held_timers", keys=fires),
        )


_OVER = (pq.TransactionStatus.IDLE, pq.TransactionStatus.UNKNOWN)


def _held(
    effects: psycopg.Cursor[Any], timers: psycopg.Cursor[Any]
) -> frozenset[messages.Hold | messages.TimerKey]:
    return frozenset(
        [messages.Hold(*row) for row in effects.fetchall()]
        + [messages.TimerKey(*row) for row in timers.fetchall()]
    )


def _applied(connection: psycopg.Connection) -> list[str]:
    return [row[0] for row in connection.execute(_QUERIES["applied_migrations"])]


def _adopt_restored(connection: psycopg.Connection) -> None:
    """A dump restored into a younger cluster: its transaction numbers lie in our future."""
    if connection.execute(_QUERIES["restored_events"]).fetchone() is None:
        return
    for query in ("renumber_events", "restart_projections", "clear_all_projected"):
        connection.execute(_QUERIES[query])


def _where(url: str) -> str:
    """The server's address without user or password."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "a malformed URL"
    return f"{parts.get('host', 'local socket')}/{parts.get('dbname', '')}"


@contextlib.contextmanager
def _translate() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.DivisionByZero as error:
        # The queries divide by zero where fewer rows were touched than decided upon.
        raise protocol.Lost("a row was not as it was read") from error
    except _LOST as error:
        raise protocol.Lost(str(error)) from error
    except psycopg.DataError as error:
        raise errors.Rejected(
            f"the database cannot store this: {str(error).strip()}",
            hint="check the text's characters",
        ) from error
    except psycopg.errors.UndefinedTable as error:
        raise errors.Unavailable(
            "the database has no fairlead tables", hint="run fairlead store migrate"
        ) from error
    except psycopg.Error as error:
        raise errors.Unavailable(
            f"the database did not answer: {str(error).strip()}",
            hint="it is tried again; check the server if this goes on",
        ) from error
