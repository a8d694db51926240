"""The shared store: PostgreSQL, for many workers on many machines.

A batch costs two round trips: everything it must know, then everything it decided together
with the commit, each sent as one pipeline. Rows travel as one JSON text a table, which
costs the client least. The first try takes no locks and checks versions; a batch that lost
a race locks its streams, always in the order of their numbers.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec
import psycopg
from psycopg import pq

from fairlead import errors
from fairlead.engine import clock, messages
from fairlead.engine.store import epochs, migrations, postgres_connection, protocol, queries

Key = TypeVar("Key")
Row = TypeVar("Row")

_QUERIES = queries.load("postgres")
_BLOCK = 1000
_STATE = protocol.StreamRow._fields.index("state")
_MIGRATION_LOCK = 7_246_019
_LOST = (
    psycopg.errors.IntegrityError,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
# A batch names every row by its key. So its statements are planned once a session, and never
# as a scan or a hash of a table: a plan made while it was small would stay when it is large,
# and dead rows of the outbox make even a small one slow to scan. Measured in two
# rounds on a busy machine: 24 to 28 us of the server's time a transition, 35 to 41 before.
_BY_KEY = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
# A row that somebody else locked must not hold up all the others. Longer than the limit of
# silence, which takes their locks from silent clients of our own.
_LIMIT_WAITING = {"lock_timeout": "7s"}
# Sizes come first: octet_length reads no value that lies outside of its row, so of a list of
# large rows only those leave the server that the page has room for.
_PAGE = """
    SELECT * FROM (
        SELECT q.*, count(*) OVER () AS total, coalesce(sum(octet_length(q.data)) OVER (
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
        FROM ({}) AS q) AS sized
    WHERE before <= %(most_bytes)s
"""
# How long a pooler may take to hand a notice on before it is known to hand on none.
ECHO_SECONDS = 5.0
_encode = msgspec.json.Encoder().encode


class PostgresStore:
    """A store in one database."""

    # Measured: a second writer gains nothing, for Python decides one batch at a time, and
    # two of them race each other on parents that many children report to.
    writers = 1

    def __init__(self, url: str, ordered: Sequence[str] = ()) -> None:
        self._url = url
        self._ordered = list(ordered)

    def open(self, deadline: float | None = None) -> "PostgresSession":
        connection = postgres_connection.connect(self._url)
        settings = dict(_LIMIT_WAITING)
        connection.patience = postgres_connection.SILENCE_SECONDS
        if deadline is not None:
            # A call with a deadline must not outlive it in the server, nor wait for one that hangs.
            settings["statement_timeout"] = f"{deadline * 1000:.0f}"
            connection.patience = 2 * deadline
        try:
            with _translate():
                connection.set(settings)
        except BaseException:
            connection.close()
            raise
        return PostgresSession(connection, self._ordered)

    def migrate(self) -> list[str]:
        with self._asking() as connection, connection.transaction():
            # Longer than for a batch: a machine that stands still for seconds breaks nothing off.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '60s'")
            # Two programs that start together must not both create the tables.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)")
            todo = migrations.outstanding(migrations.load("postgres"), _applied(connection))
            for migration in todo:
                for statement in migration.statements():
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations (name) VALUES (%s)", [migration.name])
                if goes_with := migration.compatible_with:
                    connection.execute(_QUERIES["mark_migration"], [goes_with, migration.name])
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
        return clock.from_millis(row[0])

    def listen(self, channel: str) -> "PostgresListener | None":
        """None behind a pooler that hands no notices on: then polling has to do."""
        connection = postgres_connection.connect(self._url)
        name = psycopg.sql.Identifier(channel)
        heard = False
        try:
            with _translate():
                connection.execute(psycopg.sql.SQL("LISTEN {}").format(name))
                heard = not connection.pooled or self._is_heard(connection, channel)
                if not heard:
                    # It may reach another session than the first did; then nobody minds it.
                    connection.execute(psycopg.sql.SQL("UNLISTEN {}").format(name))
        finally:
            if not heard:
                connection.close()
        return PostgresListener(connection) if heard else None

    def _is_heard(self, connection: psycopg.Connection, channel: str) -> bool:
        # From another connection: in the session that happens to be ours now, an echo of our
        # own would come back in any mode.
        with self._asking() as other:
            other.execute(_QUERIES["notify"], {"channel": channel})
            return any(True for _ in connection.notifies(timeout=ECHO_SECONDS, stop_after=1))

    @contextlib.contextmanager
    def _asking(self) -> Iterator[psycopg.Connection]:
        """A connection for a few questions; where it breaks off, our own error says so."""
        with contextlib.closing(postgres_connection.connect(self._url)) as connection, _translate():
            yield connection


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

    def __init__(self, connection: postgres_connection.Connection, ordered: list[str]) -> None:
        self._connection = connection
        self._ordered = ordered
        self._numbers: list[int] = []
        self._history: _History | None = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator["PostgresTransaction"]:
        with _translate():
            if self._history is None:
                # Only where batches are written: lists and searches need the planner's freedom.
                self._connection.set(_BY_KEY)
                # A restore and a failover end every session, so one look for each is enough, but
                # for one whose pooler stays (see PostgresTransaction.load).
                place = self._place()
                self._history = _History(place, epochs.current(self, place))
            try:
                yield PostgresTransaction(
                    self._connection, self._ordered, self._numbers, self._history
                )
            except _Moved:
                self._history = None
                self._numbers.clear()
                raise
            finally:
                if self._connection.info.transaction_status not in _OVER:
                    # Not as a statement: psycopg would count it among those to prepare, and
                    # believe prepared what the lost pipeline never came to prepare.
                    self._connection.rollback()

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        with _translate():
            cursor = self._connection.execute(_QUERIES[query], values)
            return cursor.fetchall() if cursor.description else []

    def page(
        self, query: str, limit: int, most_bytes: int, **values: Any
    ) -> tuple[list[tuple[Any, ...]], bool]:
        bound = {**values, "limit": limit + 1, "most_bytes": most_bytes}
        with _translate():
            found = self._connection.execute(_PAGE.format(_QUERIES[query]), bound).fetchall()
        taken = [row[:-2] for row in found[:limit]]
        return taken, bool(taken) and found[0][-2] > len(taken)

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        counts: list[int] = []
        with _translate(), self._connection.transaction():
            self._connection.set_here()
            for query, values in steps:
                counts.append(self._connection.execute(_QUERIES[query], values).rowcount)
                if first_must_hit and counts[0] == 0:
                    raise protocol.Lost
        return counts

    def close(self) -> None:
        self._connection.close()

    def _place(self) -> str:
        """Another one after a promotion, a recovery to a point in time, or a new database."""
        try:
            ((place,),) = self._connection.execute(_QUERIES["where_we_are"]).fetchall()
        except (psycopg.ProgrammingError, psycopg.NotSupportedError):
            # Hosted databases may hide it.
            return epochs.UNKNOWN
        return str(place)


class _History(NamedTuple):
    """Where a session found its database, and in which epoch."""

    place: str
    epoch: str


class _Moved(protocol.Lost):
    """Behind the same session there is another server now."""


class PostgresTransaction:
    """One batch's hold on the database."""

    def __init__(
        self,
        connection: postgres_connection.Connection,
        ordered: list[str],
        numbers: list[int],
        history: _History,
    ) -> None:
        self._connection = connection
        self._ordered = ordered
        self._numbers = numbers
        self._place = history.place
        self.epoch = history.epoch
        self._locking = False
        self._homes: dict[int, tuple[str, str]] = {}
        """Queue and machine of each stream, as it was loaded."""

    def load(self, needed: protocol.Needed) -> protocol.Loaded:
        self._locking = needed.careful
        names = list(needed.streams)
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            self._connection.set_here()
            if needed.careful:
                # A statement of its own: one that waited for a lock would count the effects
                # of a lane as they were before it waited.
                self._ask("lock_streams", names=names)
            values = {"names": names, "ordered": self._ordered, "bytes": needed.bytes}
            streams = self._ask("load_streams", **values)
            # After the lock, so that it sees what the one before us committed.
            commands = self._ask("load_commands", ids=list(needed.commands))
            # A pooler in transaction mode keeps its clients through a failover, so each batch
            # looks where it is; other connections would have ended.
            pooled = self._connection.pooled and self._place != epochs.UNKNOWN
            place = self._ask("where_we_are") if pooled else None
        if place is not None and place.fetchone() != (self._place,):
            raise _Moved("another server answers now")
        # Not in the pipeline: after one the server does not count our silence (LIMIT_SILENCE),
        # and from here on we hold locks.
        held = self._ask_held(needed) if needed.careful else None
        rows = streams.fetchall()
        return protocol.Loaded(
            self._know([protocol.StreamRow(*row) for row in rows if row[_STATE] is not None]),
            [protocol.CommandRow(*row) for row in commands.fetchall()],
            _held(*held) if held else None,
            frozenset([row[1] for row in rows if row[_STATE] is None]),
        )

    def more(self, streams: Sequence[str]) -> Sequence[protocol.StreamRow]:
        if self._locking:
            # Waiting here, with other streams locked, could close a circle of waiting batches.
            try:
                self._ask("lock_streams_now", names=list(streams))
            except psycopg.errors.LockNotAvailable as error:
                raise protocol.Lost(str(error)) from error
        values = {"names": list(streams), "ordered": self._ordered, "bytes": protocol.UNBOUNDED}
        cursor = self._ask("load_streams", **values)
        return self._know([protocol.StreamRow(*row) for row in cursor.fetchall()])

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
            self._homes.update({new.id: (new.queue, new.machine) for new in writes.streams})
        # One that was moved after it was loaded is not as it was read: its effects would go to
        # the queue that it has left.
        queues = [self._home(state.id)[0] for state in writes.states]
        for queue, states in _parted(queues, writes.states):
            self._put("update_states", now, _encode(states), queue, len(states))
        if writes.events:
            # Whoever locks has drawn its transaction's number with the first stream, and a
            # younger one may have written into the next stream before that was locked too.
            insert = "insert_events_in_turn" if self._locking else "insert_events"
            self._put(insert, now, _encode(writes.events))
        if writes.commands:
            self._put("insert_commands", now, _encode(writes.commands))
        if writes.attributes:
            rows = _encode(writes.attributes)
            self._put("put_attributes", rows)
            self._put("drop_attributes", rows)

    def _write_outbox(self, writes: protocol.Writes) -> None:
        if writes.settled:
            self._put("settle_effects", _encode(writes.settled), len(writes.settled))
        if writes.withdrawn:
            self._put("withdraw_effects", _encode(writes.withdrawn))
        homes = [self._home(effect.stream) for effect in writes.effects]
        for home, effects in _parted(homes, writes.effects):
            self._put("insert_effects", writes.now, self.epoch, *home, _encode(effects))
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

    def _know(self, rows: Sequence[protocol.StreamRow]) -> Sequence[protocol.StreamRow]:
        self._homes.update({row.id: (row.queue, row.name.partition("/")[0]) for row in rows})
        return rows

    def _home(self, stream: int) -> tuple[str, str]:
        if stream not in self._homes:
            raise protocol.Lost(f"not loaded: stream {stream}")
        return self._homes[stream]

    def _put(self, query: str, *values: Any) -> None:
        # Text, not bytes: the server takes JSON as text.
        texts = [value.decode() if isinstance(value, bytes) else value for value in values]
        self._connection.execute(_QUERIES[query], texts)

    def _ask(self, query: str, **values: Any) -> psycopg.Cursor[Any]:
        return self._connection.execute(_QUERIES[query], values)

    def _ask_held(self, needed: protocol.Needed) -> tuple[psycopg.Cursor[Any], psycopg.Cursor[Any]]:
        settles = _encode(needed.settles).decode()
        fires = _encode(needed.fires).decode()
        return (
            self._ask("held_effects", keys=settles),
            self._ask("held_timers", keys=fires),
        )


_OVER = (pq.TransactionStatus.IDLE, pq.TransactionStatus.UNKNOWN)


def _parted(keys: Sequence[Key], rows: Sequence[Row]) -> Iterable[tuple[Key, Sequence[Row]]]:
    """Rows by key: a statement for each costs less than the key in each row, or a join.

    Nearly always all of a batch have the same.
    """
    if len(set(keys)) == 1:
        return ((keys[0], rows),)
    parted: dict[Key, list[Row]] = {}
    for key, row in zip(keys, rows, strict=True):
        parted.setdefault(key, []).append(row)
    return parted.items()


def _held(
    effects: psycopg.Cursor[Any], timers: psycopg.Cursor[Any]
) -> frozenset[messages.Hold | messages.TimerKey]:
    return frozenset(
        [messages.Hold(*row) for row in effects.fetchall()]
        + [messages.TimerKey(*row) for row in timers.fetchall()]
    )


def _applied(connection: psycopg.Connection) -> list[tuple[str, str | None]]:
    return [
        migrations.as_applied(row) for row in connection.execute(_QUERIES["applied_migrations"])
    ]


def _adopt_restored(connection: psycopg.Connection) -> None:
    """A dump restored into a younger cluster: its transaction numbers lie in our future."""
    if connection.execute(_QUERIES["restored_events"]).fetchone() is None:
        return
    for query in ("renumber_events", "restart_projections", "clear_all_projected"):
        connection.execute(_QUERIES[query])


@contextlib.contextmanager
def _translate() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.DivisionByZero as error:
        # The queries divide by zero where fewer rows were touched than decided upon.
        raise protocol.Lost("a row was not as it was read") from error
    except psycopg.errors.LockNotAvailable as error:
        raise protocol.Blocked(str(error)) from error
    except _LOST as error:
        raise protocol.Lost(str(error)) from error
    except psycopg.Error as error:
        raise _sorted(error) from error
    except UnicodeEncodeError as error:
        raise errors.Rejected(
            f"the database cannot store this: {error}", hint="check the text's characters"
        ) from error


# What may pass later by itself: connections, shortage of resources, cancelled statements and
# shutdowns, trouble of the server's disk; a server that takes no writes, or ended our session
# because it was silent; a commit of which it cannot say whether it happened; one that only
# follows, which cannot say either where its own log stands.
_PASSING_CLASSES = ("08", "53", "57", "58")
_PASSING = frozenset({"25006", "25P03", "25P04", "40003", "55000"})
_STORAGE = "md.c"
"""Where PostgreSQL writes files of tables: unlike a full disk, a quota has no code of its own."""


def _sorted(error: psycopg.Error) -> errors.FairleadError:
    """By what happens next: all that is not about the connection is the answer to one request."""
    text, state = str(error).strip(), error.sqlstate or ""
    if isinstance(error, psycopg.errors.UndefinedTable):
        return errors.Unavailable(
            "the database has no fairlead tables", hint="run fairlead store migrate"
        )
    if isinstance(error, psycopg.DataError):
        return errors.Rejected(
            f"the database cannot store this: {text}", hint="check the text's characters"
        )
    if isinstance(error, psycopg.errors.ProgramLimitExceeded):
        return errors.Rejected(f"the database cannot store this: {text}", hint="make it shorter")
    broken = not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    passing = state.startswith(_PASSING_CLASSES) or state in _PASSING
    if broken or passing or error.diag.source_file == _STORAGE:
        return errors.Unavailable(
            f"the database did not answer: {text}",
            hint="it is tried again; check the server if this goes on",
        )
    return errors.Corrupt(
        f"the database refuses a statement of ours: {text}",
        hint="check the user's rights and that the schema is fairlead's own",
    )
