"""For those who watch us: alive, ready, and figures to scrape."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import prometheus_client
import structlog
from fastapi import APIRouter, Request
from prometheus_client import core, registry
from starlette.responses import Response
from starlette.types import Scope

import fairlead
from fairlead import errors
from fairlead.engine import clock, service
from fairlead.engine.store import protocol
from fairlead.web import context as contexts
from fairlead.web import errors as web_errors
from fairlead.web import shapes

_READY_SECONDS = 1.0
_COUNTS_SECONDS = 10.0
_PATIENCE_SECONDS = 8.0
_log = structlog.get_logger(__name__)
router = APIRouter(tags=["health"])
T = TypeVar("T")


@router.get("/healthz", summary="The process lives")
async def healthz() -> shapes.Health:
    return shapes.Health(status="ok", version=fairlead.__version__)


@router.get(
    "/readyz",
    summary="The store answers and its schema is current",
    response_model=shapes.Readiness,
    responses={503: {"model": shapes.Readiness, "description": "Not now, and why."}},
)
async def readyz(request: Request) -> Response:
    watch: Watch = request.app.state.watch
    reasons = await watch.reasons()
    body = {"ready": not reasons, "reasons": reasons}
    return web_errors.json(body, 503 if reasons else 200)


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus text format."}},
)
async def metrics(request: Request) -> Response:
    watch: Watch = request.app.state.watch
    text = await watch.scraped()
    return Response(text, media_type=prometheus_client.CONTENT_TYPE_LATEST)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the store counts; None where it did not answer."""

    streams: int
    effects: int
    dead: int
    timers: int
    workers: int


class _Remembered(Generic[T]):
    """An answer asked for at most once in a while, and by one asker at a time."""

    def __init__(self, ask: Callable[[], Awaitable[T]], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._lock = asyncio.Lock()
        self._answer: T
        self._until = float("-inf")

    async def get(self) -> T:
        async with self._lock:
            if time.monotonic() >= self._until:
                self._answer = await self._ask()
                self._until = time.monotonic() + self._seconds
            return self._answer


class Watch:
    """Looks after one app: its readiness and its figures."""

    def __init__(self, context: contexts.Context) -> None:
        self._context = context
        self._ready = _Remembered(self._look, _READY_SECONDS)
        self._kept = _Remembered(self._count, _COUNTS_SECONDS)
        self._registry = registry.CollectorRegistry()
        self._figures = _Figures(context.engine)
        self._registry.register(self._figures)
        prometheus_client.ProcessCollector(registry=self._registry)
        self._requests = prometheus_client.Counter(
            "fairlead_requests", "Requests by route and status.",
            ["method", "route", "status"], registry=self._registry,
        )  # fmt: skip
        self._seconds = prometheus_client.Histogram(
            "fairlead_request_seconds", "Time to the end of the answer.",
            ["route"], registry=self._registry,
        )  # fmt: skip

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; by route and not by path, or names would fill the memory."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        if not route.endswith("/live"):
            self._seconds.labels(route).observe(seconds)

    async def reasons(self) -> list[str]:
        """Why we are not ready; empty when we are."""
        if self._context.closing.is_set():
            return ["stopping"]
        return await self._ready.get()

    async def scraped(self) -> bytes:
        self._figures.kept = await self._kept.get()
        return prometheus_client.generate_latest(self._registry)

    async def _look(self) -> list[str]:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                pending = await asyncio.to_thread(self._context.store.pending_migrations)
        except errors.FairleadError as error:
            # The words of the driver may name hosts and users: those are for the log.
            _log.warning("not_ready", error=error.message)
            return [_REASONS.get(type(error), "the store cannot be read")]
        except TimeoutError:
            return ["the store is silent"]
        return [f"a migration is pending: {name}" for name in pending]

    async def _count(self) -> _Kept | None:
        now = clock.to_millis(self._context.now())
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._context.engine.read(lambda s: _counted(s, now))
        except (errors.FairleadError, TimeoutError):
            return None


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_REASONS = {
    errors.Unavailable: "the store is not reachable",
    errors.Conflict: "the store was migrated by a newer fairlead",
}


class _Figures(registry.Collector):
    def __init__(self, engine: service.Engine) -> None:
        self._engine = engine
        self.kept: _Kept | None = None

    def collect(self) -> Iterator[core.Metric]:
        counts = self._engine.counts
        yield _counter("fairlead_commits", "Batches committed by this process.", counts.commits)
        yield _counter("fairlead_events", "Events written by this process.", counts.events)
        yield _counter("fairlead_store_troubles", "Commits of unknown fate.", counts.troubles)
        yield _gauge("fairlead_effects_in_flight", "Performed here now.", self._engine.in_flight)
        yield _gauge("fairlead_store_up", "Whether the store answered.", int(bool(self.kept)))
        if self.kept is not None:
            yield from _kept_figures(self.kept)


def _kept_figures(kept: _Kept) -> Iterator[core.Metric]:
    yield _gauge("fairlead_streams_active", "Streams that have not ended.", kept.streams)
    yield _gauge("fairlead_outbox_effects", "Effects not settled.", kept.effects)
    yield _gauge("fairlead_dead_letters", "Effects given up; a person must look.", kept.dead)
    yield _gauge("fairlead_timers", "Timers set.", kept.timers)
    yield _gauge("fairlead_workers", "Workers with a lease.", kept.workers)


def _counter(name: str, about: str, value: float) -> core.Metric:
    return core.CounterMetricFamily(name, about, value=value)


def _gauge(name: str, about: str, value: float) -> core.Metric:
    return core.GaugeMetricFamily(name, about, value=value)


def _counted(session: protocol.Session, now: clock.Millis) -> _Kept:
    ((streams, effects, dead, timers),) = session.rows("count_rows")
    workers = session.rows("live_workers", now=now)
    return _Kept(streams, effects, dead, timers, len(workers))
