"""At which moments both sides are sampled, and of how many requests a rate is."""

import dataclasses
import datetime as dt
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.analysis.conditions import Answered
from fairlead.analysis.requests import Requests
from fairlead.analysis.samples import Counted
from fairlead.checks import verdicts
from fairlead.checks.servers import Servers
from fairlead.checks.sources.prometheus import MOST_MOMENTS, PrometheusSource, failures, moments
from fairlead.checks.spec import SUCCESS_RATE, Check, CheckKind
from fairlead.checks.subject import Names, Side, Subject
from fairlead.clients.prometheus import NoData, SeriesSet, Values, outcome
from tests.unit.checks.about import MINUTE, NOW, about, naming

STEP = 30


def seconds(after: float) -> dt.datetime:
    return NOW + dt.timedelta(seconds=after)


@pytest.mark.parametrize(
    ("since", "now", "expected"),
    [
        (0, 29, []),
        (0, 30, [30]),
        (0, 59, [30]),
        (0, 95, [30, 60, 90]),
        (1, 60, [60]),
        (1, 59, []),
        (-0.5, 30, [30]),
        (10, 5, []),
    ],
)
def test_a_window_lies_between_the_weight_and_now(
    since: float, now: float, expected: list[int]
) -> None:
    experiment, control = moments(about(10, seconds(since)), seconds(now), STEP)

    assert experiment == control == [NOW.timestamp() + each for each in expected]


def test_once_all_traffic_has_moved_control_is_what_came_before() -> None:
    experiment, control = moments(about(100, seconds(10)), seconds(125), STEP)

    assert experiment == [NOW.timestamp() + each for each in (60, 90, 120)]
    assert control == [NOW.timestamp() + each for each in (-60, -30, 0)]


@given(
    since=st.floats(0, 10_000),
    length=st.floats(0, 100_000),
    step=st.integers(1, 600),
    weight=st.sampled_from([5, 100]),
)
def test_sides_are_even_aligned_and_never_too_many(
    since: float, length: float, step: int, weight: int
) -> None:
    began, now = seconds(since), seconds(since + length)

    experiment, control = moments(about(weight, began), now, step)

    assert len(experiment) == len(control) <= MOST_MOMENTS
    assert all(at % step == 0 for at in (*experiment, *control))
    assert all(began.timestamp() + step <= at <= now.timestamp() for at in experiment)
    if weight == 100:
        assert all(at <= began.timestamp() for at in control)


class Answers:
    """Servers of which each answers a rate of 17 requests."""

    def of(self, _name: str, _rollout: str) -> "Answers":
        return self

    async def instant(self, query: str) -> Values:
        value = 100 * 11 / 17 if "rate(" in query else 17.0
        return Values((outcome.Sample({}, value, 0.0),))


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (Check("c", "request-success-rate", low=99), Requests(17, 6)),
        (Check("c", "request-success-rate", success="result > 99"), Requests(17, 6)),
        (Check("c", "request-duration", high=200), Requests(17)),
        (Check("c", "sum(rate(mine[1m]))", low=99), None),
    ],
)
async def test_a_built_in_metric_tells_its_requests(
    check: Check, expected: Requests | None
) -> None:
    source = PrometheusSource(cast("Servers", Answers()), naming, lambda: NOW)

    answer = await source.ask(check, about())

    assert isinstance(answer, Answered)
    assert answer.requests == expected
    told = verdicts.of_answer(check, answer).reason
    assert ("6 of 17 requests failed: 64.7 %, at least 99 % required" in told) is (
        check.low is not None and expected is not None
    )


class Ranges:
    """Servers of which each answers a rate and a count a moment; the last two have no request."""

    def of(self, _name: str, _rollout: str) -> "Ranges":
        return self

    async def over(self, query: str, span: tuple[float, float], step: float) -> SeriesSet | NoData:
        # Of the canary 3 of 40 fail a minute, of the primary 1 of 360.
        canary = "shop-canary" in query
        failed, total = (3, 40) if canary else (1, 360)
        value = 100 * (1 - failed / total) if "rate(" in query else float(total)
        at = [span[0] + step * place for place in range(int((span[1] - span[0]) / step) + 1)]
        points = [(moment, value) for moment in at[:-2]]
        if "rate(" not in query:
            points.append((at[-2], 0.0))
        return SeriesSet((outcome.Series({}, tuple(points)),))


SUCCESS = {"metrics": [{"name": "request-success-rate"}]}


async def test_the_judge_gets_a_success_rate_as_counts_with_their_requests() -> None:
    check = Check("all", kind=CheckKind.JUDGE, judge=SUCCESS, window=MINUTE)
    source = PrometheusSource(cast("Servers", Ranges()), naming, lambda: NOW)

    sides = await source.compare(check, about())

    name = "request-success-rate"
    assert sides.control[name] == Counted((1,) * 8 + (0, 0), (360,) * 8 + (0, 0), of_failures=True)
    assert sides.experiment[name] == Counted(
        (3,) * 8 + (0, 0), (40,) * 8 + (0, 0), of_failures=True
    )


@pytest.mark.parametrize(
    ("rate", "count", "expected"),
    [
        (90.0, 40.0, (4, 40)),
        (None, 40.0, (0, 0)),
        (90.0, None, (0, 0)),
        (90.0, float("inf"), (0, 0)),
        (float("-inf"), 40.0, (0, 0)),
        (101.0, 40.0, (0, 40)),
        (-900.0, 40.0, (40, 40)),
        (90.0, -1.0, (0, 0)),
    ],
)
def test_a_number_that_no_rate_can_be_makes_no_failures_of_it(
    rate: float | None, count: float | None, expected: tuple[int, int]
) -> None:
    made = failures([rate], [count])

    assert (made.events, made.requests) == ((expected[0],), (expected[1],))


async def test_where_nobody_counts_requests_a_success_rate_is_a_series() -> None:
    def rates_only(asked: Subject, side: Side) -> Names:
        names = naming(asked, side)
        return dataclasses.replace(
            names, metrics={name: names.metrics[name] for name in (SUCCESS_RATE,)}
        )

    check = Check("all", kind=CheckKind.JUDGE, judge=SUCCESS, window=MINUTE)
    source = PrometheusSource(cast("Servers", Ranges()), rates_only, lambda: NOW)

    sides = await source.compare(check, about())

    assert sides.experiment[SUCCESS_RATE] == [92.5] * 8 + [None, None]
