"""A worker that can be asked how it is: what `fairlead worker --listen` runs around the engine."""

import contextlib
from collections.abc import AsyncIterator

import prometheus_client
from prometheus_client import registry

from fairlead.cli import lifecycle
from fairlead.engine import collector, service
from fairlead.kubernetes.operator import health


async def serve(parts: lifecycle.ServerParts) -> None:
    """Work, and answer to /healthz, /readyz and /metrics, until a signal comes."""
    listen = parts.settings.engine.worker_listen
    async with (
        lifecycle.working(parts) as (engine, stop),
        answering(engine, listen) as address,
    ):
        lifecycle.ready(f"fairlead worker is running: {address}")
        await stop.wait()


ROLE = lifecycle.Role(serve)


@contextlib.asynccontextmanager
async def answering(engine: service.Engine, listen: str) -> AsyncIterator[str]:
    """Answer inside the block; gives the address, which matters where port 0 was asked for."""
    known, figures = registry.CollectorRegistry(), collector.EngineCollector(engine)
    known.register(figures)
    prometheus_client.ProcessCollector(registry=known)

    async def scraped() -> bytes:
        await figures.refresh()
        return prometheus_client.generate_latest(known)

    async with health.answering(listen, list, scraped) as address:
        yield address
