"""Who answers is found by name, and everybody hears the news."""

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answer, Answered
from fairlead.checks.registry import Registry
from fairlead.checks.spec import Check, CheckKind
from fairlead.checks.subject import News, Subject
from tests.unit.checks.about import NOW

NEWS = News("shop", "Promoted", "v2", NOW)


class Constant:
    async def ask(self, check: Check, about: Subject) -> Answer:
        return Answered(1.0)


class Listener:
    def __init__(self, *, deaf: bool = False) -> None:
        self.heard: list[News] = []
        self._deaf = deaf

    async def notify(self, news: News) -> None:
        if self._deaf:
            raise errors.Unavailable("nobody listens", hint="wait")
        self.heard.append(news)


def test_a_check_that_names_no_source_is_answered_by_the_usual_one() -> None:
    usual, other = Constant(), Constant()
    registry = Registry("envoy", {"envoy": usual, "web": other})

    assert registry.source(Check("a", "up")) is usual
    assert registry.source(Check("a", "up", source="web")) is other


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (Check("a", "up", source="datadog"), "no such metric source here: datadog"),
        (Check("a", "up", CheckKind.GATE), "no such gate here: webhook"),
    ],
)
def test_who_is_not_there_is_said_with_who_is(check: Check, said: str) -> None:
    registry = Registry("envoy", {"envoy": Constant()})

    with pytest.raises(errors.Rejected, match=said) as caught:
        (registry.gate if check.kind is CheckKind.GATE else registry.source)(check)

    assert "known are: " in caught.value.hint


def test_a_source_without_series_cannot_compare() -> None:
    registry = Registry("envoy", {"envoy": Constant()})

    with pytest.raises(errors.Rejected, match="no series to compare: envoy"):
        registry.comparing(Check("a"))


async def test_one_who_cannot_hear_keeps_no_news_from_the_others() -> None:
    first, last = Listener(), Listener()
    registry = Registry(notifiers={"first": first, "deaf": Listener(deaf=True), "last": last})

    with pytest.raises(errors.Unavailable, match="nobody listens"):
        await registry.notify(NEWS)

    assert first.heard == last.heard == [NEWS]


def test_those_of_another_registry_leave_with_it() -> None:
    ours, theirs = Constant(), Constant()
    registry = Registry("envoy", {"envoy": ours})

    with registry.joined(Registry("", {"prometheus": theirs}, {}, {"log": Listener()})):
        assert registry.source(Check("a", source="prometheus")) is theirs

    assert (registry.sources, registry.notifiers) == ({"envoy": ours}, {})
