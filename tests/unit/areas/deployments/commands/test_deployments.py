"""`fairlead deployments start` says what it needs before it asks anybody."""

import pytest

from fairlead.cli import app
from fairlead.console.context import CliContext


@pytest.mark.parametrize("words", [(), ("--branch", "main", "--tag", "v1")])
def test_it_needs_one_version(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code = app.run(["deployments", "start", "prod/shop", *words], CliContext())

    assert code == 2
    assert "one of --commit, --branch and --tag" in capsys.readouterr().err


def test_without_a_control_plane_it_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRLEAD_SERVER", "http://127.0.0.1:9")

    code = app.run(["deployments", "start", "prod/shop", "--tag", "v1"], CliContext())

    assert code == 7
    assert "hint:" in capsys.readouterr().err
