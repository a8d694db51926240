"""`fairlead up` and `fairlead worker`: an engine that runs until it is asked to stop.

settings ──► store (migrated by up) ──► engine ──► web (only up) ──► "fairlead is up"
SIGINT or SIGTERM ──► no new requests, no new work ──► what runs may finish ──► lease back
"""

import asyncio
from dataclasses import replace

import click

from fairlead import bootstrap, loading
from fairlead import settings as settings_
from fairlead.bootstrap import tracing as tracing_
from fairlead.cli import installed, lifecycle
from fairlead.console import logs, options


@click.command()
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to answer; 127.0.0.1:8600 if unset.")
def up(listen: str | None) -> None:
    """Run the control plane and its page on this machine.

    Creates and migrates the store where that is needed, performs effects, and serves the
    page and the API. The first Ctrl-C drains it, the second stops it at once.
    """
    with lifecycle.starting():
        chosen = options.settings()
        if listen is not None:
            chosen = replace(chosen, web=replace(chosen.web, listen=listen))
        run(chosen, bootstrap.with_platforms(chosen, installed.installation()))


@click.command()
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where /healthz, /readyz and /metrics answer; nowhere if unset.",
)
def worker(listen: str | None) -> None:
    """Run one more worker on a shared store.

    Performs effects and serves no page. The store must have been migrated. Workloads of a
    machine or of a cluster are left to the control plane or operator that serves their queue.
    """
    with lifecycle.starting():
        chosen = options.settings()
        if listen is not None:
            chosen = replace(chosen, engine=replace(chosen.engine, worker_listen=listen))
        run(chosen, installed.installation(), pages=False)


def run(chosen: settings_.Settings, given: bootstrap.Installation, *, pages: bool = True) -> None:
    """Run until a signal comes; returns after a clean stop."""
    logs.configure_server(chosen.log)
    tracing = tracing_.telemetry(chosen.log)
    traced = replace(
        given,
        handlers=tracing_.traced(given.handlers, tracing),
        queues={name: tracing_.traced(one, tracing) for name, one in given.queues.items()},
    )
    parts = lifecycle.ServerParts(chosen, traced, traced.store(chosen.store), tracing)
    role = loading.load(_role(chosen, pages=pages), lifecycle.Role)
    try:
        asyncio.run(_awaited(role, parts))
    finally:
        tracing.close()


def _role(chosen: settings_.Settings, *, pages: bool) -> str:
    """Loaded late: who serves no page need not carry the weight of a web framework."""
    if pages:
        return "fairlead.cli.serve_web:ROLE"
    if chosen.engine.worker_listen:
        return "fairlead.cli.serve_metrics:ROLE"
    return "fairlead.cli.serve:SILENT"


async def _awaited(role: lifecycle.Role, parts: lifecycle.ServerParts) -> None:
    await role.serve(parts)


async def _work(parts: lifecycle.ServerParts) -> None:
    async with lifecycle.working(parts) as (_, stop):
        lifecycle.ready("fairlead worker is running")
        await stop.wait()


SILENT = lifecycle.Role(_work)
