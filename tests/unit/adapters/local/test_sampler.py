"""What the judge gets of both sides, once the new version has all requests."""

import datetime as dt
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead import errors
from fairlead.adapters import envoy
from fairlead.adapters.local.sampler import Sampler
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.spec import Check, Source
from tests.unit.domain.rollouts.world import START, version

JUDGE = {"metrics": [{"name": "request-success-rate"}]}
CHECK = Check("judge", source=Source.JUDGE, judge=JUDGE)


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
    sampler = Sampler(cast("Any", machine), lambda: START + dt.timedelta(seconds=next(moments)))
    began = START + dt.timedelta(seconds=5)
    about = messages.Measure("shop", 1, (CHECK,), version("v1"), version("v2"), 100, began)
    for _ in range(4 + since):
        await sampler._read("shop")
    if not since:
        await sampler._read("shop")

    sides = await sampler.compare(CHECK, about)

    assert len(sides.control["request-success-rate"]) == control
    assert len(sides.experiment["request-success-rate"]) == max(0, since - 1)
