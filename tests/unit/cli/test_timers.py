"""Timers in a person's hand."""

import contextlib
import json
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.engine.store import protocol, sqlite
from tests.unit.cli.conftest import Run


@pytest.fixture
def dead(filled: Path) -> None:
    """A timer that its stream refused too often, and one that waits."""
    with contextlib.closing(sqlite.SqliteStore(filled / "fairlead.db").open()) as session:
        number = session.rows("get_stream", name="trip/north-2")[0][0]
        rows = [
            protocol.NewTimer(number, name, 1, 1, "Arrive", 1, '{"leg":1}')
            for name in ("late", "soon")
        ]
        with session.transaction() as transaction:
            transaction.load(protocol.Needed([]))
            transaction.write(protocol.Writes(1, timers=rows))
        values = {"due": 1, "dead": 1, "error": "will not", "attempts": 12}
        session.rows("postpone_timer", stream=number, name="late", seq=1, **values)


def test_the_dead_are_listed_with_why(run: Run, dead: None) -> None:
    (timer,) = json.loads(run("timers", "list", "--dead", "-o", "json").out)

    assert (timer["stream"], timer["name"], timer["command"]) == ("trip/north-2", "late", "Arrive")
    assert (timer["attempts"], timer["error"]) == (12, "will not")
    shown = run("timers", "list").out
    assert "dead" in shown
    assert "waiting" in shown


def test_retry_lets_one_fire_anew(run: Run, dead: None) -> None:
    assert run("timers", "retry", "trip/north-2", "late").err == "retried: late\n"
    assert run("timers", "list", "--dead").err == "no dead timers\n"
    assert len(json.loads(run("timers", "list", "-o", "json").out)) == 2


def test_discard_gives_one_up(run: Run, dead: None) -> None:
    assert run("timers", "discard", "trip/north-2", "late").err == "discarded: late\n"
    assert [each["name"] for each in json.loads(run("timers", "list", "-o", "json").out)] == [
        "soon"
    ]


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_what_is_not_dead_is_not_there(run: Run, dead: None, verb: str) -> None:
    ran = run("timers", verb, "trip/north-2", "soon")

    assert ran.code == errors.NotFound.exit_code
    assert "no dead timer of trip/north-2: soon" in ran.err
