"""Where the programs are run from, and whom we trust with them."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.clients.postgres.server import home
from fairlead.clients.postgres.server.home import make_home
from fairlead.clients.postgres.server.identity import (
    Identity,
    run_as,
    temporary_places,
    unprivileged_identity,
)
from fairlead.clients.postgres.server.wheel import (
    Wheel,
    installed_wheel,
    runnable_programs,
)
from fairlead.errors import Unavailable

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers under another id")


@pytest.fixture
def hidden(tmp_path: Path) -> Wheel:
    """The wheel as seen from a folder that only we may enter."""
    tmp_path.chmod(0o700)
    (tmp_path / "site").symlink_to(installed_wheel().site)
    return Wheel(tmp_path / "site", "0123456789abcdef")


@pytest.fixture
def open_place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=temporary_places()[0]) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def nobody() -> Identity:
    identity = unprivileged_identity()
    assert identity is not None
    return identity


def copy_in(place: Path, wheel: Wheel) -> Path:
    return place / f"fairlead-postgres-0-{wheel.digest}"


def test_wheel_is_used_where_it_is_when_the_id_can_run_it(open_place: Path) -> None:
    wheel = installed_wheel()

    assert runnable_programs(wheel, None, [open_place]) == wheel.programs
    assert list(open_place.iterdir()) == []


@as_root
def test_hidden_wheel_is_copied_once_and_the_copy_runs(
    hidden: Wheel, open_place: Path, nobody: Identity
) -> None:
    programs = runnable_programs(hidden, nobody, [open_place])
    made = programs.stat().st_ino

    assert programs.is_relative_to(copy_in(open_place, hidden))
    assert "PostgreSQL" in run_as(nobody, [programs / "initdb", "-V"]).stdout
    assert runnable_programs(hidden, nobody, [open_place]) == programs
    assert programs.stat().st_ino == made
    assert list(open_place.iterdir()) == [copy_in(open_place, hidden)]


@as_root
def test_copy_belongs_to_us_and_the_server_cannot_change_it(
    hidden: Wheel, open_place: Path, nobody: Identity
) -> None:
    runnable_programs(hidden, nobody, [open_place])

    found = [path.lstat() for path in (copy_in(open_place, hidden), *open_place.rglob("*"))]
    assert {entry.st_uid for entry in found} == {0}
    assert not any(entry.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for entry in found)


@as_root
@pytest.mark.parametrize("trap", ["foreign owner", "symlink", "writable by all"])
def test_planted_copy_is_not_trusted(
    hidden: Wheel, open_place: Path, nobody: Identity, trap: str
) -> None:
    planted = copy_in(open_place, hidden)
    runnable_programs(hidden, nobody, [open_place])
    match trap:
        case "foreign owner":
            os.chown(planted, nobody.uid, nobody.gid)
        case "symlink":
            planted.rename(open_place / "elsewhere")
            planted.symlink_to(open_place / "elsewhere")
        case _:
            planted.chmod(0o777)

    with pytest.raises(Unavailable, match="no place") as raised:
        runnable_programs(hidden, nobody, [open_place])

    assert "TMPDIR" in raised.value.hint


@as_root
def test_place_where_others_may_rename_our_folder_is_not_used(
    hidden: Wheel, open_place: Path, nobody: Identity
) -> None:
    open_place.chmod(0o777)

    with pytest.raises(Unavailable):
        runnable_programs(hidden, nobody, [open_place])

    assert list(open_place.iterdir()) == []


@as_root
def test_second_place_is_taken_when_the_first_is_closed(
    hidden: Wheel, open_place: Path, tmp_path: Path, nobody: Identity
) -> None:
    programs = runnable_programs(hidden, nobody, [tmp_path, open_place])

    assert programs.is_relative_to(open_place)


@as_root
def test_home_is_made_in_the_first_place_the_id_can_reach(
    open_place: Path, tmp_path: Path, nobody: Identity
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)

    home = make_home(nobody, [closed, open_place])

    assert home.folder.parent == open_place
    assert list(closed.iterdir()) == []
    home.remove()
    assert list(open_place.iterdir()) == []


def test_place_with_too_long_a_path_is_passed_over(open_place: Path) -> None:
    deep = open_place / ("d" * 100)
    deep.mkdir()

    with pytest.raises(Unavailable, match="no place") as raised:
        make_home(None, [deep])

    assert "short path" in raised.value.hint
    assert list(deep.iterdir()) == []


def test_home_of_a_living_owner_is_not_swept(
    open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "ABANDONED_AFTER_SECONDS", 0.0)
    living = make_home(None, [open_place])

    other = make_home(None, [open_place])

    assert living.data.exists()
    other.remove()
    living.remove()
