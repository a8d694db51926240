"""A session on the scratch copy that runs statements and tells what each of them did."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import psycopg
from psycopg import pq, sql

from fairlead.areas.deployments.migrations import observation, plans
from fairlead.areas.deployments.migrations.statements import Statement

_IN_TRANSACTION = pq.TransactionStatus.INTRANS
_CHANGES_ROWS = ("UPDATE", "DELETE", "MERGE", "WITH")
_CATALOGUE = "SELECT fairlead_scratch.catalogue($1, $2::text::bool)"
_OWN_SCHEMAS = (
    "SELECT nspname::text FROM pg_catalog.pg_namespace"
    " WHERE pg_catalog.pg_has_role(nspowner, 'USAGE'::text)"
)
_SAVEPOINT, _BACK = "SAVEPOINT fairlead", "ROLLBACK TO SAVEPOINT fairlead"


class Refused(Exception):
    """PostgreSQL did not do a statement, and says why."""


@dataclass(slots=True)
class Session:
    """One connection of the restricted role, and the catalogues as they were last seen."""

    connection: psycopg.Connection[tuple[Any, ...]]
    catalogues: dict[str, observation.Catalogue] = field(default_factory=dict)
    _last: observation.Activity = field(default_factory=observation.Activity)
    _before: dict[int, tuple[int, int]] = field(default_factory=dict)
    """What the counters of reads said when the transaction began."""

    def open(self) -> None:
        """Read all catalogues; later only those that were written."""
        for name in observation.CATALOGUES:
            self.catalogues[name] = self._catalogue(name)

    def begin(self) -> None:
        self._send("BEGIN")
        self._last = self._activity(everywhere=True)
        self._before = _reads(self._last)

    def commit(self) -> None:
        self._send("COMMIT")
        self._last = observation.Activity()

    def rollback(self) -> None:
        self.connection.rollback()

    def run(self, statement: Statement) -> observation.Observation:
        """One statement within the transaction that was begun."""
        if statement.starts("COPY") and {"STDIN", "STDOUT"} & {*statement.tokens}:
            raise Refused("its data would come from the client")
        unbounded = self._unbounded(statement)
        if statement.tokens[0] in ("INSERT", *_CHANGES_ROWS):
            self._send(_SAVEPOINT)
            try:
                self._send(statement.sql)
            except Refused as error:
                return self._without_rows(error, unbounded)
            self._send("RELEASE SAVEPOINT fairlead")
        else:
            self._send(statement.sql)
        if self.connection.info.transaction_status is not _IN_TRANSACTION:
            raise Refused("it ends the transaction by itself")
        return self._observe(unbounded)

    def _without_rows(self, error: Refused, unbounded: frozenset[int]) -> observation.Observation:
        """What refers to rows of the target, which a copy without rows cannot have."""
        cause = error.__cause__
        if not isinstance(cause, psycopg.errors.ForeignKeyViolation):
            raise error
        self._send(_BACK)
        named = (cause.diag.schema_name, cause.diag.table_name)
        relations = self.catalogues["pg_class"].values()
        changed = {one.oid for one in relations if (one.schema, one.name) == named}
        locks = dict.fromkeys(changed, "RowExclusiveLock")
        return observation.Observation(locks, unbounded=unbounded)

    def run_alone(self, statement: Statement) -> observation.Observation:
        """One statement that PostgreSQL does not allow in a transaction."""
        self._send(statement.sql)
        before = dict(self.catalogues)
        self.open()
        return observation.Observation(
            changes=_changed(before, self.catalogues),
            rewritten=_rewritten(before["pg_class"], self.catalogues["pg_class"]),
        )

    def run_and_undo(self, statement: Statement, owner: str) -> observation.Observation:
        """A change of owner, which would be in the way of the statements after it."""
        before = dict(self.catalogues)
        self._send(_SAVEPOINT)
        # Who owns something must be able to make it in its schema.
        for (schema,) in self._send(_OWN_SCHEMAS).fetchall():
            grant = sql.SQL("GRANT CREATE ON SCHEMA {} TO {}")
            names = (sql.Identifier(schema), sql.Identifier(owner))
            self._send(grant.format(*names).as_string(self.connection))
        for name in ("pg_namespace", "pg_class"):
            self.catalogues[name] = self._catalogue(name)
        self._last = self._activity()
        observed = self.run(statement)
        self._send(_BACK)
        self.catalogues = before
        self._last = self._activity()
        return observed

    def _observe(self, unbounded: frozenset[int]) -> observation.Observation:
        activity, last = self._activity(), self._last
        self._last = activity
        before = dict(self.catalogues)
        for name in observation.CATALOGUES:
            if activity.writes.get(name, 0) != last.writes.get(name, 0):
                self.catalogues[name] = self._catalogue(name, before[name])
        changed = _changed(before, self.catalogues)
        earlier = self._before | _reads(last)
        scanned = {one for one, scans, _ in activity.reads if scans > earlier.get(one, (0, 0))[0]}
        read = {one for one, _, index in activity.reads if index > earlier.get(one, (0, 0))[1]}
        return observation.Observation(
            _own_locks(last, activity, {each.relation for each in changed}),
            _rewritten(before["pg_class"], self.catalogues["pg_class"]),
            frozenset(scanned),
            frozenset(scanned | read),
            changed,
            unbounded,
        )

    def _unbounded(self, statement: Statement) -> frozenset[int]:
        if statement.tokens[0] not in _CHANGES_ROWS:
            return frozenset()
        # The scratch copy is empty, so any plan looks cheap there: asked is whether there is an
        # index that bounds the rows, not whether today's planner would take it.
        set_ = "SELECT pg_catalog.set_config('enable_seqscan', 'off', true)"
        before = self._value("SELECT pg_catalog.current_setting('enable_seqscan')")
        self._send(set_)
        plan = self._value(f"EXPLAIN (FORMAT JSON, COSTS OFF, VERBOSE) {statement.sql}")
        self._send("SELECT pg_catalog.set_config('enable_seqscan', $1, true)", before)
        names = {(one.schema, one.name): one.oid for one in self.catalogues["pg_class"].values()}
        return frozenset(names[each] for each in plans.unbounded(plan) if each in names)

    def _activity(self, *, everywhere: bool = False) -> observation.Activity:
        which = "true" if everywhere else "false"
        text = self._value("SELECT fairlead_scratch.activity($1::text::bool)", which)
        return msgspec.json.decode(text, type=observation.Activity)

    def _catalogue(self, name: str, before: observation.Catalogue | None = None) -> Any:
        for fresh in (True, False) if before is not None else (False,):
            text = self._value(_CATALOGUE, name, "true" if fresh else "false")
            found = observation.decode(name, text, before if fresh else None)
            if found is not None:
                return found
        raise Refused(f"the catalogue {name} changes while it is read")

    def _value(self, text: str, *values: str) -> Any:
        cursor = self._send(text, *values)
        row = cursor.fetchone()
        assert row is not None
        return row[0]

    def _send(self, text: str, *values: str) -> psycopg.RawCursor[tuple[Any, ...]]:
        """By the extended protocol, which takes one statement and no second one behind it."""
        cursor = psycopg.RawCursor(self.connection)
        try:
            cursor.execute(text.encode(), values, binary=True)
        except psycopg.Error as error:
            raise Refused(_said(error)) from error
        return cursor


def _reads(activity: observation.Activity) -> dict[int, tuple[int, int]]:
    return {relation: (scans, index) for relation, scans, index in activity.reads}


def _said(error: psycopg.Error) -> str:
    return str(error.diag.message_primary or str(error).partition("\n")[0] or type(error).__name__)


def _own_locks(
    last: observation.Activity, now: observation.Activity, touched: set[int]
) -> dict[int, str]:
    """Those that are new, and those of before on what it altered: it would have taken them too."""
    held = {*map(tuple, last.locks)}
    own = [(one, mode) for one, mode in now.locks if (one, mode) not in held or one in touched]
    return observation.by_relation(own)


def _changed(
    before: dict[str, observation.Catalogue], after: dict[str, observation.Catalogue]
) -> tuple[observation.Change, ...]:
    return tuple(
        change
        for name in observation.CATALOGUES
        if before[name] is not after[name]
        for change in observation.changes(name, before[name], after[name])
    )


def _rewritten(before: observation.Catalogue, after: observation.Catalogue) -> frozenset[int]:
    return frozenset(
        one.oid
        for key, one in before.items()
        if one.kind in observation.TABLES and key in after and after[key].file != one.file
    )
