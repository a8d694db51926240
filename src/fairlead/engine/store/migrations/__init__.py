"""Schema changes in order, one folder a dialect; applied ones are never edited.

Programs of two versions share a store while one replaces the other. A migration that only adds
what older programs do not notice says so in its first lines, and they go on:

    -- compatible with: 0006

means every program that knows migration 0006. What takes something away (a column that nobody
writes any more) is a migration of its own, in a later release, without that line or with a later
number in it. The line is kept in the store, where older programs find it.
"""

import importlib.resources
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead import errors

_COMPATIBLE = re.compile(r"^-- compatible with: (\d{4})$", re.MULTILINE)
# A trigger's or a function's body has semicolons of its own.
_STATEMENT = re.compile(r"(?:\bBEGIN\b.*?\bEND\b|\$\$.*?\$\$|[^;])+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    name: str
    sql: str

    @property
    def compatible_with(self) -> str | None:
        """The newest migration that a program must know to go on after this one."""
        found = _COMPATIBLE.search(self.sql)
        return found[1] if found else None

    def statements(self) -> list[str]:
        """Its statements one by one."""
        bare = re.sub(r"--.*", "", self.sql)
        return [part.strip() for part in _STATEMENT.findall(bare) if part.strip()]


def load(dialect: str) -> list[Migration]:
    folder = importlib.resources.files(__package__) / dialect
    files = sorted(each.name for each in folder.iterdir() if each.name.endswith(".sql"))
    return [Migration(name.removesuffix(".sql"), (folder / name).read_text()) for name in files]


def outstanding(
    ours: list[Migration], applied: Sequence[tuple[str, str | None]]
) -> list[Migration]:
    """What is still to be applied; Conflict where somebody newer was here and we cannot go on.

    Applied are names, each with what that migration is compatible with.
    """
    known, newest = {migration.name for migration in ours}, ours[-1].name
    foreign = [(name, goes_with) for name, goes_with in applied if name not in known]
    for name, goes_with in foreign:
        if goes_with is None or goes_with > newest:
            raise errors.Conflict(
                f"the database is newer than this program: {name}",
                hint="run the fairlead that migrated it, or a later one",
            )
    done = {name for name, _ in applied}
    return [migration for migration in ours if migration.name not in done]


def as_applied(row: Sequence[str | None]) -> tuple[str, str | None]:
    """A row of the table of migrations; before 0006 it had no second column."""
    name, *goes_with = row
    assert name is not None
    return name, goes_with[0] if goes_with else None
