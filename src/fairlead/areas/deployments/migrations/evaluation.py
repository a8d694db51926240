"""What pending migrations ask of the version that runs: they are run on a scratch copy and watched.

The target is read (schema, sizes, versions) and never written.
"""

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact, worst
from fairlead.areas.deployments.migrations import (
    classification,
    files,
    observation,
    schema_dump,
    scratch,
    units,
    version_table,
)
from fairlead.areas.deployments.migrations.session import Refused, Session
from fairlead.areas.deployments.migrations.statements import MOST_TOKENS, Statement

_WATCH_SECONDS = 0.2
_INDEXES = ("CREATE", "DROP", "REINDEX", "ALTER")


@dataclass(frozen=True, slots=True)
class Request:
    """What is evaluated, and where."""

    target_url: str
    migrations: Sequence[files.Migration]
    scratch_url: str = ""
    """Of another server of the same major version; empty: the target's own."""

    pg_dump: str = ""
    limits: scratch.Limits = field(default_factory=scratch.Limits)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The class of all of it, and each statement with its own."""

    impact: Impact
    statements: tuple[classification.Judged, ...] = ()
    reasons: tuple[str, ...] = ()
    """What the scratch copy lacks: nobody saw what the statements would do there."""


def evaluate(request: Request) -> Evaluation:
    """Never changes the target; Unavailable or Rejected where no scratch copy can be made."""
    with scratch.admin(request.target_url) as target, _reading(target):
        found = _pending(target, request.migrations)
        if not found:
            return Evaluation(Impact.NOP)
        version, needed = scratch.major(target), scratch.extensions(target)
        sizes = _sizes(target)
    dumped = schema_dump.dump(
        schema_dump.find(version, request.pg_dump),
        request.target_url,
        request.limits.overall_seconds,
    )
    place = request.scratch_url or request.target_url
    _same_major(place, version)
    with scratch.copy(place, dumped, needed, request.limits) as made:
        judged = tuple(_on_copy(place, made, (found, sizes), request.limits))
    # Not only where a statement names it: CASCADE, blocks and triggers reach what they do not name,
    # and IF EXISTS passes over it.
    least = Impact.DOWNTIME if made.left_out else Impact.PARALLEL
    reasons = tuple(f"cannot be evaluated without {each}" for each in made.left_out)
    return Evaluation(worst([least, *(each.impact for each in judged)]), judged, reasons)


@contextlib.contextmanager
def _reading(target: scratch.Admin) -> Iterator[None]:
    """For this transaction alone: behind a pooler the session is somebody else's next."""
    with target.transaction():
        target.execute("SET TRANSACTION READ ONLY")
        # The database's owner chooses its search path, and must not choose our operators.
        target.execute("SET LOCAL search_path = pg_catalog")
        target.execute("SET LOCAL lock_timeout = '5s'")
        target.execute("SET LOCAL statement_timeout = '60s'")
        yield


def _pending(target: scratch.Admin, wanted: Sequence[files.Migration]) -> list[units.Unit]:
    """What the runner would run, from where an earlier run was cut."""
    begun = version_table.applied(target)
    found: list[units.Unit] = []
    for each in version_table.pending(target, wanted):
        known = begun.get(each.version)
        found += each.units()[known.done if known else 0 :]
    return found


def _same_major(url: str, wanted: int) -> None:
    with scratch.admin(url) as server:
        if (found := scratch.major(server)) != wanted:
            raise errors.Rejected(
                f"the target is PostgreSQL {wanted}, the scratch server is: {found}",
                hint="locks differ between versions: name a server of the same one",
            )


def _on_copy(
    url: str,
    made: scratch.Scratch,
    what: tuple[Sequence[units.Unit], dict[tuple[str, str], int]],
    limits: scratch.Limits,
) -> Iterator[classification.Judged]:
    found, sizes = what
    with made.connect() as connection, _watched(url, connection, limits) as watch:
        session = Session(connection)
        session.open()
        target = _target(session.catalogues["pg_class"], sizes)
        failed = ""
        for unit in found:
            run = _Run(session, target, unit, url)
            for judged in run.judged(failed):
                failed = failed or (run.failed and (watch.reason or run.failed))
                yield _retold(judged, watch.reason)


def _retold(judged: classification.Judged, reason: str) -> classification.Judged:
    """The reason why the watch ended it, instead of that the connection is gone."""
    if not reason or not judged.reasons or not judged.reasons[0].startswith("cannot be evaluated"):
        return judged
    return classification.Judged(
        judged.sql, judged.impact, reasons=(f"cannot be evaluated: {reason}",)
    )


@dataclass(slots=True)
class _Run:
    """One unit on the copy."""

    session: Session
    target: classification.Target
    unit: units.Unit
    url: str
    failed: str = ""

    def judged(self, failed: str) -> Iterator[classification.Judged]:
        transaction = classification.Transaction(self.target, alone=not self.unit.transactional)
        self.failed = failed and "an earlier statement failed"
        if not self.failed and self.unit.transactional:
            self._try(self.session.begin)
        for statement in self.unit.statements:
            if self.failed:
                yield classification.unevaluated(statement, self.failed)
                continue
            try:
                yield transaction.judge(statement, self._run(statement))
            except Refused as error:
                yield classification.unevaluated(statement, str(error))
                self.failed = "an earlier statement failed"
        if not self.failed and self.unit.transactional:
            self._try(self.session.commit)
        elif self.failed:
            with contextlib.suppress(psycopg.Error):
                self.session.rollback()

    def _try(self, step: Any) -> None:
        try:
            step()
        except Refused as error:
            self.failed = str(error)

    def _run(self, statement: Statement) -> observation.Observation:
        if not self.unit.transactional:
            return _with_index_locks(statement, self.session.run_alone(statement), self.session)
        role = _new_owner(statement)
        if role is None:
            return self.session.run(statement)
        # Nothing but this statement, which runs no code of anybody, has the right meanwhile; its
        # effect is undone, or the copy would no longer be its owner's.
        with _member(self.url, str(self.session.connection.info.user), role):
            return self.session.run_and_undo(statement, role)


def _with_index_locks(
    statement: Statement, seen: observation.Observation, session: Session
) -> observation.Observation:
    """Of a statement outside of a transaction no lock is left to see; these are documented."""
    if statement.tokens[0] not in _INDEXES:
        return seen
    tables = {each.relation for each in seen.changes if each.catalogue == "pg_index"}
    named = {one.name: one for one in session.catalogues["pg_index"].values()}
    tables |= {named[each.lower()].relation for each in statement.tokens if each.lower() in named}
    tables |= {
        one.oid
        for one in session.catalogues["pg_class"].values()
        if statement.starts("REINDEX", "TABLE") and one.name.upper() in statement.tokens
    }
    scanned = tables if statement.tokens[0] in ("CREATE", "REINDEX") else set()
    locks = dict.fromkeys(tables, "ShareUpdateExclusiveLock")
    return observation.Observation(locks, seen.rewritten, frozenset(scanned), changes=seen.changes)


def _new_owner(statement: Statement) -> str | None:
    """The role of a plain `ALTER kind name OWNER TO role`; None for any other statement.

    Nothing else may stand in it: `ALTER TABLE t ADD x int DEFAULT f(), OWNER TO r` would call f
    with the rights of r.
    """
    found = _OWNER.fullmatch(" ".join(statement.tokens))
    if found is None or len(statement.tokens) >= MOST_TOKENS:
        return None
    word = found["role"]
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()


@contextlib.contextmanager
def _member(url: str, member: str, role: str) -> Iterator[None]:
    if role in ("current_user", "session_user", "current_role"):
        yield
        return
    names = (sql.Identifier(role), sql.Identifier(member))
    # Not in the scratch database: its owner could have its code run by whoever enters there.
    with scratch.admin(url) as server:
        try:
            server.execute(sql.SQL("GRANT {} TO {}").format(*names))
        except psycopg.Error as error:
            raise Refused(str(error.diag.message_primary)) from error
        try:
            yield
        finally:
            server.execute(sql.SQL("REVOKE {} FROM {}").format(*names))


_WORD = r'(?:[A-Z_][A-Z0-9_$]*|"(?:[^"]|"")*")'
_OWNER = re.compile(
    r"ALTER (?:TABLE|VIEW|MATERIALIZED VIEW|SEQUENCE|TYPE|DOMAIN)(?: IF EXISTS)?(?: ONLY)?"
    rf" {_WORD}(?: \. {_WORD})* OWNER TO (?P<role>{_WORD})"
)
_SIZES = """
SELECT n.nspname, c.relname, c.relkind, c.reltuples::bigint, pg_catalog.pg_relation_size(c.oid),
  ARRAY(SELECT relid::oid::bigint FROM pg_catalog.pg_partition_tree(c.oid)), c.oid::bigint
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm', 'p') AND n.nspname NOT LIKE 'pg\\_%'
  AND n.nspname <> 'information_schema'
"""


def _sizes(target: scratch.Admin) -> dict[tuple[str, str], int]:
    """How many rows each table has, about; a table without a page has none for certain."""
    rows = target.execute(_SIZES).fetchall()
    leaves = {oid: (size, tuples) for _, _, _, tuples, size, _, oid in rows}
    found = {}
    for schema, name, kind, tuples, size, tree, _ in rows:
        parts = [leaves.get(one, (0, 0)) for one in tree] if kind == "p" else [(size, tuples)]
        if any(bytes_ for bytes_, _ in parts):
            counts = [count for bytes_, count in parts if bytes_]
            found[schema, name] = -1 if min(counts) < 0 else sum(counts)
    return found


def _target(
    relations: observation.Catalogue, sizes: dict[tuple[str, str], int]
) -> classification.Target:
    tables = [one for one in relations.values() if one.kind in observation.TABLES]
    rows = {one.oid: sizes.get((one.schema, one.name), 0) for one in tables}
    return classification.Target(
        {one.oid: one.shown for one in tables}, {oid: count for oid, count in rows.items() if count}
    )


@dataclass(slots=True)
class _Watch:
    """Ends the session when its time or room is up; the SQL can raise its own limits, not these."""

    reason: str = ""
    stop: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def _watched(url: str, connection: scratch.Admin, limits: scratch.Limits) -> Iterator[_Watch]:
    watch, pid = _Watch(), connection.info.backend_pid
    database = connection.info.dbname

    def look() -> None:
        ends = time.monotonic() + limits.overall_seconds
        with scratch.admin(url) as server:
            while not watch.stop.wait(_WATCH_SECONDS):
                ((size,),) = server.execute("SELECT pg_database_size(%s)", (database,)).fetchall()
                if size > limits.most_bytes:
                    watch.reason = f"it takes more than {limits.most_bytes // 2**20} MiB"
                elif time.monotonic() > ends:
                    watch.reason = f"it takes longer than {limits.overall_seconds:g} s"
                if watch.reason:
                    server.execute("SELECT pg_terminate_backend(%s)", (pid,))
                    return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.stop.set()
        thread.join()
