"""`fairlead operator`: the Kubernetes controllers, the engine and the writes, in one process.

settings ──► API server (kubeconfig, or the pod's own account) ──► caches ──► lease ──► engine
SIGINT or SIGTERM ──► no new reconciles ──► effects may finish ──► the lease is released
"""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fairlead import settings as settings_
from fairlead.bootstrap import operator as wiring
from fairlead.bootstrap import tracing as tracing_
from fairlead.cli import installed, lifecycle, manifests
from fairlead.console import logs, options
from fairlead.kubernetes.operator import heap


@click.group(invoke_without_command=True)
@click.option("--namespace", metavar="NAME", help="Reconcile this namespace only; else all.")
@click.option(
    "--shard", metavar="INDEX/COUNT", help="Reconcile one shard of all namespaces, from 0."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Reach the cluster by this file; else by KUBECONFIG, as a pod, or by ~/.kube/config.",
)
@click.option("--context", default="", metavar="NAME", help="Use this context of the kubeconfig.")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Act only while holding the Lease; without it, run exactly one operator.",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where /healthz, /readyz and /metrics answer; 127.0.0.1:8601 if unset.",
)
@click.option(
    "--webhooks-listen",
    metavar="ADDRESS:PORT",
    help="Where the admission webhook listens, such as 0.0.0.0:8443; nowhere if unset.",
)
@click.option(
    "--no-secrets",
    "secrets",
    flag_value="ignored",
    help="Read no Secret; a changed one then starts no run.",
)
def operator(*, kubeconfig: Path | None, context: str, leader_elect: bool, **given: Any) -> None:
    """Run the operator for a Kubernetes cluster.

    Its store is SQLite in the state folder, which may be empty at every start: what matters
    is in the status of the objects. Set FAIRLEAD_DATABASE_URL for a shared store. The
    first Ctrl-C drains it and releases the Lease.
    """
    if click.get_current_context().invoked_subcommand:
        return
    heap.keep_small()
    chosen = _chosen(options.settings(), given)
    logs.configure_server(chosen.log)
    tracing = tracing_.telemetry(chosen.log)
    try:
        asyncio.run(_serve(chosen, tracing, (kubeconfig, context), elect=leader_elect))
    finally:
        tracing.close()


operator.add_command(manifests.manifests)


def _chosen(chosen: settings_.Settings, given: dict[str, str | None]) -> settings_.Settings:
    named = {f"operator_{name}": value for name, value in given.items() if value is not None}
    return replace(chosen, operator=replace(chosen.operator, **named))


async def _serve(
    chosen: settings_.Settings,
    tracing: tracing_.Tracing,
    reached: tuple[Path | None, str],
    *,
    elect: bool,
) -> None:
    given = wiring.with_kinds(installed.installation(), chosen)
    wiring.check_kinds(given)
    there = wiring.cluster(*reached)
    made = wiring.operator(chosen, given, there, elect=elect, tracing=tracing)
    wiring.collect_rarely()
    async with made.answering(chosen.operator.operator_listen) as address:
        running = asyncio.create_task(made.run())
        with lifecycle.signals(running.cancel), contextlib.suppress(asyncio.CancelledError):
            click.echo(f"fairlead operator is running: {address}", err=True)
            await running
    click.echo("fairlead operator has stopped", err=True)
