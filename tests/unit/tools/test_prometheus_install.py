"""Where the tests' Prometheus comes from, and what is said when it cannot come."""

import os
from pathlib import Path

import pytest

from fairlead import errors
from tools.servers import prometheus


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    return folder


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_installed_one_is_used(tools: Path) -> None:
    installed = script(tools / "prometheus", "exit 0")

    assert prometheus.find() == installed


def test_without_debian_the_reason_is_said(tools: Path) -> None:
    with pytest.raises(errors.Unavailable, match="no Debian to take it from") as missing:
        prometheus.find()

    assert "install the package prometheus" in missing.value.hint


def test_a_package_that_cannot_be_had_is_said(tools: Path) -> None:
    script(tools / "apt-get", "exit 100")
    script(tools / "dpkg", "exit 0")

    with pytest.raises(errors.Unavailable, match="its package was not found"):
        prometheus.find()


def test_the_package_is_unpacked_once(tools: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script(tools / "apt-get", f'echo "$1" >> {log}\n: > prometheus_2_amd64.deb')
    unpack = '/bin/mkdir -p "$3/usr/bin"\n: > "$3/usr/bin/prometheus"'
    script(tools / "dpkg", unpack)

    found = prometheus.find()
    again = prometheus.find()

    assert found == again == tmp_path / "cache/prometheus/package/usr/bin/prometheus"
    assert log.read_text() == "download\n"
    assert sorted(os.listdir(tmp_path / "cache/prometheus")) == ["lock", "package"]  # noqa: PTH208 - names only
