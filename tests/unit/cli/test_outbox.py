"""Effects in a person's hand."""

import json
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.cli import app
from tests.unit.cli.conftest import Run


def test_the_dead_are_listed_with_why(run: Run, filled: Path) -> None:
    (dead,) = json.loads(run("outbox", "list", "--dead", "-o", "json").out)

    assert (dead["stream"], dead["type"], dead["data"]) == ("trip/north-2", "DriveLeg", {"leg": 2})
    assert dead["dead_at"] is not None
    assert "closed" in dead["error"]


def test_a_foreign_error_cannot_move_the_cursor(run: Run, filled: Path) -> None:
    shown = run("outbox", "list").out

    assert "dead" in shown
    assert "\x1b" not in shown


def test_effects_of_one_stream(run: Run, filled: Path) -> None:
    assert run("outbox", "list", "--stream", "trip/north-1").err == "no effects\n"
    assert run("outbox", "list", "--stream", "trip/north-2").err == ""


def test_retry_lets_one_start_over(run: Run, filled: Path) -> None:
    ran = run("outbox", "retry", _dead(run))

    assert (ran.code, ran.err) == (0, "retried: 1\n")
    (waiting,) = json.loads(run("outbox", "list", "-o", "json").out)
    assert (waiting["dead_at"], waiting["attempts"]) == (None, 0)


def test_retry_of_all_dead(run: Run, filled: Path) -> None:
    assert run("outbox", "retry", "--all-dead").err == "retried: 1\n"
    assert run("outbox", "list", "--dead").err == "no dead effects\n"
    assert run("outbox", "retry", "--all-dead").err == "retried: 0\n"


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_discard_asks_and_takes_no_for_no(run: Run, filled: Path, answer: str) -> None:
    ran = run("outbox", "discard", _dead(run), answer=answer)

    assert ran.code == app.STOPPED
    assert ran.err.endswith("nothing changed\n")
    assert _dead(run)


@pytest.mark.parametrize(("options", "answer"), [(["--yes"], ""), ([], "y\n")])
def test_discard_gives_up_for_ever(run: Run, filled: Path, options: list[str], answer: str) -> None:
    ran = run("outbox", "discard", _dead(run), *options, answer=answer)

    assert ran.code == 0
    assert json.loads(run("outbox", "list", "-o", "json").out) == []


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["retry", "one"], errors.Rejected.exit_code, "not an effect id: one"),
        (["retry", "9.9.9"], errors.NotFound.exit_code, "no dead effect: 9.9.9"),
        (["discard", "9.9.9", "--yes"], errors.NotFound.exit_code, "no dead effect: 9.9.9"),
        (["retry"], app.USAGE, "name one effect, or all of them with --all-dead"),
        (["retry", "1.1.1", "--all-dead"], app.USAGE, "name one effect"),
        (["list", "--stream", "trip"], errors.Rejected.exit_code, "not a stream name: trip/"),
    ],
)
def test_wrong_ids_are_refused(
    run: Run, filled: Path, arguments: list[str], code: int, error: str
) -> None:
    ran = run("outbox", *arguments)

    assert ran.code == code
    assert ran.err.startswith(f"error: {error}")
    assert "\nhint: " in ran.err


def _dead(run: Run) -> str:
    (dead,) = json.loads(run("outbox", "list", "--dead", "-o", "json").out)
    return str(dead["id"])
