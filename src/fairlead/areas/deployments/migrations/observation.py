"""What one statement did, as PostgreSQL shows it: locks, reads, catalogue rows before and after.

Pure: `session` asks the scratch copy, `classification` judges what is held here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

Key = tuple[int, ...]

MODES = (
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
)
"""From the weakest to the strongest, as pg_locks spells them."""

_BLOCKS_WRITES = MODES.index("ShareLock")
TABLES = ("r", "p", "m", "f")
"""Kinds of relations that hold rows which running code reads and writes."""


class Relation(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_class."""

    oid: int
    schema: str
    name: str
    kind: str
    file: int
    row_security: bool
    is_partition: bool
    rights: tuple[str, ...] | None = None

    @property
    def shown(self) -> str:
        """As people write it: the schema that is there by default is left out."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"


class Column(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_attribute."""

    relation: int
    number: int
    name: str
    type: str
    not_null: bool
    filled: bool
    """Has a default, or is made by the server."""

    @property
    def oid(self) -> int:
        return self.number


class Constraint(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_constraint."""

    oid: int
    name: str
    type: str
    relation: int
    other: int
    valid: bool


class Index(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_index."""

    oid: int
    name: str
    relation: int
    unique: bool


class Attached(msgspec.Struct, frozen=True, array_like=True):
    """A trigger, a policy or a rule of a relation."""

    oid: int
    name: str
    relation: int
    essence: str


class Routine(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_proc."""

    oid: int
    name: str
    essence: str
    rights: tuple[str, ...] | None = None


class Type(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_type."""

    oid: int
    name: str
    kind: str


class Label(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_enum."""

    oid: int
    name: str
    type: str


class Schema(msgspec.Struct, frozen=True, array_like=True):
    """A row of pg_namespace."""

    oid: int
    name: str
    rights: tuple[str, ...] | None = None


Entry = Relation | Column | Constraint | Index | Attached | Routine | Type | Label | Schema

CATALOGUES: Mapping[str, type] = {
    "pg_class": Relation,
    "pg_attribute": Column,
    "pg_constraint": Constraint,
    "pg_index": Index,
    "pg_trigger": Attached,
    "pg_policy": Attached,
    "pg_rewrite": Attached,
    "pg_proc": Routine,
    "pg_type": Type,
    "pg_enum": Label,
    "pg_namespace": Schema,
}

Catalogue = Mapping[Key, Any]
Row = TypeVar("Row")


class Answer(msgspec.Struct, Generic[Row]):
    """Rows of a catalogue, and how many it has."""

    rows: list[Row]
    total: int


_ANSWERS: Mapping[str, Any] = {name: Answer[row] for name, row in CATALOGUES.items()}  # type: ignore[valid-type]  # made at run time


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of a catalogue that a statement added, removed or altered."""

    catalogue: str
    before: Any
    after: Any

    @property
    def relation(self) -> int:
        """The relation that it is about; 0 where there is none."""
        entry = self.after if self.after is not None else self.before
        if isinstance(entry, Relation):
            return entry.oid
        return int(getattr(entry, "relation", 0))


class Activity(msgspec.Struct, frozen=True):
    """What a session holds and has read since its transaction began."""

    locks: list[tuple[int, str]] = []
    reads: list[tuple[int, int, int]] = []
    """Relation, sequential scans, index scans."""

    writes: dict[str, int] = {}
    """How often each system catalogue was written."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One statement: what it took, read, rewrote and altered."""

    locks: Mapping[int, str] = field(default_factory=dict)
    """The strongest mode of each relation."""

    rewritten: frozenset[int] = frozenset()
    scanned: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    changes: tuple[Change, ...] = ()
    unbounded: frozenset[int] = frozenset()
    """Tables of which it changes rows that no index bounds."""


def decode(catalogue: str, text: str, before: Catalogue | None = None) -> Catalogue | None:
    """All rows, or those of before with the written ones; None where some of before are gone."""
    found = msgspec.json.decode(text, type=_ANSWERS[catalogue])
    rows = {_key(each): each for each in found.rows}
    whole = {**(before or {}), **rows}
    return whole if len(whole) == found.total else None


def blocks_writes(mode: str) -> bool:
    return MODES.index(mode) >= _BLOCKS_WRITES


def strongest(modes: Iterable[str]) -> str:
    return max(modes, key=MODES.index)


def changes(catalogue: str, before: Catalogue, after: Catalogue) -> Iterator[Change]:
    for key, entry in before.items():
        now = after.get(key)
        if now != entry:
            yield Change(catalogue, entry, now)
    for key, entry in after.items():
        if key not in before:
            yield Change(catalogue, None, entry)


def by_relation(pairs: Iterable[tuple[int, str]]) -> dict[int, str]:
    """The strongest of the modes of each relation."""
    found: dict[int, str] = {}
    for relation, mode in pairs:
        found[relation] = strongest((mode, found.get(relation, mode)))
    return found


def _key(entry: Any) -> Key:
    return (entry.relation, entry.number) if isinstance(entry, Column) else (entry.oid,)
