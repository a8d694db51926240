"""An engine's figures in the words of Prometheus: its own, and what its store holds.

Its own are at hand. Those of the store are asked for when somebody scrapes, at most every ten
seconds, however many do.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client import core, registry

from fairlead import errors
from fairlead.engine import clock, service, visibility
from fairlead.engine.measurements import EffectKind, Histogram
from fairlead.engine.store import protocol

_FRESH_SECONDS = 10.0
_PATIENCE_SECONDS = 8.0
_KIND = ("machine", "effect", "queue_kind")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the store counts."""

    streams: int
    effects: int
    dead: int
    timers: int
    dead_timers: int
    oldest_effect: datetime | None
    oldest_timer: datetime | None
    workers: tuple[tuple[str, int], ...]
    """Each with how many effects it holds."""

    queues: tuple[visibility.QueueView, ...]
    at: datetime


class EngineCollector(registry.Collector):
    """The figures of one engine; `refresh` before they are collected."""

    def __init__(self, engine: service.Engine) -> None:
        self._engine = engine
        self._lock = asyncio.Lock()
        self._kept: _Kept | None = None
        self._until = float("-inf")

    async def refresh(self) -> None:
        """Ask the store, unless its last answer is fresh enough."""
        async with self._lock:
            if time.monotonic() < self._until:
                return
            now = self._engine.now()
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    self._kept = await self._engine.read(lambda s: _counted(s, now))
            except (errors.FairleadError, TimeoutError):
                self._kept = None
            self._until = time.monotonic() + _FRESH_SECONDS

    def collect(self) -> Iterator[core.Metric]:
        yield from _own(self._engine)
        yield from _effects(self._engine)
        yield _gauge("fairlead_store_up", "Whether the store answered.", int(bool(self._kept)))
        if self._kept is not None:
            yield from _store(self._kept)
            yield from _workers(self._kept)
            yield from _queues(self._kept)


def _own(engine: service.Engine) -> Iterator[core.Metric]:
    done = engine.counts
    yield _counter("fairlead_commits", "Batches committed by this process.", done.commits)
    yield _counter("fairlead_events", "Events written by this process.", done.events)
    yield _counter("fairlead_store_troubles", "Commits of unknown fate.", done.troubles)
    yield _counter("fairlead_lease_losses", "Leases that lapsed or were lost.", done.lease_losses)
    yield _gauge("fairlead_inbox_depth", "Work that waits for a commit.", engine.inbox_depth)
    yield _gauge("fairlead_effects_in_flight", "Performed here now.", engine.in_flight)
    yield core.HistogramMetricFamily(
        "fairlead_commit_duration_seconds", "From taking a batch up to its commit.",
        buckets=done.commit_seconds.buckets(), sum_value=done.commit_seconds.total,
    )  # fmt: skip


def _effects(engine: service.Engine) -> Iterator[core.Metric]:
    done = engine.counts
    held = core.GaugeMetricFamily(
        "fairlead_effects_held", "Effects that this process has in hand, by kind.",
        labels=("effect", "queue_kind"),
    )  # fmt: skip
    for (effect, queue), count in engine.held().items():
        held.add_metric((effect, queue), count)
    seconds = core.HistogramMetricFamily(
        "fairlead_effect_duration_seconds", "One attempt at an effect, by kind.", labels=_KIND
    )
    failures = core.CounterMetricFamily(
        "fairlead_effect_failures", "Attempts at effects that failed, by kind.", labels=_KIND
    )
    # By the kind of a queue, not by its place: that would be a label for every cluster.
    timed: defaultdict[tuple[str, str, str], Histogram] = defaultdict(Histogram)
    failed: Counter[tuple[str, str, str]] = Counter()
    for kind, histogram in done.effect_seconds.items():
        timed[_labels(kind)].add(histogram)
        failed[_labels(kind)] += done.effect_failures.get(kind, 0)
    for labels, histogram in timed.items():
        seconds.add_metric(labels, histogram.buckets(), histogram.total)
        failures.add_metric(labels, failed[labels])
    yield from (held, seconds, failures)


def _labels(kind: EffectKind) -> tuple[str, str, str]:
    machine, effect, queue = kind
    return machine, effect.__name__, queue.partition("@")[0]


def _store(kept: _Kept) -> Iterator[core.Metric]:
    yield _gauge("fairlead_streams_active", "Streams that have not ended.", kept.streams)
    yield _gauge("fairlead_outbox_effects", "Effects not settled.", kept.effects)
    yield _gauge("fairlead_dead_letters", "Dead effects; retry or discard them.", kept.dead)
    yield _gauge("fairlead_timers", "Timers set.", kept.timers)
    yield _gauge("fairlead_dead_timers", "Dead timers; retry or discard them.", kept.dead_timers)
    yield _gauge(
        "fairlead_outbox_oldest_seconds",
        "How long the oldest effect that is not dead has been due; 0 for none.",
        _age(kept.oldest_effect, kept.at),
    )
    yield _gauge(
        "fairlead_timers_oldest_seconds",
        "How late the latest timer is that is not dead; 0 for none.",
        _age(kept.oldest_timer, kept.at),
    )
    yield _gauge("fairlead_workers", "Workers with a lease.", len(kept.workers))


def _workers(kept: _Kept) -> Iterator[core.Metric]:
    held = core.GaugeMetricFamily(
        "fairlead_worker_effects", "Effects that a worker with a lease holds.", labels=["worker"]
    )
    for worker, count in kept.workers:
        held.add_metric([worker], count)
    yield held


def _queues(kept: _Kept) -> Iterator[core.Metric]:
    waiting = core.GaugeMetricFamily(
        "fairlead_queue_effects", "Effects of a queue that nobody has in hand.", labels=["queue"]
    )
    workers = core.GaugeMetricFamily(
        "fairlead_queue_workers", "Workers with a lease that serve a queue.", labels=["queue"]
    )
    unserved = core.GaugeMetricFamily(
        "fairlead_queue_unserved_seconds",
        "How long effects of a queue have waited that no worker performs; 0 for none.",
        labels=["queue"],
    )
    for each in kept.queues:
        waiting.add_metric([each.name], each.waiting)
        workers.add_metric([each.name], len(each.workers))
        unserved.add_metric([each.name], _age(each.unserved_since, kept.at))
    yield from (waiting, workers, unserved)


def _age(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(timedelta(0), now - since).total_seconds()


def _counter(name: str, about: str, value: float) -> core.Metric:
    return core.CounterMetricFamily(name, about, value=value)


def _gauge(name: str, about: str, value: float) -> core.Metric:
    return core.GaugeMetricFamily(name, about, value=value)


def _counted(session: protocol.Session, now: datetime) -> _Kept:
    ((streams, effects, dead, timers),) = session.rows("count_rows")
    ((oldest_effect, oldest_timer, dead_timers),) = session.rows("oldest_rows")
    held = dict(session.rows("held_by_worker"))
    # One worker may have two fences for a while, after a commit of unknown fate.
    workers: Counter[str] = Counter()
    for fence, name, *_ in session.rows("live_workers", now=clock.to_millis(now)):
        workers[name] += held.get(fence, 0)
    return _Kept(
        streams,
        effects,
        dead,
        timers,
        dead_timers,
        _moment(oldest_effect),
        _moment(oldest_timer),
        tuple(workers.items()),
        tuple(visibility.queues(session, now)),
        now,
    )


def _moment(millis: clock.Millis | None) -> datetime | None:
    return None if millis is None else clock.from_millis(millis)
