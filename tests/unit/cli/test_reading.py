"""get, events and watch on a local store."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fairlead import errors
from fairlead.cli import app
from tests.unit.cli.conftest import Run


def test_get_lists_streams_newest_first(run: Run, filled: Path) -> None:
    ran = run("get")

    lines = ran.out.splitlines()
    assert lines[0].split() == ["STREAM", "STATE", "VERSION", "UPDATED", "LIFE"]
    assert [line.split()[0] for line in lines[1:]] == [
        "trip/north-3",
        "trip/north-2",
        "trip/north-1",
        "depot/north",
    ]
    assert ran.err == ""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["depot"], ["depot/north"]),
        (["trip", "--active"], ["trip/north-2"]),
        (["--ended"], ["trip/north-3", "trip/north-1"]),
        (["--limit", "1"], ["trip/north-3"]),
        (["streams", "--limit", "1"], ["trip/north-3"]),
        (["depot", "--where", "trips=3"], ["depot/north"]),
        (["streams", "--where", "trips>2 and open=true"], ["depot/north"]),
        (["--where", "trips>2", "--where", "open=false"], []),
        (["--where", "machine=trip", "--active"], ["trip/north-2"]),
    ],
)
def test_get_shows_what_is_asked_for(
    run: Run, filled: Path, arguments: list[str], names: list[str]
) -> None:
    ran = run("get", *arguments, "-o", "json")

    assert [each["name"] for each in json.loads(ran.out)] == names


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["depot", "--where", "trip=3"], 3, "error: unknown attribute of depot: trip\n"),
        (["depot", "--where", "trip=3"], 3, "hint: did you mean trips? use one of: open, trips\n"),
        (["trip", "--where", "legs=3"], 3, "hint: it has none to search by\n"),
        (["--where", "trips="], 3, "at character 7, expected a value: trips=\n"),
        (["depot/north", "--where", "trips=3"], 2, "--where is for lists"),
        (["rollout", "shop", "--where", "phase=Paused"], 2, "--where is for lists"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    run: Run, filled: Path, arguments: list[str], code: int, told: str
) -> None:
    ran = run("get", *arguments)

    assert ran.code == code
    assert told in ran.err


@pytest.mark.parametrize(
    ("line", "told", "hint"),
    [
        (["get", "rollot"], "unknown kind: rollot", "did you mean rollout?"),
        (["get", "rollot", "shop"], "unknown kind: rollot", "did you mean rollout?"),
        (["get", "nothing"], "unknown kind: nothing", "use one of: application, applications, "),
        (["watch", "rolluots"], "unknown kind: rolluots", "did you mean rollouts?"),
        (["watch", "depo/north"], "unknown kind: depo", "did you mean depot?"),
    ],
)
def test_an_unknown_kind_is_refused_with_the_nearest_one(
    run: Run, filled: Path, line: list[str], told: str, hint: str
) -> None:
    ran = run(*line)

    assert (ran.code, ran.out) == (errors.NotFound.exit_code, "")
    assert f"error: {told}\nhint: {hint}" in ran.err


def test_yaml_says_the_same_as_json(run: Run, filled: Path) -> None:
    for line in (["get"], ["get", "trip/north-1"], ["events", "trip/north-1"]):
        assert yaml.safe_load(run(*line, "-o", "yaml").out) == json.loads(
            run(*line, "-o", "json").out
        )


def test_followed_events_are_a_stream_of_yaml_documents(run: Run, filled: Path) -> None:
    ran = run("events", "trip/north-3", "--follow", "-o", "yaml")

    assert [each["seq"] for each in yaml.safe_load_all(ran.out)] == [1, 2, 3, 4, 5]


def test_get_of_one_stream(run: Run, filled: Path) -> None:
    ran = run("get", "trip/north-1", "-o", "json")

    shown = json.loads(ran.out)
    assert (shown["state"], shown["data"], shown["version"]) == ("Home", {"legs": 3}, 5)
    assert shown["ended_at"] is not None
    assert "state    Home" in run("get", "trip/north-1").out


def test_an_empty_list_is_said_beside_the_data(run: Run) -> None:
    run("store", "migrate")

    ran = run("get")

    assert (ran.code, ran.out, ran.err) == (0, "", "no streams\n")
    assert json.loads(run("get", "-o", "json").out) == []


def test_events_in_order(run: Run, filled: Path) -> None:
    ran = run("events", "trip/north-1", "-o", "json")

    seen = [(each["seq"], each["type"]) for each in json.loads(ran.out)]
    assert seen == [
        (1, "Departed"),
        (2, "LegDriven"),
        (3, "LegDriven"),
        (4, "LegDriven"),
        (5, "Arrived"),
    ]
    pattern = r"\S+ \S+Z  trip/north-1  5  Arrived  \{\"legs\":3\}"
    assert re.fullmatch(pattern, run("events", "trip/north-1").out.splitlines()[-1])


def test_events_after_a_number(run: Run, filled: Path) -> None:
    ran = run("events", "trip/north-1", "--after", "4", "-o", "json")

    assert [each["seq"] for each in json.loads(ran.out)] == [5]


def test_following_ends_with_the_stream(run: Run, filled: Path) -> None:
    ran = run("events", "trip/north-3", "--follow", "-o", "json")

    assert [json.loads(line)["seq"] for line in ran.out.splitlines()] == [1, 2, 3, 4, 5]


def test_watch_shows_new_events_until_ctrl_c(run: Run, filled: Path) -> None:
    command = [sys.executable, "-m", "fairlead", "watch", "depot/south", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        # It says so when it looks at the end of the feed; what comes later is new.
        assert watching.stderr.readline() == b"watching; press Ctrl-C to stop\n"
        assert watching.stderr.readline() == b"no such stream yet: depot/south\n"
        run("submit", "depot/west", "Order", '{"depot": "west", "trips": 1}')
        run("submit", "depot/south", "Order", '{"depot": "south", "trips": 1}')
        first = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        code = watching.wait(30)

    assert (first["stream"], first["type"], first["seq"]) == ("depot/south", "Ordered", 1)
    assert code == app.STOPPED


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["get", "Trip/x"], errors.Rejected, "not a stream name: Trip/x"),
        (["get", "trip/nobody"], errors.NotFound, "no such stream: trip/nobody"),
        (["get", "tripp/nobody"], errors.NotFound, "unknown kind: tripp"),
        (["events", "tripp/nobody"], errors.NotFound, "unknown kind: tripp"),
        (["events", "trip"], errors.Rejected, "not a stream name: trip/"),
        (["events", "trip/nobody"], errors.NotFound, "no such stream: trip/nobody"),
        (["watch", "--since", "yesterday"], errors.Rejected, "not a place in the feed: yesterday"),
    ],
)
def test_wrong_names_are_refused(
    run: Run, filled: Path, arguments: list[str], code: type[errors.FairleadError], error: str
) -> None:
    ran = run(*arguments)

    assert ran.code == code.exit_code
    assert ran.err.startswith(f"error: {error}\nhint: ")


def test_looking_creates_nothing(run: Run, state_dir: Path) -> None:
    ran = run("get")

    assert ran.code == errors.NotFound.exit_code
    assert "error: no database here: " in ran.err
    assert not state_dir.exists()
