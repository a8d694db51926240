"""Versions as folders."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content.sources import directory, limits


def test_a_folder_is_a_version(tmp_path: Path) -> None:
    (tmp_path / "1.0.2" / "sub").mkdir(parents=True)
    (tmp_path / "1.0.2" / "sub" / "a.json").write_bytes(b"1")

    assert directory.read(tmp_path, "1.0.2") == {"sub/a.json": b"1"}


@pytest.mark.requirement("content 4")
def test_a_version_without_a_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound, match=r"version not found: 1.0.3"):
        directory.read(tmp_path, "1.0.3")


def test_a_link_is_refused_wherever_it_leads(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "passwd").symlink_to("/etc/passwd")

    with pytest.raises(errors.Rejected, match="not a plain file in version 1: 'passwd'"):
        directory.read(tmp_path, "1")


def test_a_file_of_a_terabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    with (tmp_path / "1" / "large").open("wb") as file:
        file.truncate(1024**4)

    with pytest.raises(errors.Rejected, match="too large"):
        directory.read(tmp_path, "1")


def test_too_many_files_are_refused() -> None:
    many = ((f"{number}.json", b"") for number in range(limits.MOST_FILES + 1))

    with pytest.raises(errors.Rejected, match="too large"):
        limits.collect("1", many)
