"""One round of checks: what is odd about one answer is the error of that check alone."""

import asyncio
import threading
from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answer, Answered, Phase
from fairlead.checks.measure import Round
from fairlead.checks.registry import Registry
from fairlead.checks.spec import Check, CheckKind
from fairlead.checks.subject import Subject
from tests.unit.checks.about import NOW, about


class Answers:
    """A source that says what it was told to say."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    async def ask(self, check: Check, about: Subject) -> Answer:
        del about
        return Answered(self._values[check.name])


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("odd", "value"),
    [
        (Check("odd", "q", high=1), 10**400),
        (Check("odd", "q", success="result < 1"), 10**400),
        (Check("odd", "q", success="result + 1 < 1"), 10**400),
        (Check("odd", "q", success="result / 2 < 1"), 10**400),
        (Check("odd", "q", success="result < 1"), 10**5000),
        (Check("odd", "q", success="result[1/0] < 1"), [1.0, 2.0]),
        (Check("odd", "q", success="result[0/0] < 1"), [1.0, 2.0]),
        (Check("odd", "q", success="result[0] < 1"), nested(3000)),
        (Check("odd", "q", success="result == '5'"), 5),
        (Check("odd", "q", success="'5' != result"), 5),
    ],
    ids=range(10),
)
async def test_an_odd_answer_is_an_error_of_its_check_and_not_of_the_round(
    odd: Check, value: Any
) -> None:
    registry = Registry(usual="said", sources={"said": Answers(odd=value, even=0.5)})
    given = Round(registry, about(10, NOW), NOW)

    then = await given.findings([odd, Check("even", "q", high=1)])

    assert [finding.phase for finding in then] == [Phase.ERROR, Phase.SUCCESSFUL]


class Slow:
    """A source whose series take the judge a while."""

    def __init__(self) -> None:
        self.judged, self.go_on = threading.Event(), threading.Event()

    async def compare(self, check: Check, about: Subject) -> Any:
        del check, about
        return self

    def __getattr__(self, name: str) -> Any:
        # The first look of the judge at the series.
        self.judged.set()
        assert self.go_on.wait(10), "the event loop waits for the judge"
        raise errors.Rejected(f"no such series: {name}", hint="")


async def test_the_judge_does_not_hold_the_event_loop_up() -> None:
    slow = Slow()
    judge = Check("judge", "", CheckKind.JUDGE, judge={"metrics": [{"name": "a", "query": "q"}]})
    given = Round(Registry(usual="slow", sources={"slow": slow}), about(10, NOW), NOW)

    asked = asyncio.create_task(given.findings([judge]))
    await asyncio.to_thread(slow.judged.wait, 10)
    slow.go_on.set()

    assert [finding.phase for finding in await asked] == [Phase.ERROR]


async def test_a_gate_that_cannot_be_asked_is_told_as_one() -> None:
    given = Round(Registry(), about(10, NOW), NOW)

    (found,) = await given.findings([Check("go", "https://gate.example", CheckKind.GATE)])

    assert found.phase is Phase.ERROR
    assert found.reason.startswith("the gate could not be read: no such gate here: webhook")
