"""The numbers of a rollout from Prometheus: one for a check, series of both sides for the judge.

A number is taken over the check's window, but never from before the canary had its share: a proxy
counts the canary of today under the same name as that of the last run, whose failures would
otherwise be held against this one.
"""

import asyncio
import contextlib
import datetime as dt
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import msgspec

from fairlead import errors
from fairlead.adapters.measures import queries
from fairlead.adapters.measures.servers import Servers
from fairlead.adapters.prometheus import NoData, Series, SeriesSet, Shared, Values
from fairlead.domain.analysis import conditions, fields
from fairlead.domain.analysis.conditions import Answer
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Naming
from fairlead.domain.rollouts.spec import Check, When

MOST_MOMENTS = 1000
"""Prometheus gives at most 11,000 points; the newest thousand are enough for any test."""

WHOLE = 100
Sample = float | None


@dataclass(frozen=True, slots=True)
class Sides:
    """What the judge compares: for each metric, one sample for each moment."""

    control: dict[str, list[Sample]]
    experiment: dict[str, list[Sample]]


class PrometheusMetrics:
    """The port `Metrics`."""

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

    async def ask(self, check: Check, about: messages.Measure) -> Answer:
        """Of the canary; at the start, before there is one, of the primary."""
        try:
            async with self._deadline():
                found = await self._instant(check, about)
            match found:
                case NoData(reason):
                    return conditions.Silent(reason)
                case Values():
                    return conditions.Answered(_value(check, found))
        except errors.FairleadError as error:
            return conditions.Unanswered(f"{error.message}; {error.hint}")

    async def compare(self, check: Check, about: messages.Measure) -> Sides:
        """One sample for each window since the canary has its share, at the same moments."""
        step = max(1, int(check.span.total_seconds()))
        experiment, control = moments(about, self._now(), step)
        config = msgspec.convert(check.judge, fields.Config)
        shared = self._servers.of(check.server, about.name)
        async with self._deadline():
            series = await asyncio.gather(
                *(
                    self._series(shared, (metric, slot, at), check, about)
                    for metric in config.metrics
                    for slot, at in ((about.control, control), (Slot.CANARY, experiment))
                )
            )
        names = [metric.name for metric in config.metrics]
        return Sides(
            dict(zip(names, series[::2], strict=True)), dict(zip(names, series[1::2], strict=True))
        )

    async def _instant(self, check: Check, about: messages.Measure) -> Values | NoData:
        at_start = check.when is When.START
        slot = Slot.PRIMARY if at_start else Slot.CANARY
        window = check.span if at_start else min(check.span, self._now() - about.since)
        provider, given = queries.arguments(self._naming, about, slot, window)
        query = queries.rendered(check.query, provider, given)
        return await self._servers.of(check.server, about.name).instant(query)

    async def _series(
        self,
        shared: Shared,
        wanted: tuple[fields.Metric, Slot, Sequence[float]],
        check: Check,
        about: messages.Measure,
    ) -> list[Sample]:
        metric, slot, at = wanted
        provider, given = queries.arguments(self._naming, about, slot, check.span)
        query = queries.rendered(queries.of_metric(metric), provider, given)
        if not at:
            return []
        step = max(1, int(check.span.total_seconds()))
        found = await shared.over(query, (at[0], at[-1]), float(step))
        match found:
            case NoData():
                return [None] * len(at)
            case SeriesSet():
                return _aligned(_only(found, metric.name), at)

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


def moments(
    about: messages.Measure, now: dt.datetime, step: int
) -> tuple[Sequence[float], Sequence[float]]:
    """When both sides are sampled: the canary, and the primary beside it.

    All rollouts sample at multiples of the step, so that equal queries are one. The first window
    begins after the canary got its share. Once the canary has all traffic the primary has none;
    then the same number of windows before that moment stand for it.
    """
    since = about.since.timestamp()
    first = math.ceil(since / step) * step + step
    count = max(0, int((now.timestamp() - first) // step) + 1)
    first += max(0, count - MOST_MOMENTS) * step
    count = min(count, MOST_MOMENTS)
    experiment = [float(first + index * step) for index in range(count)]
    if about.share < WHOLE:
        return experiment, experiment
    last = math.floor(since / step) * step
    return experiment, [float(last - index * step) for index in reversed(range(count))]


def _value(check: Check, found: Values) -> float | list[float]:
    if conditions.one_number(check.criteria()):
        return found.only()
    return [sample.value for sample in found.samples]


def _only(found: SeriesSet, metric: str) -> Series:
    if len(found.series) > 1:
        raise errors.Rejected(
            f"query of metric {metric} gives several series instead of one: {len(found.series)}",
            hint="bring them together, for instance with sum() or max()",
        )
    return found.series[0]


def _aligned(series: Series, at: Sequence[float]) -> list[Sample]:
    given = dict(series.points)
    return [given.get(moment) for moment in at]
