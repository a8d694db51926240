"""What of a file runs in one transaction, and what PostgreSQL allows in none. Pure.

Evaluation and runner part a file alike, so that what is judged is what is run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairlead import errors
from fairlead.areas.deployments.migrations.statements import Statement

_BEGIN = frozenset({"BEGIN", "START"})
_COMMIT = frozenset({"COMMIT", "END"})
_CONCURRENT = (("CREATE",), ("DROP", "INDEX"), ("REINDEX",), ("ALTER", "TABLE"))
_ALONE = (("VACUUM",), ("CREATE", "DATABASE"), ("DROP", "DATABASE"), ("ALTER", "SYSTEM"))


@dataclass(frozen=True, slots=True)
class Unit:
    """Statements that are committed together, or one that stands alone."""

    statements: tuple[Statement, ...]
    transactional: bool = True


def units(found: Iterable[Statement]) -> list[Unit]:
    """In order; a BEGIN and a COMMIT of the file's own are obeyed, by us."""
    return list(_units(found))


def stands_alone(statement: Statement) -> bool:
    """Whether PostgreSQL refuses it within a transaction."""
    if any(statement.starts(*head) for head in _ALONE):
        return True
    named = "CONCURRENTLY" in statement and "MATERIALIZED" not in statement
    return named and any(statement.starts(*head) for head in _CONCURRENT)


def _units(found: Iterable[Statement]) -> Iterator[Unit]:
    together: list[Statement] = []
    for each in found:
        head = each.tokens[0]
        _check(each)
        if head in _BEGIN | _COMMIT or stands_alone(each):
            if together:
                yield Unit(tuple(together))
            together = []
            if head not in _BEGIN | _COMMIT:
                yield Unit((each,), transactional=False)
        else:
            together.append(each)
    if together:
        yield Unit(tuple(together))


def _check(statement: Statement) -> None:
    rolls_back = statement.tokens[0] in ("ROLLBACK", "ABORT") and "TO" not in statement
    if rolls_back or statement.starts("PREPARE", "TRANSACTION"):
        raise errors.Rejected(
            f"a migration ends in its commit, not by {statement.tokens[0]}, in line:"
            f" {statement.line}",
            hint="take the statement out; a migration that fails is rolled back as a whole",
        )
