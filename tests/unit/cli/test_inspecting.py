"""history and logs, as they are typed."""

import json
import time
from pathlib import Path

import pytest

from fairlead.cli import app
from tests.unit.areas.rollouts.commands.test_nouns import Type, behind, halfway, type_in
from tests.unit.cli.conftest import Run
from tests.unit.console.test_remote import Plane, plane

__all__ = ["behind", "halfway", "plane", "type_in"]


def test_each_run_is_told_with_its_reasons(halfway: Path, type_in: Type) -> None:
    running = type_in("history", "shop").out.splitlines()
    type_in("abort", "shop", "--why", "too slow")
    ended = json.loads(type_in("history", "shop", "-o", "json").out)

    assert running[0].split() == [
        *("RUN", "VERSION", "REVISION", "STARTED", "TOOK", "OUTCOME", "WHY")
    ]
    assert running[1].split()[:3] == ["1", "v2", "shop-v2"]
    assert running[1].endswith("in progress  v2 was requested")
    assert [run["version"] for run in ended] == ["v2"]


def test_an_unknown_name_has_no_history(halfway: Path, type_in: Type) -> None:
    assert type_in("history", "shpo").code == 4


def page(next_: str, *texts: str) -> dict[str, object]:
    return {"lines": [{"source": "primary-r1.0", "text": text} for text in texts], "next": next_}


def test_logs_are_told_with_their_process(run: Run, plane: Plane) -> None:
    plane.says("/rollouts/shop/logs", page("5", "hello", "\x1b[31mred"))

    ran = run("logs", "shop", "--tail", "2", "--version", "v1")

    assert ran.out == "primary-r1.0 | hello\nprimary-r1.0 | \N{REPLACEMENT CHARACTER}[31mred\n"
    assert plane.asked[-1][1] == {"version": ["v1"], "tail": ["2"]}


def test_logs_are_followed_until_ctrl_c(
    run: Run, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane.says("/rollouts/shop/logs", page("5", "hello"))
    turns = iter((page("9", "more"), page("9")))

    def in_between(_: float) -> None:
        turn = next(turns, None)
        if turn is None:
            raise KeyboardInterrupt
        plane.says("/rollouts/shop/logs", turn)

    monkeypatch.setattr(time, "sleep", in_between)

    ran = run("logs", "-f", "shop", "-o", "json")

    assert ran.code == app.STOPPED
    assert [json.loads(line)["text"] for line in ran.out.splitlines()] == ["hello", "more"]
    assert [asked.get("after") for _, asked in plane.asked] == [None, ["5"], ["9"]]


def test_silence_is_said(run: Run, plane: Plane) -> None:
    plane.says("/rollouts/shop/logs", page(""))

    ran = run("logs", "shop")

    assert (ran.code, ran.out, ran.err) == (0, "", "nothing was written yet\n")
