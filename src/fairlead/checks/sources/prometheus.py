"""The numbers of a rollout from Prometheus: one for a check, series of both sides for the judge.

A number is taken over the check's window, but never from before the canary had its weight: a proxy
counts the canary of today under the same name as that of the last run, whose failures would
otherwise be held against this one.
"""

import asyncio
import contextlib
import datetime as dt
import functools
import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import msgspec

from fairlead import errors
from fairlead.analysis import conditions, fields
from fairlead.analysis.conditions import Answer
from fairlead.analysis.requests import Requests
from fairlead.analysis.samples import Counted, Measured, Series
from fairlead.checks import queries, servers
from fairlead.checks.provider import Problem, Provider, World, tried
from fairlead.checks.servers import Servers
from fairlead.checks.spec import (
    BUILT_IN,
    REQUEST_COUNT,
    SUCCESS_RATE,
    Check,
    CheckKind,
    When,
)
from fairlead.checks.subject import Names, Naming, Side, Subject
from fairlead.clients.prometheus import NoData, SeriesSet, Shared, Values, outcome
from fairlead.settings import MeasureSettings

MOST_MOMENTS = 1000
"""Prometheus gives at most 11,000 points; the newest thousand are enough for any test."""

MOST_METRICS = 100
"""Of one judge; each is two queries in every round, a success rate with its requests four."""

WHOLE = 100
Sample = float | None


class PrometheusSource:
    """The ports `MetricSource` and `Comparing`."""

    def __init__(
        self,
        servers: Servers,
        naming: Naming,
        now: Callable[[], dt.datetime],
        deadline_seconds: float = 20.0,
    ) -> None:
        self._servers = servers
        self._naming = naming
        self._now = now
        self._deadline_seconds = deadline_seconds

    async def ask(self, check: Check, about: Subject) -> Answer:
        """Of the canary; at the start, before there is one, of the primary."""
        try:
            async with self._deadline():
                found, requests = await asyncio.gather(
                    self._instant(check, about, check.query), self._requests(check, about)
                )
            match found:
                case NoData(reason):
                    return conditions.Silent(reason)
                case Values():
                    value = _value(check, found)
                    return conditions.Answered(value, _counted(check, value, requests))
        except errors.FairleadError as error:
            return conditions.Unanswered(f"{error.message}; {error.hint}")

    async def compare(self, check: Check, about: Subject) -> Series:
        """One sample for each window since the canary has its weight, at the same moments."""
        step = max(1, int(check.span.total_seconds()))
        experiment, control = moments(about, self._now(), step)
        config = msgspec.convert(check.judge, fields.Config)
        shared = self._servers.of(check.server, about.name)
        async with self._deadline():
            series = await asyncio.gather(
                *(
                    self._measured(shared, (metric, side, at), check, about)
                    for metric in config.metrics
                    for side, at in ((about.control, control), (Side.CANARY, experiment))
                )
            )
        names = [metric.name for metric in config.metrics]
        return Series(
            dict(zip(names, series[::2], strict=True)), dict(zip(names, series[1::2], strict=True))
        )

    async def _instant(self, check: Check, about: Subject, asked: str) -> Values | NoData:
        at_start = check.when is When.START
        side = Side.PRIMARY if at_start else Side.CANARY
        window = check.span if at_start else min(check.span, self._now() - about.since)
        metrics, given = queries.arguments(self._naming, about, side, window)
        query = queries.rendered(asked, metrics, given)
        return await self._servers.of(check.server, about.name).instant(query)

    async def _requests(self, check: Check, about: Subject) -> float | None:
        """Of how many requests a built-in metric is, where they are counted."""
        counted = self._naming(about, Side.CANARY).metrics
        if check.query not in BUILT_IN or REQUEST_COUNT not in counted:
            return None
        found = await self._instant(check, about, REQUEST_COUNT)
        return found.only() if isinstance(found, Values) else None

    async def _measured(
        self,
        shared: Shared,
        wanted: tuple[fields.Metric, Side, Sequence[float]],
        check: Check,
        about: Subject,
    ) -> Measured:
        """A built-in success rate with the requests it is of, where both sides count them."""
        metric, side, at = wanted
        metrics, given = queries.arguments(self._naming, about, side, check.span)
        asked = queries.of_metric(metric)
        sides = (self._naming(about, each).metrics for each in (about.control, Side.CANARY))
        counted = asked == SUCCESS_RATE and all(REQUEST_COUNT in known for known in sides)
        series = await asyncio.gather(
            *(
                _sampled(shared, queries.rendered(query, metrics, given), metric.name, at)
                for query in ((asked, REQUEST_COUNT) if counted else (asked,))
            )
        )
        return failures(*series) if counted else series[0]

    @contextlib.asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """Ends all waiting, for our own turn too; a round that takes longer would be lost."""
        try:
            async with asyncio.timeout(self._deadline_seconds):
                yield
        except TimeoutError as error:
            raise errors.Unavailable(
                f"no answer of prometheus within {self._deadline_seconds:g} s, waiting included",
                hint="see whether it is overloaded, or ask it for less",
            ) from error


def provider(chosen: MeasureSettings) -> Provider[PrometheusSource]:
    known = servers.from_settings(chosen)

    def problems(check: Check, release: str, names: Names) -> Iterator[Problem]:
        field = "server" if check.server else "query"
        yield from tried(field, lambda: known.check(check.server, release))
        if check.kind is CheckKind.JUDGE:
            yield from _judge_problems(check, names)
        else:
            yield from _query_problems("query", check, check.query, names)

    @contextlib.asynccontextmanager
    async def opened(world: World) -> AsyncIterator[PrometheusSource]:
        async with known.open(chosen.prometheus_tick_seconds):
            yield PrometheusSource(known, world.naming, world.now)

    return Provider(opened, problems, compares=True)


def _judge_problems(check: Check, names: Names) -> Iterator[Problem]:
    metrics = msgspec.convert(check.judge, fields.Config).metrics
    if len(metrics) > MOST_METRICS:
        yield "judge.metrics", f"more than {MOST_METRICS} metrics: {len(metrics)}"
        return
    for index, metric in enumerate(metrics):
        field = f"judge.metrics[{index}].query"
        found = list(tried(field, functools.partial(queries.of_metric, metric)))
        yield from found or _query_problems(field, check, queries.of_metric(metric), names)


def _query_problems(field: str, check: Check, query: str, names: Names) -> Iterator[Problem]:
    try:
        made = queries.rendered(query, names.metrics, queries.sample(check, names))
    except errors.Rejected as error:
        yield field, f"{error.message}; {error.hint}"
        return
    wrong = queries.unclosed(made)
    if wrong is not None:
        yield field, f"not closed, or closed without a beginning: {wrong}"


def moments(about: Subject, now: dt.datetime, step: int) -> tuple[Sequence[float], Sequence[float]]:
    """When both sides are sampled: the canary, and the primary beside it.

    All rollouts sample at multiples of the step, so that equal queries are one. The first window
    begins after the canary got its weight. Once the canary has all traffic the primary has none;
    then the same number of windows before that moment stand for it.
    """
    since = about.since.timestamp()
    first = math.ceil(since / step) * step + step
    count = max(0, int((now.timestamp() - first) // step) + 1)
    first += max(0, count - MOST_MOMENTS) * step
    count = min(count, MOST_MOMENTS)
    experiment = [float(first + index * step) for index in range(count)]
    if about.weight < WHOLE:
        return experiment, experiment
    last = math.floor(since / step) * step
    return experiment, [float(last - index * step) for index in reversed(range(count))]


def _value(check: Check, found: Values) -> float | list[float]:
    if check.query in BUILT_IN or conditions.one_number(check.criteria()):
        return found.only()
    return [sample.value for sample in found.samples]


def _counted(check: Check, value: object, requests: float | None) -> Requests | None:
    """The requests behind a value; failures by the rate, which is of the same requests."""
    total = round(requests) if requests is not None and math.isfinite(requests) else 0
    if total < 1 or not isinstance(value, float) or not math.isfinite(value):
        return None
    failed = round(total * (1 - value / WHOLE)) if check.query == SUCCESS_RATE else None
    return Requests(total, failed)


async def _sampled(shared: Shared, query: str, metric: str, at: Sequence[float]) -> list[Sample]:
    """The query's answer at each of the moments, which are evenly apart."""
    if not at:
        return []
    step = at[1] - at[0] if len(at) > 1 else 1.0
    found = await shared.over(query, (at[0], at[-1]), step)
    match found:
        case NoData():
            return [None] * len(at)
        case SeriesSet():
            return _aligned(_only(found, metric), at)


def failures(rates: Sequence[Sample], counts: Sequence[Sample]) -> Counted:
    """What failed of how many requests, moment by moment."""
    known = [_of_moment(rate, count) for rate, count in zip(rates, counts, strict=True)]
    failed, requests = (tuple(each[place] for each in known) for place in (0, 1))
    return Counted(failed, requests, of_failures=True)


def _of_moment(rate: Sample, count: Sample) -> tuple[int, int]:
    """Failures and requests; none where one of the two is not known."""
    if rate is None or count is None or not math.isfinite(rate * count):
        return 0, 0
    total = max(0, round(count))
    return min(max(0, round(total * (1 - rate / WHOLE))), total), total


def _only(found: SeriesSet, metric: str) -> outcome.Series:
    if len(found.series) > 1:
        raise errors.Rejected(
            f"query of metric {metric} gives several series instead of one: {len(found.series)}",
            hint="aggregate them, for instance with sum() or max()",
        )
    return found.series[0]


def _aligned(series: outcome.Series, at: Sequence[float]) -> list[Sample]:
    given = dict(series.points)
    return [given.get(moment) for moment in at]
