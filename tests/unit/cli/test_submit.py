"""Commands by hand."""

import json
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.cli import app
from fairlead.engine import messages
from tests.unit.cli.conftest import Run

ORDER = '{"depot": "south", "trips": 2}'


def test_a_command_lands_in_its_stream(run: Run, filled: Path) -> None:
    ran = run("submit", "depot/south", "Order", ORDER, "--id", "mine", "-o", "json")

    assert json.loads(ran.out) == {
        "stream": "depot/south",
        "id": "mine",
        "first": 1,
        "last": 3,
        "duplicate": False,
    }
    assert "Busy" in run("get", "depot/south").out


def test_the_same_id_twice_is_taken_once(run: Run, filled: Path) -> None:
    run("submit", "depot/south", "Order", ORDER, "--id", "mine")

    again = run("submit", "depot/south", "Order", ORDER, "--id", "mine")
    other = run("submit", "depot/south", "Order", '{"depot": "x", "trips": 1}', "--id", "mine")

    assert again.out == "depot/south  mine  events 1 to 3; already applied\n"
    assert other.code == errors.Conflict.exit_code


def test_without_an_id_each_counts(run: Run, filled: Path) -> None:
    first = run("submit", "depot/south", "Order", ORDER).out.split()
    second = run("submit", "depot/south", "Order", ORDER).out.split()

    assert first[1] != second[1]
    assert json.loads(run("get", "depot/south", "-o", "json").out)["data"]["ordered"] == 4


def test_fields_from_standard_input(run: Run, filled: Path) -> None:
    assert run("submit", "depot/south", "Order", "-", answer=ORDER).code == 0


def test_what_changes_nothing_says_so(run: Run, filled: Path) -> None:
    ran = run("submit", "depot/north", "ChildEnded", ENDED, "--id", "back")

    assert ran.out == "depot/north  back  nothing changed\n"


ENDED = '{"child": "trip/north-1", "succeeded": true}'
HUGE = json.dumps({"depot": "x" * (messages.MAX_PAYLOAD_BYTES + 1), "trips": 1})


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["depot/south", "Order", "{"], 3, "malformed JSON: "),
        (["depot/south", "Order", "[1]"], 3, "malformed JSON: "),
        (["depot/south", "Order", "{}"], 3, "malformed depot command Order: "),
        (["depot/south", "Order", '{"depot": 1, "trips": 1}'], 3, "malformed depot command"),
        (["depot/south", "Sail", "{}"], 3, "not a depot command: Sail"),
        (["gadget/south", "Order", ORDER], 4, "no such machine: gadget"),
        (["depot", "Order", ORDER], 3, "not a stream name: depot/"),
        (["depot/south", "Order", ORDER, "--id", ""], 3, "not a command id: ''"),
        (["depot/south", "Order", '{"depot": "x", "trips": 0}'], 3, "nothing to drive: "),
        (["depot/south", "Order", "-"], 3, "depot command Order is too large: "),
    ],
)
def test_a_wrong_command_is_refused_and_nothing_is_written(
    run: Run, filled: Path, arguments: list[str], code: int, error: str
) -> None:
    ran = run("submit", *arguments, answer=HUGE)

    assert ran.code == code
    assert ran.err.startswith(f"error: {error}")
    assert "\nhint: " in ran.err
    assert run("get", "depot/south").code == errors.NotFound.exit_code


def test_an_installation_without_machines_says_which_it_knows(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = app.run(["submit", "gadget/south", "Order", ORDER])

    assert code == errors.NotFound.exit_code
    assert "hint: known machines: " in capsys.readouterr().err
