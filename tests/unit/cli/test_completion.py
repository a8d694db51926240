"""What a shell is told to complete, and how long it may take."""

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.cli import app, completion
from fairlead.console.context import CliContext
from tests.unit.areas.rollouts.commands.test_nouns import behind, halfway, type_in
from tests.unit.cli.conftest import Run

__all__ = ["behind", "halfway", "type_in"]
Press = Callable[[str], list[str]]


@pytest.fixture
def press(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Press:
    """Presses the tabulator after a line; what bash is offered."""

    def pressed(line: str) -> list[str]:
        monkeypatch.setenv("_FAIRLEAD_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", f"fairlead {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            app.run([], CliContext())
        offered = capsys.readouterr().out.split()
        return [each.partition(",")[2] for each in offered]

    return pressed


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_of_a_shell_is_printed(run: Run, shell: str) -> None:
    ran = run("completion", shell)

    assert ran.code == 0
    assert "_FAIRLEAD_COMPLETE" in ran.out


def test_commands_come_from_the_table(press: Press) -> None:
    assert press("de") == ["demo", "deploy", "delete", "deployments"]
    assert "--version" in press("--")


def test_kinds_are_known_without_a_store(press: Press) -> None:
    assert press("get ro") == ["rollout", "rollout-step", "rollouts"]


@pytest.mark.parametrize("line", ["get rollout s", "pause ", "history sh", "logs s"])
def test_names_are_asked_of_the_store(halfway: Path, press: Press, line: str) -> None:
    assert press(line) == ["shop"]


def test_nobody_there_completes_nothing(press: Press) -> None:
    assert press("pause ") == []


def test_a_silent_server_costs_a_moment(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("FAIRLEAD_SERVER", f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()

        assert press("pause ") == []

    assert time.monotonic() - began < 10
