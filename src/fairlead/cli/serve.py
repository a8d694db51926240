"""`fairlead up` and `fairlead worker`: an engine that runs until it is told to stop.

settings ──► store (migrated by up) ──► engine ──► web (only up) ──► "fairlead is up"
SIGINT or SIGTERM ──► no new requests, no new work ──► what runs may finish ──► lease back
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import click
import structlog

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.cli import given
from fairlead.engine import service
from fairlead.engine.store import protocol
from fairlead.intents import intake, tokens
from fairlead.web import app as web
from fairlead.web import context as contexts
from fairlead.web import server

_log = structlog.get_logger(__name__)


@click.command()
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to answer; 127.0.0.1:8600 if unset.")
@click.pass_context
def up(ctx: click.Context, listen: str | None) -> None:
    """Run the control plane with its page on this machine.

    Creates and migrates the store where that is needed, performs effects, and serves the
    page and the API. The first Ctrl-C stops it with care, the second at once.
    """
    chosen = given.settings(ctx)
    if listen is not None:
        chosen = replace(chosen, web=replace(chosen.web, listen=listen))
    run(chosen, given.cast(ctx))


@click.command()
@click.pass_context
def worker(ctx: click.Context) -> None:
    """Run a worker beside others on a shared store.

    Performs effects and serves no page. The store must have been migrated.
    """
    run(given.settings(ctx), given.cast(ctx), pages=False)


def run(chosen: settings_.Settings, players: bootstrap.Cast, *, pages: bool = True) -> None:
    """Run until a signal comes; returns after a clean stop."""
    bootstrap.logs(chosen.log)
    tracing = bootstrap.telemetry(chosen.log)
    traced = replace(players, handlers=bootstrap.traced(players.handlers, tracing))
    kept = bootstrap.store(chosen.store, traced)
    try:
        asyncio.run(_serve(chosen, traced, kept, tracing) if pages else _work(chosen, traced, kept))
    finally:
        tracing.close()


async def _serve(
    chosen: settings_.Settings,
    players: bootstrap.Cast,
    kept: protocol.Store,
    tracing: bootstrap.Tracing,
) -> None:
    wanted = server.parse_listen(chosen.web.listen)
    applied = await asyncio.to_thread(kept.migrate)
    if applied:
        _log.info("store_migrated", migrations=applied)
    guarded = await asyncio.to_thread(_guarded, kept)
    server.check_exposure(wanted, guarded=guarded)
    with server.claim(wanted) as listening:
        bind = server.bound(wanted, listening)
        async with _working(chosen, players, kept) as (engine, stop):
            context = contexts.Context(
                engine=engine,
                store=kept,
                bind=bind,
                intake=intake.Intake(engine, tracing.tracer),
                views=[view.name for view in players.views],
            )
            async with server.serving(web.create(context), listening, context.closing):
                click.echo(f"fairlead is up: {bind.url}", err=True)
                await stop.wait()


async def _work(chosen: settings_.Settings, players: bootstrap.Cast, kept: protocol.Store) -> None:
    async with _working(chosen, players, kept) as (_, stop):
        click.echo("fairlead works", err=True)
        await stop.wait()


@contextlib.asynccontextmanager
async def _working(
    chosen: settings_.Settings, players: bootstrap.Cast, kept: protocol.Store
) -> AsyncIterator[tuple[service.Engine, asyncio.Event]]:
    """An engine at work, and the signal that it is time to stop."""
    stop = asyncio.Event()
    with _signals(stop):
        async with bootstrap.engine(chosen, players, kept).running() as engine:
            yield engine, stop


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """The first signal asks to stop; the second ends the process where it stands."""
    loop = asyncio.get_running_loop()

    def heard(number: int) -> None:
        if stop.is_set():
            # Every commit is durable and every lease lapses: there is nothing to save.
            os._exit(128 + number)
        click.echo("fairlead stops; a second Ctrl-C ends it at once", err=True)
        stop.set()

    wanted = (signal.SIGINT, signal.SIGTERM)
    for each in wanted:
        loop.add_signal_handler(each, heard, each)
    try:
        yield
    finally:
        for each in wanted:
            loop.remove_signal_handler(each)


def _guarded(kept: protocol.Store) -> bool:
    with contextlib.closing(kept.open()) as session:
        now = datetime.now(UTC)
        return any(token.usable(now) for token in tokens.listed(session))
