"""A new metric source, gate or notifier is one new file: nothing else was edited."""

import datetime as dt
from pathlib import Path

import pytest

from fairlead import loading
from fairlead.analysis.conditions import Phase
from fairlead.areas.rollouts import handlers, rules
from fairlead.areas.rollouts.domain import messages
from fairlead.checks import gates, notifiers, providers, sources, wiring
from fairlead.checks.registry import Registry
from fairlead.checks.spec import Check, CheckKind
from fairlead.checks.subject import News, Side
from fairlead.engine import outbox
from fairlead.engine.messages import StreamName
from fairlead.settings import MeasureSettings
from tests.fakes.rollouts import FakePlatform
from tests.unit.areas.rollouts.domain.world import version
from tests.unit.checks.about import NOW, about, naming

FILE = '''
"""A source that knows how long a query is."""

import contextlib

from fairlead.analysis.conditions import Answered
from fairlead.checks.provider import Provider


class Letters:
    async def ask(self, check, about):
        return Answered(float(len(check.query)))


def provider(settings):
    @contextlib.asynccontextmanager
    async def opened(world):
        yield Letters()

    return Provider(opened, lambda check, release, names: [("query", "empty")] * (not check.query))
'''


GATE = '''
"""A gate that opens where its query says so."""

import contextlib

from fairlead.checks.provider import Provider


class Doorman:
    async def is_open(self, check, about):
        return check.query == "please", "asked nicely"


def provider(settings):
    @contextlib.asynccontextmanager
    async def opened(world):
        yield Doorman()

    return Provider(opened, lambda check, release, names: [("query", "empty")] * (not check.query))
'''
NOTIFIER = '''
"""A notifier that keeps what it hears."""

import contextlib

from fairlead.checks.provider import Provider

HEARD = []


class Diary:
    async def notify(self, news):
        HEARD.append(news.text)


def provider(settings):
    @contextlib.asynccontextmanager
    async def opened(world):
        yield Diary()

    return Provider(opened)
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "letters.py").write_text(FILE)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])


@pytest.mark.usefixtures("folder")
async def test_a_check_is_answered_by_a_source_that_is_only_a_file() -> None:
    written = {"name": "short", "query": "abc", "source": "letters", "high": 2}
    (check,) = rules.spec(rules.convert({"checks": [written]}, rules.Rules)).checks
    since = NOW - dt.timedelta(minutes=5)
    asked = messages.Measure("shop", 1, (check,), version("v1"), version("v2"), 10, since)
    registry, platform = Registry(), FakePlatform()

    async with wiring.opened(MeasureSettings(), registry, naming, lambda: NOW):
        world = handlers.RolloutPorts(platform, platform, platform, registry, lambda: NOW)
        context = outbox.EffectContext(StreamName("rollout/shop"), "key", 1)
        judged = await handlers.handlers(world)[messages.Measure].perform(asked, context)

    assert isinstance(judged, messages.Judged)
    (finding,) = judged.findings
    assert finding.phase is Phase.FAILED
    assert "3" in finding.reason
    assert list(registry.sources) == []


@pytest.mark.usefixtures("folder")
def test_what_it_refuses_is_refused_before_anything_is_asked() -> None:
    names = naming(about(), Side.CANARY)
    known = providers.found(MeasureSettings())
    given = {"name": "short", "source": "letters"}
    empty, sound = (
        rules.spec(rules.convert({"checks": [given | {"query": query}]}, rules.Rules)).checks[0]
        for query in ("", "abc")
    )

    assert known.problems(empty, "team/shop", names) == (("query", "empty"),)
    assert known.problems(sound, "team/shop", names) == ()


async def test_a_gate_that_is_only_a_file_is_asked_and_says_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "doorman.py").write_text(GATE)
    monkeypatch.setattr(gates, "__path__", [*gates.__path__, str(tmp_path)])
    registry, names = Registry(), naming(about(), Side.CANARY)
    asked, refused, empty = (
        Check("ask", query, CheckKind.GATE, source="doorman") for query in ("please", "now", "")
    )

    async with wiring.opened(MeasureSettings(), registry, naming, lambda: NOW):
        told = [await registry.gate(each).is_open(each, about()) for each in (asked, refused)]

    assert told == [(True, "asked nicely"), (False, "asked nicely")]
    known = providers.found(MeasureSettings())
    assert known.problems(empty, "team/shop", names) == (("query", "empty"),)
    assert known.problems(asked, "team/shop", names) == ()


async def test_a_notifier_that_is_only_a_file_hears_the_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "diary.py").write_text(NOTIFIER)
    monkeypatch.setattr(notifiers, "__path__", [*notifiers.__path__, str(tmp_path)])
    registry = Registry()

    async with wiring.opened(MeasureSettings(), registry, naming, lambda: NOW):
        await registry.notify(News("team/shop", "Promoted", "v2 has all traffic", NOW))

    heard = loading.load("fairlead.checks.notifiers.diary:HEARD", list)
    assert heard == ["v2 has all traffic"]
