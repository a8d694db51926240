"""`fairlead content check`: what a start would say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import contents
from tests.unit.cli.conftest import Ran

Type = Callable[..., Ran]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The description of a content with versions 1.0.1 and 1.0.2."""
    for version in ("1.0.1", "1.0.2"):
        contents.write(tmp_path / "versions" / version, contents.version_files(version))
    described = {"name": "gathering", "kind": "gathering", "source": {"directory": "versions"}}
    (tmp_path / "content.json").write_text(json.dumps(described))
    return str(tmp_path / "content.json")


def test_sound_versions_are_told_with_their_sums(run: Type, file: str) -> None:
    then = run("content", "check", file, "--stable", "1.0.1", "--canary", "1.0.2", "-o", "json")

    told = json.loads(then.out)
    assert {channel: told[channel]["version"] for channel in told} == {
        "stable": "1.0.1",
        "canary": "1.0.2",
    }
    assert told["stable"]["files"] == 4


def test_versions_come_from_the_environment_of_a_deployment(
    run: Type, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STABLE_VERSION", "1.0.1")
    monkeypatch.setenv("CANARY_VERSION", "none")

    then = run("content", "check", file)

    assert then.code == 0
    assert then.out.splitlines()[1].split()[:3] == ["stable", "1.0.1", "4"]


@pytest.mark.requirement("content 4")
@pytest.mark.parametrize("channel", ["stable", "canary"])
def test_a_version_that_is_missing_on_either_channel_fails(
    run: Type, file: str, channel: str
) -> None:
    versions = {"stable": "1.0.1", "canary": "1.0.2", channel: "1.0.3"}

    then = run(
        *("content", "check", file),
        *("--stable", versions["stable"], "--canary", versions["canary"]),
    )

    assert then.code == 4
    assert "version not found: 1.0.3" in then.err


@pytest.mark.requirement("content 14")
def test_a_corrupt_file_fails_with_its_line(run: Type, file: str, tmp_path: Path) -> None:
    contents.write(tmp_path / "versions" / "1.0.2", {"v1/rules.json": b'{"rules": [\n\n'})

    then = run("content", "check", file, "--stable", "1.0.1", "--canary", "1.0.2")

    assert then.code == 3
    assert "error: v1/rules.json:3:1: not JSON" in then.err


def test_a_mistake_in_the_description_is_told_with_its_line(run: Type, tmp_path: Path) -> None:
    (tmp_path / "content.yaml").write_text("name: g\nkind: gathering\nsource:\n  got: x\n")

    then = run("content", "check", str(tmp_path / "content.yaml"), "--stable", "1")

    assert then.code == 3
    assert "content.yaml:4:3: source.got: unknown field" in then.err
