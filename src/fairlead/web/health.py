"""For those who watch us: alive, ready, and figures to scrape."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import prometheus_client
import structlog
from fastapi import APIRouter, Request
from prometheus_client import registry
from starlette.responses import Response
from starlette.types import Scope

import fairlead
from fairlead import errors
from fairlead.engine import collector
from fairlead.web import context as contexts
from fairlead.web import errors as web_errors
from fairlead.web import shapes

_READY_SECONDS = 1.0
_PATIENCE_SECONDS = 8.0
_FORGOTTEN_SECONDS = 60.0
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
    reasons, age = await watch.reasons()
    body = {"ready": not reasons, "reasons": reasons, "age_seconds": round(age, 3)}
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


class _Background(Generic[T]):
    """An answer kept fresh in the background for as long as somebody asks now and then.

    Whoever asks gets what is known, with its age, and waits for nobody: under load a probe that
    waited its turn for the store would have a pod restarted that works.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._looking: asyncio.Task[None] | None = None
        self._known: asyncio.Future[tuple[T, float]]
        self._asked = 0.0

    async def get(self) -> tuple[T, float]:
        """The newest answer and its age in seconds; only the first is waited for."""
        self._asked = time.monotonic()
        if self._looking is None or self._looking.done():
            self._known = asyncio.get_running_loop().create_future()
            self._looking = asyncio.create_task(self._look())
        answer, at = await asyncio.shield(self._known)
        return answer, time.monotonic() - at

    async def _look(self) -> None:
        while time.monotonic() - self._asked < _FORGOTTEN_SECONDS:
            answer = await self._ask()
            if self._known.done():
                self._known = asyncio.get_running_loop().create_future()
            self._known.set_result((answer, time.monotonic()))
            await asyncio.sleep(_READY_SECONDS)


class Watch:
    """One app's readiness and metrics."""

    def __init__(self, context: contexts.WebContext) -> None:
        self._context = context
        self._ready = _Background(self._look)
        self._registry = registry.CollectorRegistry()
        self._figures = collector.EngineCollector(context.engine)
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

    async def reasons(self) -> tuple[list[str], float]:
        """Why we are not ready, empty when we are; and how many seconds ago that was known."""
        if self._context.closing.is_set():
            return ["stopping"], 0.0
        return await self._ready.get()

    async def scraped(self) -> bytes:
        await self._figures.refresh()
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


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_REASONS = {
    errors.Unavailable: "the store is not reachable",
    errors.Conflict: "the store was migrated by a newer fairlead",
}
