"""Waiting for what was deployed: what is shown meanwhile, and how each end is told."""

import io
import itertools
import sys
import time
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from fairlead import errors
from fairlead.console import remote, waiting
from fairlead.console.nouns import Noun, Progress

NOWHERE = remote.ServerSource(remote.parse_server("http://127.0.0.1:1", ""))


def noun(*states: str | Exception) -> Noun:
    """Things that go through these states, and stay in the last one."""
    left = itertools.chain(states, itertools.repeat(states[-1]))

    def find(_source: Any, _name: str) -> str:
        state = next(left)
        if isinstance(state, Exception):
            raise state
        return state

    def nothing(*_: Any) -> Sequence[Any]:
        return ()

    return Noun(
        *("trip", "trips", nothing, find, (), nothing),
        show=lambda _: None,
        line=lambda one: f"trip a is {one}",
        progress=progress,
    )


def progress(state: Any, revision: str) -> Progress:
    ends: dict[str, Literal["done", "failed", "paused", "replaced"]] = {
        "home": "done",
        "lost": "failed",
        "halted": "paused",
        "other": "replaced",
    }
    return Progress(ends.get(state, "working"), f"{state} {revision}", "call", (f"[{state}]", "-"))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_each_change_is_a_line_until_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    ended = waiting.wait(noun("far", "far", "near", "home"), NOWHERE, "a", "r1", None)

    assert ended.why == "home r1"
    assert capsys.readouterr().err.splitlines() == [
        "trip a is far",
        "trip a is near",
        "trip a is home",
    ]


@pytest.mark.parametrize(
    ("state", "fate", "code"),
    [
        ("lost", waiting.DeployRolledBack, 20),
        ("halted", waiting.DeployPaused, 21),
        ("other", errors.Conflict, 6),
    ],
)
def test_every_other_end_has_its_exit_code(
    state: str, fate: type[errors.FairleadError], code: int
) -> None:
    with pytest.raises(fate) as caught:
        waiting.wait(noun("far", state), NOWHERE, "a", "r1", None)

    assert (caught.value.message, caught.value.hint) == (f"a: {state} r1", "call")
    assert caught.value.exit_code == code


def test_what_takes_too_long_goes_on_without_us() -> None:
    with pytest.raises(waiting.DeployTimedOut) as caught:
        waiting.wait(noun("far"), NOWHERE, "a", "r1", 0)

    assert caught.value.message == "a was not done within 0 s: far r1"
    assert (caught.value.exit_code, caught.value.hint) == (22, "it goes on: fairlead watch trip a")


def test_who_stops_waiting_hears_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", stop)
    with pytest.raises(KeyboardInterrupt):
        waiting.wait(noun("far"), NOWHERE, "a", "r1", None)

    assert capsys.readouterr().err.splitlines()[-1] == "it goes on: fairlead watch trip a"


def test_a_server_that_is_away_for_a_moment_is_waited_for() -> None:
    away = errors.Unavailable("the server did not answer", hint="wait")

    assert waiting.wait(noun("far", away, away, "home"), NOWHERE, "a", "r1", None).state == "done"
    with pytest.raises(errors.Unavailable, match="did not answer"):
        waiting.wait(noun(away), NOWHERE, "a", "r1", None)


def test_a_terminal_gets_the_steps_drawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        """Standard error of somebody who watches."""

        def isatty(self) -> bool:
            return True

    drawn = Terminal()
    monkeypatch.setattr(sys, "stderr", drawn)
    monkeypatch.setenv("TERM", "xterm")

    waiting.wait(noun("far", "home"), NOWHERE, "a", "r1", None)

    said = drawn.getvalue()
    assert "[far]" in said
    assert "[home]" in said
    assert "\x1b[1A" in said
    assert "trip a is" not in said
