"""A new metric source is one new file: here it is, and nothing else was edited."""

import datetime as dt
from pathlib import Path

import pytest

from fairlead.analysis.conditions import Phase
from fairlead.areas.rollouts import handlers, rules
from fairlead.areas.rollouts.domain import messages
from fairlead.checks import providers, sources, wiring
from fairlead.checks.registry import Registry
from fairlead.checks.subject import Side
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
