"""The control plane with its page: what `fairlead up` runs around the engine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from fastapi import FastAPI

from fairlead import bootstrap, errors
from fairlead.access import intake, tokens
from fairlead.area import web_part
from fairlead.cli import lifecycle
from fairlead.engine.store import protocol
from fairlead.web import app as web
from fairlead.web import context as contexts
from fairlead.web import server
from fairlead.web.layout import Layout
from fairlead.web.mounts import Mount

_log = structlog.get_logger(__name__)


async def serve(parts: lifecycle.ServerParts) -> None:
    """Migrate, work and answer until a signal comes."""
    server.allow_many_files()
    asked = server.parse_listen(parts.settings.web.listen)
    applied = await asyncio.to_thread(parts.store.migrate)
    if applied:
        _log.info("store_migrated", migrations=applied)
    server.check_exposure(asked, guarded=await asyncio.to_thread(_guarded, parts.store))
    with server.claim(asked) as listening:
        bind = server.bound(asked, listening)
        async with lifecycle.working(parts) as (engine, stop):
            mounts = mounted(parts.installation)
            context = contexts.WebContext(
                engine=engine,
                store=parts.store,
                bind=bind,
                intake=intake.Intake(engine, parts.tracing.tracer),
                views=parts.installation.projection_names,
                services=parts.installation.services,
                layout=Layout(mounts),
                session_life=timedelta(hours=parts.settings.web.session_hours),
                https=parts.settings.web.cookies == "https",
            )
            app = web.create(context, mounts)
            async with (
                _health_alone(parts, app, context.closing),
                server.serving(app, listening, context.closing) as task,
            ):
                lifecycle.ready(f"fairlead is up: {bind.url}")
                await _until(stop, task)


ROLE = lifecycle.Role(serve)


@contextlib.asynccontextmanager
async def _health_alone(
    parts: lifecycle.ServerParts, app: FastAPI, closing: asyncio.Event
) -> AsyncIterator[None]:
    """Health on a port of its own, where one is set."""
    if not parts.settings.web.health_listen:
        yield
        return
    asked = server.parse_listen(parts.settings.web.health_listen)
    with server.claim(asked) as listening:
        _log.info("health_listens", url=server.bound(asked, listening).url)
        async with server.serving(web.health_of(app), listening, closing):
            yield


def mounted(given: bootstrap.Installation) -> Sequence[Mount]:
    """What the areas of an installation add to the web app."""
    found = (web_part.load(area) for area in given.areas)
    return [each for each in found if each is not None]


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
