"""What became of the requests: read off each Envoy every second, kept for some minutes.

Envoy counts since its start; what is told here are differences between two readings, so that no
answer holds requests from before the moment it is asked about.
"""

import asyncio
import collections
import contextlib
import datetime as dt
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead import errors
from fairlead.adapters import envoy
from fairlead.adapters.local import tables
from fairlead.adapters.local.workload import Workload
from fairlead.domain.analysis import conditions
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.numbers import Point
from fairlead.domain.rollouts.spec import Check
from fairlead.domain.traffic.routes import Route
from fairlead.domain.traffic.weights import Split, giving
from fairlead.domain.values import ALL

EVERY_SECONDS = 1.0
KEPT = 600
"""Readings; ten minutes of them."""

_Dated = tuple[dt.datetime, envoy.Reading]

METRICS: Mapping[str, Callable[[envoy.Numbers], float | None]] = {
    "request-success-rate": lambda numbers: numbers.success_rate,
    "request-duration": lambda numbers: numbers.p99_ms,
}


@dataclass(slots=True)
class Samples:
    """Series of both sides, for the judge."""

    control: dict[str, list[float | None]]
    experiment: dict[str, list[float | None]]


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


class Sampler:
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
            share = shown.share if shown is not None else 0
            ring.points.extend(_points(workload, envoy.between(ring.pointed, reading), at, share))
        ring.pointed = reading

    def recent(self, rollout: str) -> Sequence[Point]:
        return tuple(self._rings[rollout].points) if rollout in self._rings else ()

    async def ask(self, check: Check, about: messages.Measure) -> conditions.Answer:
        """A built-in metric of the canary since it has its share."""
        if check.query not in METRICS:
            return conditions.Unanswered(
                f"not a metric that envoy has ({', '.join(METRICS)}): {check.query[:80]}"
            )
        numbers = await self._since(about)
        value = None if numbers is None else METRICS[check.query](numbers)
        if value is None:
            return conditions.Silent("no request reached the canary since it has its share")
        return conditions.Answered(value)

    async def compare(self, check: Check, about: messages.Measure) -> Samples:
        """Both sides second by second, for the metrics that the judge's configuration names."""
        await self._read(about.name)
        wanted = [str(each.get("name")) for each in check.judge.get("metrics", ())]
        unknown = [name for name in wanted if name not in METRICS]
        if unknown:
            raise errors.Unavailable(
                f"not metrics that envoy has: {', '.join(unknown)[:80]}",
                hint=f"use {' or '.join(METRICS)}, or name a Prometheus",
            )
        before, since = self._parted(about)
        # Who has all requests is held against the time before that, when the other had some.
        beside = since if about.share < ALL else collections.deque(before, maxlen=len(since))
        control = tables.cluster(about.control, about.primary.revision)
        experiment = tables.cluster(Slot.CANARY, about.canary.revision)
        return Samples(_series(beside, control, wanted), _series(since, experiment, wanted))

    async def _read(self, name: str) -> None:
        at = self._now()
        with contextlib.suppress(errors.FairleadError):
            self._rings[name].readings.append((at, await self._workloads[name].proxy.read()))

    async def _since(self, about: messages.Measure) -> envoy.Numbers | None:
        """What the canary did since it has its share, by the first reading after that."""
        if about.name not in self._workloads:
            return None
        await self._read(about.name)
        _, readings = self._parted(about)
        if not readings:
            return None
        found = envoy.between(readings[0][1], readings[-1][1])
        return found.get(tables.cluster(Slot.CANARY, about.canary.revision))

    def _parted(self, about: messages.Measure) -> tuple[list[_Dated], list[_Dated]]:
        """The readings from before the canary had its share, and those since."""
        readings = list(self._rings[about.name].readings)
        count = sum(at < about.since for at, _ in readings)
        return readings[:count], readings[count:]


def _points(
    workload: Workload, since: Mapping[str, envoy.Numbers], at: dt.datetime, share: int
) -> list[Point]:
    found, split = [], _shown(workload.berth.route, share)
    for slot, held in workload.berth.slots.items():
        numbers = since.get(tables.cluster(slot, held.revision))
        if numbers is not None:
            counts = (numbers.requests, numbers.failures, numbers.p50_ms, numbers.p99_ms)
            found.append(Point(at, slot, held.revision, getattr(split, slot.value), *counts))
    return found


def _shown(route: Route | None, share: int) -> Split:
    """The split by the canary's share that Envoy shows; a baseline's goes with it."""
    return route.split if route is not None and route.share == share else giving(share)


def _series(
    readings: Sequence[_Dated], side: str, wanted: Sequence[str]
) -> dict[str, list[float | None]]:
    pairs = itertools.pairwise(readings)
    seconds = [envoy.between(before[1], after[1]).get(side) for before, after in pairs]
    return {
        name: [None if each is None else METRICS[name](each) for each in seconds] for name in wanted
    }
