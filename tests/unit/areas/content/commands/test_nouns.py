"""Releases in the terminal: the list, one closely, and the verbs."""

from dataclasses import replace

import msgspec
import pytest

from fairlead.areas.content import requests
from fairlead.areas.content.commands import nouns
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.requests import CheckResult, Detail, News, PlannedStep, SharePoint
from fairlead.engine.testing import START
from tests.unit.areas.content.domain.release import samples


def detail() -> Detail:
    state = samples.baking().judged().state
    return Detail(
        view.summary(state, START),
        view.open_verbs(state, START),
        (PlannedStep("10", 7200, approve=False, state="here"),),
        (CheckResult("archives", 1, "0.98, at least 0.9"),),
        (SharePoint(START, "10"),),
        (News(START, "ShareSet", "10 %", "fairlead"),),
    )


def test_one_release_is_shown_with_steps_checks_and_history(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nouns.show(detail())

    told = capsys.readouterr().out
    for part in ("10 % get 1.0.2", "pause, abort", "STEPS", "7200 s", "0.98", "(by fairlead)"):
        assert part in told


def test_what_no_worker_performs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    nouns.show(replace(detail(), unserved="no worker serves kubernetes@prod"))

    assert "waiting   no worker serves kubernetes@prod" in capsys.readouterr().out


def test_a_line_and_a_row_tell_where_it_stands() -> None:
    one = detail().release

    assert "gathering  Baking  10 % get 1.0.2" in nouns.line(one)
    assert nouns.RELEASE.row(one)[:6] == ("gathering", "Baking", "1.0.1", "1.0.2", "10 %", "-")


def test_what_the_api_sends_is_what_the_terminal_reads() -> None:
    sent = msgspec.json.encode(detail())

    assert msgspec.json.decode(sent, type=requests.Detail) == detail()
