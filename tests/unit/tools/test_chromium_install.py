"""Where the tests' browser comes from, and what is said when it cannot come."""

import os
from pathlib import Path

import pytest

from fairlead import errors
from tools.servers import chromium


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", chromium.NAMES)
def test_an_installed_one_is_used(programs: Path, name: str) -> None:
    installed = script(programs / name, "exit 0")

    assert chromium.find() == installed
    assert chromium.install() == installed


def test_without_one_the_way_to_it_is_said(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(errors.Unavailable, match="no chromium here") as missing:
        chromium.find()
    code = chromium.main()

    assert "make browser" in missing.value.hint
    assert code == errors.Unavailable.exit_code
    assert "make browser" in capsys.readouterr().err


def test_root_takes_it_from_debian(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = programs / "chromium"
    script(programs / "apt-get", f'[ "$1" = update ] || {{ : > {made}; /bin/chmod +x {made}; }}')

    assert chromium.install() == made


def test_what_debian_says_is_told(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    script(programs / "apt-get", 'echo "E: no such package" >&2; exit 100')

    with pytest.raises(errors.Unavailable, match="E: no such package"):
        chromium.install()
