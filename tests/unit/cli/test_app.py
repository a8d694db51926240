"""The root: quick help, and every failure with a hint and a documented code."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import fairlead
from fairlead import errors
from fairlead.area import Area, Command, Verb
from fairlead.cli import app
from tests.unit.cli.conftest import Run

HEAVY = ("psycopg", "msgspec", "structlog", "rich", "fastapi", "asyncio", "fairlead.bootstrap")


def test_help_lists_every_command(run: Run) -> None:
    ran = run("--help")

    assert ran.code == 0
    assert [name for name in app.COMMANDS if f"  {name} " not in ran.out] == []
    assert ran.err == ""


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from fairlead.cli import app; app.run(['--help']);"
        f"sys.stderr.write(' '.join(set({HEAVY!r}) & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stderr == b""


def test_a_verb_of_two_areas_is_one_command_told_by_the_first() -> None:
    def area(name: str, *helps: tuple[str, str]) -> Area:
        verbs = {verb: Verb(verb, "Go", told, told, verb) for verb, told in helps}
        return Area(name, core="", verbs=verbs)

    first = area("ships", ("approve", "Approve a ship."), ("sail", "Sail."))
    second = area("trains", ("depart", "Depart."), ("approve", "Approve a train."))

    entries = app.commands((first, second))

    told = {name: entry.help for name, entry in entries.items() if isinstance(entry, Verb)}
    assert list(told.items()) == [
        ("approve", "Approve a ship."), ("sail", "Sail."), ("depart", "Depart.")
    ]  # fmt: skip


def test_help_survives_a_command_whose_module_is_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Command("fairlead.cli.nowhere:sail", "Sail.")
    monkeypatch.setattr(app, "COMMANDS", {**app.COMMANDS, "sail": entry})

    assert "sail" in run("--help").out
    ran = run("sail")

    assert ran.code == errors.NotFound.exit_code
    assert "error: not part of this installation: sail\nhint: " in ran.err


def test_a_module_that_misses_something_else_is_not_excused(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_command.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = Command("broken_command:sail", "Sail.")
    monkeypatch.setattr(app, "COMMANDS", {"sail": entry})

    ran = run("sail")

    assert ran.code == app.UNEXPECTED
    assert "no_such_module" in ran.err


def test_version(run: Run) -> None:
    assert run("--version").out == f"fairlead {fairlead.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["evnts"], "no such command: evnts", "did you mean fairlead events?"),
        (["xyzzy"], "no such command: xyzzy", "see fairlead --help"),
        (["--bogus"], "no such option: --bogus", "see fairlead --help"),
        (["get", "--limt", "1"], "no such option: --limt", "did you mean '--limit'?"),
        (["events"], "missing argument: STREAM", "see fairlead events --help"),
        (["outbox", "lst"], "no such command: lst", "did you mean fairlead outbox list?"),
        (["get", "--limit", "0"], "invalid value for '--limit'", "see fairlead get --help"),
        (["get", "-o", "xml"], "invalid value for '-o'", "see fairlead get --help"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_a_hint(
    run: Run, arguments: list[str], error: str, hint: str
) -> None:
    ran = run(*arguments)

    assert ran.code == app.USAGE
    assert ran.out == ""
    said, hinted = ran.err.rstrip().splitlines()
    assert said.startswith(f"error: {error}")
    assert hinted.startswith(f"hint: {hint}")


def test_no_command_shows_help_as_talk(run: Run) -> None:
    ran = run()

    assert (ran.code, ran.out) == (app.USAGE, "")
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Rejected("no", hint="do"), 3),
        (errors.NotFound("no", hint="do"), 4),
        (errors.Unauthorised("no", hint="do"), 5),
        (errors.Conflict("no", hint="do"), 6),
        (errors.Unavailable("no", hint="do"), 7),
        (errors.Corrupt("no", hint="do"), 8),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (RuntimeError("the keel broke"), 1),
    ],
)
def test_every_fate_has_its_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    _command_that_raises(monkeypatch, error)

    ran = run("sail")

    assert ran.code == code
    assert ran.out == ""
    if isinstance(error, errors.FairleadError):
        assert ran.err == "error: no\nhint: do\n"


def test_an_unexpected_error_says_where_to_look(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_LOG_LEVEL", raising=False)
    _command_that_raises(monkeypatch, RuntimeError("the keel broke"))

    ran = run("sail")

    assert ran.err.startswith("error: unexpected RuntimeError: the keel broke\nhint: ")
    assert "FAIRLEAD_LOG_LEVEL=debug" in ran.err
    assert "Traceback" not in ran.err


def test_an_unexpected_error_shows_its_trace_when_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_LOG_LEVEL", "debug")
    _command_that_raises(monkeypatch, RuntimeError("the keel broke"))

    assert "Traceback" in run("sail").err


def test_a_reader_who_leaves_is_no_error(filled: Path) -> None:
    command = [sys.executable, "-m", "fairlead", "watch", "--since", "0.0"]
    read_end, write_end = os.pipe()
    os.close(read_end)

    done = subprocess.run(
        command, stdout=write_end, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(write_end)

    assert done.returncode == app.PIPE_GONE
    assert done.stderr.decode().splitlines() == ["watching; press Ctrl-C to stop"]


def test_a_named_store_stands_above_the_environment(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", "/nowhere")
    monkeypatch.setenv("FAIRLEAD_SERVER", "http://127.0.0.1:1")

    assert run("--state-dir", str(filled), "get", "depot/north").code == 0


def _command_that_raises(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def sail() -> None:
        raise error

    monkeypatch.setattr(app, "COMMANDS", {"sail": Command("nowhere:sail", "Sail.")})
    monkeypatch.setattr(app, "load", lambda _name, _entry: sail)
