"""`fairlead up` and `fairlead worker`: an engine that runs until it is told to stop.

settings ──► store (migrated by up) ──► engine ──► web (only up) ──► "fairlead is up"
SIGINT or SIGTERM ──► no new requests, no new work ──► what runs may finish ──► lease back
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

import click

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.cli import options, working


@click.command()
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to answer; 127.0.0.1:8600 if unset.")
def up(listen: str | None) -> None:
    """Run the control plane with its page on this machine.

    Creates and migrates the store where that is needed, performs effects, and serves the
    page and the API. The first Ctrl-C stops it with care, the second at once.
    """
    chosen = options.settings()
    if listen is not None:
        chosen = replace(chosen, web=replace(chosen.web, listen=listen))
    run(chosen, options.joined(chosen))


@click.command()
def worker() -> None:
    """Run a worker beside others on a shared store.

    Performs effects and serves no page. The store must have been migrated.
    """
    # Rollouts of this machine are left to the control plane that runs their processes.
    run(options.settings(), bootstrap.without_rollouts(options.cast()), pages=False)


def run(chosen: settings_.Settings, players: bootstrap.Cast, *, pages: bool = True) -> None:
    """Run until a signal comes; returns after a clean stop."""
    bootstrap.logs(chosen.log)
    tracing = bootstrap.telemetry(chosen.log)
    traced = replace(players, handlers=bootstrap.traced(players.handlers, tracing))
    plant = working.Plant(chosen, traced, bootstrap.store(chosen.store, traced), tracing)
    serve = _site() if pages else _work
    try:
        asyncio.run(_awaited(serve, plant))
    finally:
        tracing.close()


_Role = Callable[[working.Plant], Awaitable[None]]


async def _awaited(serve: _Role, plant: working.Plant) -> None:
    await serve(plant)


async def _work(plant: working.Plant) -> None:
    async with working.working(plant) as (_, stop):
        click.echo("fairlead works", err=True)
        await stop.wait()


def _site() -> _Role:
    # By name: a worker serves no page and need not carry the weight of a web framework.
    serve: _Role = importlib.import_module("fairlead.cli.site").serve
    return serve
