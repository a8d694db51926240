"""What checks and the history of a run get of each side, by Envoy's own counts."""

import datetime as dt
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answered
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.local import envoy_stats
from fairlead.areas.rollouts.local.envoy_stats import EnvoyStats
from fairlead.checks.spec import SUCCESS_RATE, Check, CheckKind
from fairlead.checks.subject import Subject
from fairlead.clients import envoy
from tests.unit.checks.about import NOW as START
from tests.unit.checks.about import version

JUDGE = {"metrics": [{"name": "request-success-rate"}]}
CHECK = Check("judge", kind=CheckKind.JUDGE, judge=JUDGE)


SUCCESS = Check("success", SUCCESS_RATE, low=99)


class Counting:
    """An Envoy before three slots: at each reading, ten more requests of each and one failure."""

    def __init__(self) -> None:
        self.readings = 0

    async def read(self) -> envoy.Reading:
        self.readings += 1
        counts = envoy.Counts({"2": 9 * self.readings, "5": self.readings}, {10.0: 1})
        names = ("primary-v1", "baseline-v1", "canary-v2", "canary-v1")
        return envoy.Reading(dict.fromkeys(names, counts))


class Proxy:
    """An Envoy that answers so many times."""

    def __init__(self, answers: int) -> None:
        self._left = answers

    async def read(self) -> envoy.Reading:
        if not self._left:
            raise errors.Unavailable("no answer of envoy", hint="wait")
        self._left -= 1
        return envoy.Reading({})


@pytest.mark.parametrize(("since", "control"), [(0, 0), (1, 0), (3, 2), (8, 4)])
async def test_control_is_as_long_a_time_before_as_there_is(since: int, control: int) -> None:
    """Five readings before, and so many since; between two of them is a second."""
    moments = iter(range(100))
    proxy = Proxy(5 + since)
    machine = {"shop": SimpleNamespace(proxy=proxy)}
    sampler = EnvoyStats(cast("Any", machine), lambda: START + dt.timedelta(seconds=next(moments)))
    began = START + dt.timedelta(seconds=5)
    about = Subject("shop", 1, version("v1"), version("v2"), 100, began)
    for _ in range(4 + since):
        await sampler._read("shop")
    if not since:
        await sampler._read("shop")

    sides = await sampler.compare(CHECK, about)

    assert len(sides.control["request-success-rate"]) == control
    assert len(sides.experiment["request-success-rate"]) == max(0, since - 1)


def counting() -> tuple[EnvoyStats, Subject]:
    """A reading every second, and a canary that has had its weight since the third."""
    moments = iter(range(10_000))
    machine = {"shop": SimpleNamespace(proxy=Counting())}
    stats = EnvoyStats(cast("Any", machine), lambda: START + dt.timedelta(seconds=next(moments)))
    since = START + dt.timedelta(seconds=2)
    return stats, Subject("shop", 1, version("v1"), version("v2"), 10, since)


async def test_the_traffic_of_a_round_is_what_its_checks_were_answered_from() -> None:
    stats, about = counting()
    for _ in range(5):
        await stats._read("shop")

    answer = await stats.ask(SUCCESS, about)
    traffic = stats.traffic(about)

    assert isinstance(answer, Answered)
    assert answer.requests is not None
    assert [(each.slot, each.requests, each.failed) for each in traffic] == [
        (slot, answer.requests.total, answer.requests.failed) for slot in Slot
    ]
    assert answer.requests.total == 30


async def test_a_step_counts_from_its_start_also_when_that_reading_is_long_gone() -> None:
    stats, about = counting()
    for _ in range(4):
        await stats._read("shop")
    stats.traffic(about)
    for _ in range(2 * envoy_stats.KEPT):
        await stats._read("shop")

    (primary, *_) = stats.traffic(about)

    assert primary.requests == 10 * (2 * envoy_stats.KEPT + 1)


async def test_before_the_first_reading_there_is_no_traffic() -> None:
    stats, about = counting()

    assert stats.traffic(about) == ()
