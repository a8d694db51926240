"""Migrations as they lie in a folder: plain SQL in order, golang-migrate, Alembic; which is which.

0001_shop.sql                       plain: the number in front orders them
000001_shop.up.sql, .down.sql       golang-migrate
alembic.ini, versions/*.py          Alembic: its SQL is asked of Alembic itself
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead import errors
from fairlead.areas.deployments.migrations import statements, units

MOST_BYTES = 8 * 1024 * 1024
_UP = re.compile(r"(?P<version>[0-9]+)_(?P<title>.*)\.up\.sql")
_DOWN = re.compile(r"[0-9]+_.*\.down\.sql|.*\.(?:down|undo|rollback)\.sql")
_PLAIN = re.compile(
    r"V?(?P<version>[0-9]+(?:[._][0-9]+)*)(?:__?|-)?(?P<title>.*)\.sql", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its version orders it, its digest shows whether it was edited since."""

    version: str
    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(int(each) for each in re.findall("[0-9]+", self.version))

    def units(self) -> list[units.Unit]:
        try:
            return units.units(statements.split(self.text))
        except errors.Rejected as error:
            raise errors.Rejected(f"{self.name}: {error.message}", hint=error.hint) from error


def read(paths: Sequence[Path]) -> list[Migration]:
    """All migrations that the paths hold, in the order in which they are applied."""
    return _ordered([each for path in paths for each in _read(path)])


def parse(texts: Mapping[str, str]) -> list[Migration]:
    """The same from texts by the names of their files."""
    return _ordered([_named(name, text) for name, text in texts.items()])


def _ordered(found: list[Migration]) -> list[Migration]:
    seen: dict[tuple[int, ...], str] = {}
    for each in found:
        if (other := seen.setdefault(each.order, each.name)) != each.name:
            raise errors.Rejected(
                f"two migrations of one version: {other}, {each.name}",
                hint="give one of them another number",
            )
    return sorted(found, key=lambda each: each.order)


def _read(path: Path) -> Iterable[Migration]:
    if path.is_dir():
        _refuse_alembic(path)
        files = sorted(each for each in path.glob("*.sql") if not _DOWN.fullmatch(each.name))
        if not files:
            raise errors.NotFound(
                f"no migrations in: {path}", hint="put files such as 0001_shop.sql there"
            )
        return [_migration(each) for each in files]
    if not path.exists():
        raise errors.NotFound(f"no such file or folder: {path}", hint="name files or a folder")
    return [_migration(path)]


def _migration(path: Path) -> Migration:
    return _named(path.name, _text(path))


def _named(name: str, text: str) -> Migration:
    matched = _UP.fullmatch(name) or _PLAIN.fullmatch(name)
    if matched is None:
        raise errors.Rejected(
            f"a migration without a number in front: {name}",
            hint="name it such as 0001_shop.sql, so that the order is known",
        )
    return Migration(matched["version"], name, text)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise errors.Rejected(
                f"a migration of more than {MOST_BYTES // 2**20} MiB: {path.name}",
                hint="load data by other means than a migration",
            )
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.Rejected(
            f"unreadable migration: {path.name}", hint="it must be a text file in UTF-8"
        ) from error


def _refuse_alembic(path: Path) -> None:
    if (path / "alembic.ini").exists() or (path / "env.py").exists():
        raise errors.Rejected(
            f"these are migrations of Alembic, which are programs: {path}",
            hint="let Alembic write the SQL: alembic upgrade CURRENT:head --sql > 0001_head.sql;"
            " or let a workload's migrate_command run it",
        )
