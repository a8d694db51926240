"""What locks cannot show: things that running code may use and that are gone or mean otherwise.

Read from catalogue rows before and after, so that it is seen however the SQL is written. Pure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.migrations.observation import TABLES, Change

_EXPAND = "first let the running version do without it, and remove it in a later release"
_ALIAS = "add the new name beside the old one, move the code over, and remove the old one later"
_INDEX = "CREATE INDEX CONCURRENTLY, in a migration of its own"
_VALIDATE = "add it NOT VALID, then VALIDATE CONSTRAINT in a later migration"
_UNIQUE = "CREATE UNIQUE INDEX CONCURRENTLY, then ADD CONSTRAINT … USING INDEX"
_COPY = "add a new column, fill it in batches, and let the code move over"
_ASSUMED = "assumes that the running version never writes rows that violate"
_KEYS = ("p", "u", "x")
_NAMES: Mapping[str, str] = {
    "r": "table",
    "p": "table",
    "m": "materialized view",
    "v": "view",
    "f": "foreign table",
    "S": "sequence",
    "c": "type",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a class, and perhaps a safer form."""

    impact: Impact
    reason: str
    suggestion: str = ""


Names = Mapping[int, str]


def findings(changes: Sequence[Change], names: Names) -> Iterator[Finding]:
    """What each change asks; those of tables that the target does not have are additions."""
    gone = {each.before.oid for each in changes if each.catalogue == "pg_class" and _removed(each)}
    for each in changes:
        if each.relation in gone and each.catalogue != "pg_class":
            continue  # the table is gone, which is told already
        if each.catalogue == "pg_index" and _made_anew(each, changes):
            continue
        yield from _RULES[each.catalogue](each, names)


def checks_key(change: Change) -> bool:
    """A foreign key that is made valid at once."""
    return change.before is None and change.after.type == "f" and change.after.valid


def attached(changes: Sequence[Change]) -> frozenset[int]:
    """Tables that became partitions."""
    return frozenset(
        each.after.oid
        for each in changes
        if each.catalogue == "pg_class"
        and each.before
        and each.after
        and each.after.is_partition > each.before.is_partition
    )


def safer(changes: Sequence[Change], *, rewrites: bool) -> str:
    """Another way to the same end, without the long lock."""
    added = {each.catalogue: each.after for each in changes if each.before is None}
    constraint = added.get("pg_constraint")
    if constraint is not None and constraint.type in _KEYS:
        return _UNIQUE
    if constraint is not None and constraint.type in ("f", "c") and not rewrites:
        return _VALIDATE
    if "pg_index" in added and not rewrites:
        return _INDEX
    if _columns(changes, lambda before, after: before and after and after.not_null):
        return "add CHECK (column IS NOT NULL) NOT VALID, validate it, then SET NOT NULL"
    if rewrites:
        return _rewrite(changes)
    return "do it where the table is empty, or while nothing runs"


def _rewrite(changes: Sequence[Change]) -> str:
    if _columns(changes, lambda before, after: not before and after):
        return "add the column without a default, fill it in batches, then set the default"
    if _columns(changes, lambda before, after: before and after and before.type != after.type):
        return _COPY
    return "do it where the table is empty, or while nothing runs"


def _columns(changes: Sequence[Change], holds: Callable[[Any, Any], Any]) -> bool:
    return any(
        each.catalogue == "pg_attribute" and holds(each.before, each.after) for each in changes
    )


def _made_anew(change: Change, changes: Sequence[Change]) -> bool:
    """An index that another one of its name stands for now, as REINDEX CONCURRENTLY leaves it."""
    return _removed(change) and any(
        each.catalogue == "pg_index" and each.after and each.after.name == change.before.name
        for each in changes
    )


def _removed(change: Change) -> bool:
    return change.before is not None and change.after is None


def _relation(change: Change, names: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    if before is None:
        if after.kind in _NAMES:
            yield Finding(Impact.BEFORE, f"adds {_NAMES[after.kind]} {after.shown}")
    elif before.kind in ("i", "I") or before.kind not in _NAMES:
        return
    elif after is None:
        if before.oid in names or before.kind not in TABLES:
            yield _gone(_NAMES[before.kind], before.shown)
    else:
        yield from _altered_relation(before, after, names)


def _altered_relation(before: Any, after: Any, names: Names) -> Iterator[Finding]:
    known = before.oid in names or before.kind not in TABLES
    if not known:
        return
    if before.shown != after.shown:
        yield Finding(
            Impact.DOWNTIME,
            f"renames {before.shown} to {after.shown}; running code may use the old name",
            _ALIAS,
        )
    if after.row_security and not before.row_security:
        yield _other_results(f"row level security on {after.shown}")
    if before.is_partition and not after.is_partition:
        yield Finding(
            Impact.DOWNTIME,
            f"rows of {after.shown} vanish from the table that it was a partition of",
            _EXPAND,
        )
    yield from _rights(before, after, after.shown)


def _column(change: Change, names: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    table = names.get(change.relation)
    if table is None:
        return
    if after is None:
        yield _gone("column", f"{table}.{before.name}")
    elif before is None:
        yield Finding(Impact.BEFORE, f"adds column {table}.{after.name}")
        if after.not_null and not after.filled:
            yield Finding(
                Impact.DOWNTIME,
                f"running code does not fill the new column {table}.{after.name}: its inserts fail",
                "give it a default, or let it be null until the new version runs",
            )
    else:
        yield from _altered_column(table, before, after)


def _altered_column(table: str, before: Any, after: Any) -> Iterator[Finding]:
    if before.name != after.name:
        yield Finding(
            Impact.DOWNTIME,
            f"renames column {table}.{before.name} to {after.name}; running code may use the old"
            " name",
            _ALIAS,
        )
    if before.type != after.type:
        said = f"column {table}.{after.name} is {after.type}, was {before.type}"
        yield Finding(Impact.BEFORE, said)
    if after.not_null and not before.not_null:
        yield Finding(Impact.BEFORE, f"{_ASSUMED} NOT NULL of {table}.{after.name}")
    if before.not_null and not after.not_null:
        said = f"{table}.{after.name} may be null: running code must be able to read that"
        yield Finding(Impact.BEFORE, said)


def _constraint(change: Change, names: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    entry = after if after is not None else before
    table = names.get(entry.relation)
    if table is None or entry.type == "n":
        return
    if before is None:
        yield Finding(Impact.BEFORE, f"{_ASSUMED} constraint {after.name} of {table}")
    elif after is None and before.type in _KEYS:
        yield Finding(
            Impact.DOWNTIME,
            f"drops key {before.name} of {table}; running code may rely on it (ON CONFLICT)",
            _EXPAND,
        )
    elif after is None:
        said = f"without constraint {before.name} {table} may hold rows that running code never saw"
        yield Finding(Impact.BEFORE, said)


def _index(change: Change, names: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    if after is None and before.relation in names:
        said = f"drops index {before.name} of {names[before.relation]}"
        if before.unique:
            yield Finding(Impact.DOWNTIME, f"{said}, which keeps rows unique", _EXPAND)
        else:
            yield Finding(Impact.BEFORE, f"{said}; queries of running code may need it")


def _trigger(change: Change, names: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    entry = after if after is not None else before
    table = names.get(entry.relation)
    if table is None:
        return
    if after is None:
        yield Finding(
            Impact.DOWNTIME,
            f"drops trigger {before.name} of {table}; running code may rely on what it does",
            _EXPAND,
        )
    else:
        yield Finding(Impact.BEFORE, f"trigger {entry.name} of {table} is new or switched")


def _policy(change: Change, names: Names) -> Iterator[Finding]:
    entry = change.after if change.after is not None else change.before
    if entry.relation in names:
        yield _other_results(f"policy {entry.name} of {names[entry.relation]}")


def _rule(change: Change, names: Names) -> Iterator[Finding]:
    entry = change.after if change.after is not None else change.before
    if entry.name == "_RETURN":
        if change.before is not None and change.after is not None:
            yield Finding(Impact.BEFORE, "readers of the view get its new definition at once")
    elif entry.relation in names:
        yield _other_results(f"rule {entry.name} of {names[entry.relation]}")


def _routine(change: Change, _: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    if before is None:
        yield Finding(Impact.BEFORE, f"adds function {after.name}")
    elif after is None or before.name != after.name:
        yield _gone("function", before.name)
    else:
        if before.essence != after.essence:
            said = f"running code gets the new body of function {after.name} at once"
            yield Finding(Impact.BEFORE, said)
        yield from _rights(before, after, after.name)


def _type(change: Change, _: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    if before is None:
        yield Finding(Impact.BEFORE, f"adds type {after.name}")
    elif after is None or before.name != after.name:
        yield _gone("type", before.name)


def _label(change: Change, _: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    if before is None:
        yield Finding(Impact.BEFORE, f"adds value {after.name} to {after.type}")
    elif after is not None and before.name != after.name:
        yield Finding(
            Impact.DOWNTIME,
            f"renames value {before.name} of {before.type}; running code may use the old one",
            "add the new value beside the old one, and move the code over",
        )


def _schema(change: Change, _: Names) -> Iterator[Finding]:
    before, after = change.before, change.after
    if before is None:
        yield Finding(Impact.BEFORE, f"adds schema {after.name}")
    elif after is None or before.name != after.name:
        yield _gone("schema", before.name)
    else:
        yield from _rights(before, after, after.name)


def _rights(before: Any, after: Any, name: str) -> Iterator[Finding]:
    lost = _granted(before.rights) - _granted(after.rights)
    if before.rights is not None and lost:
        who = ", ".join(sorted({role or "PUBLIC" for role, _ in lost}))
        yield Finding(
            Impact.DOWNTIME,
            f"takes rights on {name} from {who}; running code may need them",
            _EXPAND,
        )


def _granted(rights: Sequence[str] | None) -> set[tuple[str, str]]:
    """Each single right of each role, from items such as `shop=arwd/owner`."""
    found = set()
    for item in rights or ():
        role, _, rest = item.rpartition("=")
        found |= {(role, letter) for letter in rest.partition("/")[0] if letter != "*"}
    return found


def _gone(kind: str, name: str) -> Finding:
    reason = f"{kind} {name} is gone or has another name; running code may use it"
    return Finding(Impact.DOWNTIME, reason, _EXPAND)


def _other_results(what: str) -> Finding:
    return Finding(
        Impact.DOWNTIME,
        f"{what} changes which rows running code reads and writes",
        "let the running version work under it first, in a test environment",
    )


_RULES: Mapping[str, Callable[[Change, Names], Iterator[Finding]]] = {
    "pg_class": _relation,
    "pg_attribute": _column,
    "pg_constraint": _constraint,
    "pg_index": _index,
    "pg_trigger": _trigger,
    "pg_policy": _policy,
    "pg_rewrite": _rule,
    "pg_proc": _routine,
    "pg_type": _type,
    "pg_enum": _label,
    "pg_namespace": _schema,
}
