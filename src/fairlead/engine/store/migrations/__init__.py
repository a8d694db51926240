"""Schema changes in order, one folder a dialect; applied ones are never edited."""

import importlib.resources
import re
from dataclasses import dataclass

from fairlead import errors


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    name: str
    sql: str

    def statements(self) -> list[str]:
        """Its statements one by one; none of them has a semicolon inside."""
        bare = re.sub(r"--.*", "", self.sql)
        return [part.strip() for part in bare.split(";") if part.strip()]


def load(dialect: str) -> list[Migration]:
    folder = importlib.resources.files(__package__) / dialect
    files = sorted(each.name for each in folder.iterdir() if each.name.endswith(".sql"))
    return [Migration(name.removesuffix(".sql"), (folder / name).read_text()) for name in files]


def outstanding(ours: list[Migration], applied: list[str]) -> list[Migration]:
    """What is still to be applied; Conflict where somebody newer was here."""
    known = {migration.name for migration in ours}
    unknown = [name for name in applied if name not in known]
    if unknown:
        raise errors.Conflict(
            f"the database is newer than this program: {unknown[-1]}",
            hint="run the fairlead that migrated it, or a later one",
        )
    return [migration for migration in ours if migration.name not in set(applied)]
