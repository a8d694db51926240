"""`fairlead content release …`: what is sent to the control plane, and what is refused before."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead import bootstrap
from fairlead.areas.content.commands import release
from fairlead.cli import app
from fairlead.console import remote
from fairlead.console.context import CliContext

SUMMARY = {
    "name": "gathering", "phase": "Proposed", "sentence": "waits for review", "stable": "1.0.1",
    "canary": "", "share": "0", "step": 0, "steps": 0, "proposed": "1.0.2", "proposed_by": "rita",
    "terms": "1.0.2 from a to b", "revision": "3f2a",
    "outcome": "", "why": "", "updated": "2030-01-01T00:00:00Z",
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    words = {"name": "gathering", "kind": "gathering", "source": {"directory": "versions"}}
    (tmp_path / "content.json").write_text(json.dumps(words))
    steps = [{"share": 10, "bake": "2h"}]
    made = tmp_path / "release.json"
    made.write_text(json.dumps({"content": "content.json", "local": {"port": 80}, "steps": steps}))
    return made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, Any]]:
    """What a server was asked; its answers are canned, its own tests are of the API."""
    calls: list[tuple[str, Any]] = []

    def post(_: remote.ServerSource, shape: type, path: str, content: Any) -> Any:
        calls.append((path, content))
        return msgspec.convert({"release": SUMMARY}, shape)

    def get(_: Any, shape: type, path: str, wanted: Mapping[str, Any] | None = None) -> Any:
        calls.append((path, wanted))
        lines = {"lines": ["-a", "+b"]}
        seen = {"identity": "c-1", "channel": "canary", "version": "1.0.2", "settled": False}
        return msgspec.convert(lines if "difference" in path else seen, shape)

    monkeypatch.setattr(remote.ServerSource, "post", post)
    monkeypatch.setattr(remote.ServerSource, "get", get)
    monkeypatch.setenv("FAIRLEAD_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path))
    return calls


def typed(*words: str) -> int:
    return app.run(["content", "release", *words], CliContext(installation=bootstrap.installation))


def test_a_proposal_is_sent_with_the_content_in_it(
    file: Path, sent: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    code = typed("propose", str(file), "1.0.2", "--why", "new", "--stable", "1.0.1", "--id", "a")

    ((path, asked),) = sent
    told = capsys.readouterr()
    assert (code, path) == (0, "/releases")
    assert (asked.version, asked.why, asked.stable, asked.id) == ("1.0.2", "new", "1.0.1", "a")
    assert asked.release["content"]["source"]["directory"] == str(file.parent / "versions")
    assert "gathering  Proposed  waits for review" in told.out
    assert "fairlead approve release/gathering 3f2a" in told.err


def test_a_file_that_makes_no_sense_is_told_with_its_line_before_anything_is_sent(
    file: Path, sent: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text().replace("2h", "1h"))

    code = typed("propose", str(file), "1.0.2", "--why", "new")

    assert (code != 0, sent) == (True, [])
    assert "bake shorter than clients wait" in capsys.readouterr().err


def test_who_and_difference_are_printed(
    sent: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("who", "gathering", "c-1") == 0
    assert typed("difference", "gathering") == 0

    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["c-1", "canary", "1.0.2", "changing"]
    assert out.splitlines()[2:] == ["-a", "+b"]
    assert [path for path, _ in sent] == [
        "/releases/gathering/who",
        "/releases/gathering/difference",
    ]


def test_without_a_control_plane_nothing_is_proposed(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRLEAD_SERVER", "")

    assert typed("propose", str(file), "1.0.2", "--why", "new") != 0
    assert "set FAIRLEAD_SERVER" in capsys.readouterr().err
    assert release.release.name == "release"
