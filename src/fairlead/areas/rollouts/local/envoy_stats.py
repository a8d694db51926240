"""What became of the requests: read off each Envoy every second, kept for some minutes.

Envoy counts since its start; what is told here are differences between two readings, so that no
answer holds requests from before the moment it is asked about.
"""

import asyncio
import collections
import contextlib
import datetime as dt
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead import errors
from fairlead.analysis import conditions
from fairlead.analysis.requests import Requests
from fairlead.analysis.samples import Counted, Measured, Series
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.areas.rollouts.local import envoy_mapping
from fairlead.areas.rollouts.local.workload import Workload
from fairlead.areas.rollouts.traffic_stats import Point
from fairlead.checks.provider import Problem
from fairlead.checks.spec import REQUEST_DURATION, SUCCESS_RATE, Check, CheckKind
from fairlead.checks.subject import Names, Subject
from fairlead.clients import envoy
from fairlead.traffic.routes import Route
from fairlead.traffic.weights import Split, giving
from fairlead.values import ALL

EVERY_SECONDS = 1.0
KEPT = 600
"""Readings; ten minutes of them."""

_Dated = tuple[dt.datetime, envoy.Reading]

METRICS: Mapping[str, Callable[[envoy.Numbers], float | None]] = {
    SUCCESS_RATE: lambda numbers: numbers.success_rate,
    REQUEST_DURATION: lambda numbers: numbers.p99_ms,
}


def problems(check: Check, release: str, names: Names) -> Iterator[Problem]:
    """Why Envoy could not answer a check."""
    del release, names
    known = f"Envoy counts {' and '.join(METRICS)} only"
    if check.kind is CheckKind.METRIC and check.query not in METRICS:
        yield "query", f"{known}; set FAIRLEAD_PROMETHEUS_URL for a query of your own"
    for n, each in enumerate(check.judge.get("metrics", ())):
        if each.get("name") not in METRICS:
            yield f"judge.metrics[{n}].name", known


@dataclass(slots=True)
class _Ring:
    readings: collections.deque[_Dated] = field(
        default_factory=lambda: collections.deque(maxlen=KEPT)
    )
    points: collections.deque[Point] = field(
        default_factory=lambda: collections.deque(maxlen=KEPT * len(Slot))
    )
    # Up to which the points tell; readings are also taken in between, for those who ask.
    pointed: envoy.Reading | None = None
    # The first reading since the canary reached a weight, and when that was; a step may last
    # longer than readings are kept.
    base: tuple[dt.datetime, envoy.Reading] | None = None


class EnvoyStats:
    """Numbers and metrics of a machine's workloads."""

    def __init__(self, workloads: Mapping[str, Workload], now: Callable[[], dt.datetime]) -> None:
        self._workloads = workloads
        self._now = now
        self._rings: dict[str, _Ring] = collections.defaultdict(_Ring)

    async def run(self) -> None:
        """Until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await asyncio.gather(*(self.sample(name) for name in list(self._workloads)))
            await asyncio.sleep(max(0.0, EVERY_SECONDS - (clock() - began)))

    async def sample(self, name: str) -> None:
        """One more point for those who watch; an Envoy that does not answer is a gap."""
        workload, ring = self._workloads[name], self._rings[name]
        await self._read(name)
        if not ring.readings:
            return
        at, reading = ring.readings[-1]
        if ring.pointed is not None and ring.pointed is not reading:
            shown = await workload.shown()
            weight = shown.weight if shown is not None else 0
            ring.points.extend(_points(workload, envoy.between(ring.pointed, reading), at, weight))
        ring.pointed = reading

    def recent(self, rollout: str) -> Sequence[Point]:
        return tuple(self._rings[rollout].points) if rollout in self._rings else ()

    async def ask(self, check: Check, about: Subject) -> conditions.Answer:
        """A built-in metric of the canary since it has its weight."""
        if check.query not in METRICS:
            return conditions.Unanswered(
                f"unknown Envoy metric, use one of {', '.join(METRICS)}: {check.query[:80]}"
            )
        if about.name in self._workloads:
            await self._read(about.name)
        found = self._since(about) or {}
        numbers = found.get(envoy_mapping.cluster(Slot.CANARY, about.canary.revision))
        value = None if numbers is None else METRICS[check.query](numbers)
        if numbers is None or value is None:
            return conditions.Silent("no request reached the canary at this weight")
        failed = numbers.failures if check.query == SUCCESS_RATE else None
        return conditions.Answered(value, Requests(numbers.requests, failed))

    async def compare(self, check: Check, about: Subject) -> Series:
        """Both sides second by second, for the metrics that the judge's configuration names."""
        await self._read(about.name)
        wanted = [str(each.get("name")) for each in check.judge.get("metrics", ())]
        unknown = [name for name in wanted if name not in METRICS]
        if unknown:
            raise errors.Unavailable(
                f"unknown Envoy metrics: {', '.join(unknown)[:80]}",
                hint=f"use {' or '.join(METRICS)}, or name a Prometheus",
            )
        before, since = self._parted(about)
        # Who has all requests is held against the time before that, when the other had some.
        beside = since if about.weight < ALL else collections.deque(before, maxlen=len(since))
        control = envoy_mapping.cluster(Slot(about.control.value), about.primary.revision)
        experiment = envoy_mapping.cluster(Slot.CANARY, about.canary.revision)
        return Series(_series(beside, control, wanted), _series(since, experiment, wanted))

    def traffic(self, about: Subject) -> tuple[SlotTraffic, ...]:
        """Each slot since the canary has its weight, by the reading that the checks had."""
        found = self._since(about) or {}
        sides = {
            Slot.PRIMARY: about.primary, Slot.CANARY: about.canary, Slot.BASELINE: about.primary
        }  # fmt: skip
        told = (
            (slot, found.get(envoy_mapping.cluster(slot, version.revision)))
            for slot, version in sides.items()
        )
        return tuple(
            SlotTraffic(slot, numbers.requests, numbers.failures, numbers.p99_ms)
            for slot, numbers in told
            if numbers is not None
        )

    async def _read(self, name: str) -> None:
        at = self._now()
        with contextlib.suppress(errors.FairleadError):
            self._rings[name].readings.append((at, await self._workloads[name].proxy.read()))

    def _since(self, about: Subject) -> dict[str, envoy.Numbers] | None:
        """What each version did since the canary has its weight, by the first reading after that.

        None where there is no reading since then.
        """
        ring = self._rings[about.name]
        if ring.base is None or ring.base[0] != about.since:
            _, readings = self._parted(about)
            ring.base = (about.since, readings[0][1]) if readings else None
        return envoy.between(ring.base[1], ring.readings[-1][1]) if ring.base else None

    def _parted(self, about: Subject) -> tuple[list[_Dated], list[_Dated]]:
        """The readings from before the canary had its weight, and those since."""
        readings = list(self._rings[about.name].readings)
        count = sum(at < about.since for at, _ in readings)
        return readings[:count], readings[count:]


def _points(
    workload: Workload, since: Mapping[str, envoy.Numbers], at: dt.datetime, weight: int
) -> list[Point]:
    found, split = [], _shown(workload.desired.route, weight)
    for slot, held in workload.desired.slots.items():
        numbers = since.get(envoy_mapping.cluster(slot, held.revision))
        if numbers is not None:
            counts = (numbers.requests, numbers.failures, numbers.p50_ms, numbers.p99_ms)
            found.append(Point(at, slot, held.revision, getattr(split, slot.value), *counts))
    return found


def _shown(route: Route | None, weight: int) -> Split:
    """The split by the canary's weight that Envoy shows; a baseline's goes with it."""
    return route.split if route is not None and route.weight == weight else giving(weight)


def _series(readings: Sequence[_Dated], side: str, wanted: Sequence[str]) -> dict[str, Measured]:
    pairs = itertools.pairwise(readings)
    seconds = [envoy.between(before[1], after[1]).get(side) for before, after in pairs]
    return {name: _measured(name, seconds) for name in wanted}


def _measured(name: str, seconds: Sequence[envoy.Numbers | None]) -> Measured:
    """A rate with what it is of: how sure one can be depends on the requests behind it."""
    if name == SUCCESS_RATE:
        return Counted(
            tuple(0 if each is None else each.failures for each in seconds),
            tuple(0 if each is None else each.requests for each in seconds),
            of_failures=True,
        )
    return [None if each is None else METRICS[name](each) for each in seconds]
