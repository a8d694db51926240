"""What a statement asks of the version that runs, judged from what PostgreSQL showed. Pure.

Rules by locks, reads and rewrites are here, those by catalogue rows in `catalogue_rules`. A
transaction holds its locks until it commits, so a statement is judged with those before it.
Decision 0051 has the table, and the rules for what the table leaves out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.areas.deployments.domain.classes import Impact, worst
from fairlead.areas.deployments.migrations import catalogue_rules, observation
from fairlead.areas.deployments.migrations.catalogue_rules import Finding
from fairlead.areas.deployments.migrations.observation import Observation
from fairlead.areas.deployments.migrations.statements import Statement


@dataclass(frozen=True, slots=True)
class Target:
    """The tables of the target as they are before any of the migrations."""

    names: Mapping[int, str]
    """All tables that exist there, by their number in the scratch copy."""

    rows: Mapping[int, int]
    """Those that are not empty, with an estimate of their rows; -1 where it is unknown."""

    def told(self, relation: int) -> str:
        count = self.rows.get(relation, 0)
        name = self.names.get(relation, "a table")
        return name if count < 0 else f"{name} (about {count} rows)"


@dataclass(frozen=True, slots=True)
class Lock:
    """A table lock of a statement."""

    relation: str
    mode: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One statement and what became of it."""

    sql: str
    impact: Impact
    locks: tuple[Lock, ...] = ()
    rewrite: bool = False
    scan: bool = False
    reasons: tuple[str, ...] = ()
    suggestion: str = ""


@dataclass(slots=True)
class Transaction:
    """Judges the statements of one transaction in order, and remembers what it holds."""

    target: Target
    alone: bool = False
    held: dict[int, str] = field(default_factory=dict)
    """Locks of earlier statements that block others on tables with rows."""

    def judge(self, statement: Statement, seen: Observation) -> Judged:
        seen = _completed(seen, self.target)
        found = [*_findings(statement, seen, self.target, alone=self.alone)]
        found += _held_meanwhile(seen, self.target, self.held)
        for relation, mode in seen.locks.items():
            if relation in self.target.rows and observation.blocks_writes(mode):
                self.held.setdefault(relation, mode)
        return _judged(statement, seen, self.target, found)


def unevaluated(statement: Statement, reason: str) -> Judged:
    """What cannot be shown to be harmless is taken for the worst."""
    return Judged(statement.sql, Impact.DOWNTIME, reasons=(f"cannot be evaluated: {reason}",))


def _judged(
    statement: Statement, seen: Observation, target: Target, found: Sequence[Finding]
) -> Judged:
    ordered = sorted(found, key=lambda each: each.impact, reverse=True)
    return Judged(
        statement.sql,
        worst([Impact.PARALLEL, *(each.impact for each in found)]),
        _locks(seen, target),
        rewrite=bool(seen.rewritten & target.names.keys()),
        # A scan beside which others read and write is no news.
        scan=bool(seen.scanned & {one for one, _ in _locked(seen, target)}),
        reasons=tuple(dict.fromkeys(each.reason for each in ordered if each.reason)),
        suggestion=next((each.suggestion for each in ordered if each.suggestion), ""),
    )


def _locks(seen: Observation, target: Target) -> tuple[Lock, ...]:
    found = [Lock(target.names[one], mode) for one, mode in _locked(seen, target)]
    return tuple(sorted(found, key=lambda each: each.relation))


def _locked(seen: Observation, target: Target) -> Iterator[tuple[int, str]]:
    """Above what any reader takes."""
    for relation, mode in seen.locks.items():
        if relation in target.names and mode != observation.MODES[0]:
            yield relation, mode


def _completed(seen: Observation, target: Target) -> Observation:
    """With the scans that only rows would show: a new key is checked against both its tables."""
    both = {
        one
        for change in seen.changes
        if change.catalogue == "pg_constraint" and catalogue_rules.checks_key(change)
        for one in (change.after.relation, change.after.other)
        if change.after.relation in target.names and change.after.relation in seen.scanned
    }
    return Observation(
        seen.locks,
        seen.rewritten,
        seen.scanned | both | seen.unbounded,
        seen.read,
        seen.changes,
        seen.unbounded,
    )


def _findings(
    statement: Statement, seen: Observation, target: Target, *, alone: bool
) -> Iterator[Finding]:
    attached = catalogue_rules.attached(seen.changes)
    for each in catalogue_rules.findings(seen.changes, target.names):
        # Outside of a transaction an index goes without anybody having to wait for it.
        if not (alone and each.impact is Impact.BEFORE):
            yield each
    if not alone:
        yield from _slow_under_lock(seen, target, attached)
        yield from _brief(seen, target)
        yield from _rows(statement, seen, target)
    yield from _rewritten_alone(seen, target, alone=alone)
    if statement.starts("LOCK"):
        yield from _explicit_lock(seen, target)
    if statement.tokens[0] in ("DO", "CALL") and (read := seen.read & target.rows.keys()):
        yield Finding(
            Impact.DOWNTIME,
            f"cannot be evaluated: what it does depends on the rows of {_named(read, target)}",
            "write the statements out, so that they can be seen",
        )


def _slow_under_lock(
    seen: Observation, target: Target, attached: frozenset[int]
) -> Iterator[Finding]:
    blocked = {
        one: mode
        for one, mode in seen.locks.items()
        if one in target.rows and observation.blocks_writes(mode)
    }
    slow = (seen.rewritten | seen.scanned) & target.rows.keys()
    if not blocked or not slow:
        return
    if not seen.rewritten and slow <= attached:
        yield Finding(
            Impact.BEFORE,
            f"scans {_named(slow, target)} while only that table is locked",
            "add a valid CHECK constraint with the bounds of the partition first: no scan then",
        )
        return
    what = "rewrites" if seen.rewritten & slow else "scans"
    for relation, mode in blocked.items():
        who = "reads and writes" if mode == "AccessExclusiveLock" else "writes"
        yield Finding(
            Impact.DOWNTIME,
            f"{what} {_named(slow, target)} while {mode} on {target.names[relation]} blocks {who}",
            catalogue_rules.safer(seen.changes, rewrites=bool(seen.rewritten & slow)),
        )


def _rewritten_alone(seen: Observation, target: Target, *, alone: bool) -> Iterator[Finding]:
    if alone and (rewritten := seen.rewritten & target.rows.keys()):
        yield Finding(
            Impact.DOWNTIME,
            f"rewrites {_named(rewritten, target)} while AccessExclusiveLock blocks all",
            "leave it to autovacuum, or use a tool that copies beside the table",
        )


def _brief(seen: Observation, target: Target) -> Iterator[Finding]:
    for relation, mode in seen.locks.items():
        if relation in target.names and observation.blocks_writes(mode):
            yield Finding(
                Impact.BEFORE,
                f"{mode} on {target.names[relation]}, held until commit",
                "",
            )


def _rows(statement: Statement, seen: Observation, target: Target) -> Iterator[Finding]:
    changed = {one for one, mode in seen.locks.items() if mode == "RowExclusiveLock"}
    unbounded = changed & (seen.unbounded | seen.scanned) & target.rows.keys()
    if statement.tokens[0] in ("UPDATE", "DELETE", "MERGE", "WITH"):
        unbounded = changed & seen.unbounded & target.rows.keys()
    if unbounded:
        yield Finding(
            Impact.DOWNTIME,
            f"changes rows of {_named(unbounded, target)} without a bound, and locks them until"
            " commit",
            "change rows in batches by a range of the primary key, each batch committed",
        )
    elif changed & target.names.keys():
        yield Finding(Impact.BEFORE, f"changes rows of {_named(changed, target)}", "")


def _explicit_lock(seen: Observation, target: Target) -> Iterator[Finding]:
    strong = {one for one, mode in seen.locks.items() if observation.blocks_writes(mode)}
    if named := strong & target.rows.keys():
        yield Finding(
            Impact.DOWNTIME,
            f"asks that nobody writes to {_named(named, target)} until commit",
            "leave the lock to the statements that need it, and set lock_timeout",
        )


def _held_meanwhile(
    seen: Observation, target: Target, held: Mapping[int, str]
) -> Iterator[Finding]:
    slow = (seen.rewritten | seen.scanned) & target.rows.keys()
    for relation, mode in held.items() if slow else ():
        yield Finding(
            Impact.DOWNTIME,
            f"takes its time on {_named(slow, target)} while {mode} of an earlier statement on"
            f" {target.names[relation]} is held until commit",
            "put it into a migration of its own",
        )


def _named(relations: Iterable[int], target: Target) -> str:
    return ", ".join(sorted(target.told(each) for each in relations if each in target.names))
