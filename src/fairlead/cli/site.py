"""The control plane with its page: what `fairlead up` runs around the engine."""

import asyncio
import contextlib
from datetime import UTC, datetime

import click
import structlog

from fairlead import errors
from fairlead.cli import working
from fairlead.engine.store import protocol
from fairlead.intents import intake, tokens
from fairlead.web import app as web
from fairlead.web import context as contexts
from fairlead.web import server

_log = structlog.get_logger(__name__)


async def serve(plant: working.Plant) -> None:
    """Migrate, work and answer until a signal comes."""
    wanted = server.parse_listen(plant.settings.web.listen)
    applied = await asyncio.to_thread(plant.store.migrate)
    if applied:
        _log.info("store_migrated", migrations=applied)
    server.check_exposure(wanted, guarded=await asyncio.to_thread(_guarded, plant.store))
    with server.claim(wanted) as listening:
        bind = server.bound(wanted, listening)
        async with working.working(plant) as (engine, stop):
            context = contexts.Context(
                engine=engine,
                store=plant.store,
                bind=bind,
                intake=intake.Intake(engine, plant.tracing.tracer),
                views=[view.name for view in plant.cast.views],
                numbers=plant.cast.numbers,
                ground=plant.cast.ground,
            )
            async with server.serving(web.create(context), listening, context.closing) as task:
                click.echo(f"fairlead is up: {bind.url}", err=True)
                await _until(stop, task)


async def _until(stop: asyncio.Event, task: asyncio.Task[None]) -> None:
    """The signal to stop; a server that ends by itself must not leave a silent process."""
    signal = asyncio.create_task(stop.wait())
    await asyncio.wait({signal, task}, return_when=asyncio.FIRST_COMPLETED)
    signal.cancel()
    if not stop.is_set():
        raise errors.Unavailable("the web server ended by itself", hint="the log says why")


def _guarded(kept: protocol.Store) -> bool:
    with contextlib.closing(kept.open()) as session:
        now = datetime.now(UTC)
        return any(token.usable(now) for token in tokens.listed(session))
