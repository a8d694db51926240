"""The embedded store is for its owner's eyes only, also one that was made before that was so."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.engine.store.sqlite import SqliteStore


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_mask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_mask")
def test_what_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "fairlead.db"
    store = SqliteStore(file)
    store.migrate()

    with contextlib.closing(store.open()):
        found = {path.name: rights(path) for path in file.parent.iterdir()}

    assert rights(file.parent) == 0o700
    assert set(found.values()) == {0o600}
    assert set(found) >= {"fairlead.db", "fairlead.db-wal", "fairlead.db-shm"}


@pytest.mark.usefixtures("open_mask")
def test_what_was_open_to_others_is_closed_at_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "state" / "fairlead.db"
    store = SqliteStore(file)
    store.migrate()
    with contextlib.closing(store.open()):
        for path in file.parent.iterdir():
            path.chmod(0o644)

        with contextlib.closing(SqliteStore(file).open()):
            found = {rights(path) for path in file.parent.iterdir()}

    assert found == {0o600}


@pytest.mark.parametrize("before", [0o755, 0o1777])
def test_a_folder_that_was_there_before_is_left_as_it_is(tmp_path: Path, before: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(before)

    SqliteStore(home / "fairlead.db").migrate()

    assert rights(home) == before
    assert rights(home / "fairlead.db") == 0o600
