"""The operator of an installation: its kinds, who performs for them, and the way to a cluster."""

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from fairlead import errors
from fairlead import settings as settings_
from fairlead.area import operator_part
from fairlead.bootstrap import Installation
from fairlead.bootstrap.tracing import Tracing, traced
from fairlead.engine import outbox, service
from fairlead.kubernetes.client import config
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.controller.registration import Registrar
from fairlead.kubernetes.operator import operator as runtime

# New containers before a search, 700 by default; some 5 MB where all of them were garbage.
_COLLECT_AFTER = 10_000
# Behind every commit of an operator stands a request to an API server, which takes longer than
# this. A storm of objects then makes fewer commits, and costs less processor time.
_GATHER = timedelta(milliseconds=4)


def with_kinds(given: Installation, chosen: settings_.Settings | None = None) -> Installation:
    """The same with the kinds of its areas, and with who performs for them where settings say."""
    for area in given.areas:
        part = operator_part.load(area)
        if part is None:
            continue
        made = [part.registrar(chosen)] if part.registrar and chosen else []
        kinds = part.kinds_of(chosen) if part.kinds_of and chosen else part.kinds
        given = replace(given, kinds=[*given.kinds, *kinds], registrars=[*given.registrars, *made])
    return given


def check_kinds(given: Installation) -> None:
    if not given.kinds:
        raise errors.Rejected(
            "this installation has no kind of Kubernetes object",
            hint="areas bring their kinds; fairlead up runs without a cluster",
        )


def operator(
    chosen: settings_.Settings,
    given: Installation,
    connection: config.Connection,
    *,
    elect: bool,
    tracing: Tracing | None = None,
) -> runtime.Operator:
    """The operator for the kinds of this installation."""
    options = runtime.orders(chosen.operator, given.kinds, connection, elect=elect)
    registrars = [_registrar(each) for each in given.registrars]
    return runtime.Operator(connection, options, engines(chosen, given, tracing), registrars)


def _registrar(given: object) -> Registrar:
    assert isinstance(given, Registrar)
    return given


def engines(
    chosen: settings_.Settings, given: Installation, tracing: Tracing | None = None
) -> Callable[[outbox.QueueHandlers], contextlib.AbstractAsyncContextManager[service.Engine]]:
    """Makes an engine for each term of an operator, which knows the handlers of that term."""
    behind = [kind.machine for kind in given.kinds]
    machines = [*given.machines, *(one for one in behind if one not in given.machines)]

    @contextlib.asynccontextmanager
    async def working(handlers: outbox.QueueHandlers) -> AsyncIterator[service.Engine]:
        queues = {
            queue: traced(performed, tracing or Tracing())
            for queue, performed in outbox.merged(given.queues, handlers).items()
        }
        complete = replace(given, machines=machines, queues=queues)
        kept = complete.store(chosen.store)
        await asyncio.to_thread(kept.migrate)
        async with complete.engine(chosen, kept, gather=_GATHER).running() as running:
            yield running

    return working


def cluster(kubeconfig: Path | None = None, context: str = "") -> config.Connection:
    """How to reach the API server: by a kubeconfig that is named, as a pod, or as kubectl does."""
    named = [kubeconfig] if kubeconfig else _kubeconfigs()
    if not named and not context and "KUBERNETES_SERVICE_HOST" in os.environ:
        return config.in_cluster(os.environ, Clock())
    home = Path("~/.kube/config").expanduser()
    return config.from_kubeconfig(named or [home], os.environ, Clock(), context)


def collect_rarely() -> None:
    """Look for garbage less often, and never again in what is loaded by now.

    For a process that serves for long: a storm of objects makes little garbage that reference
    counts do not free at once, and every search for it walks through all that is held.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


def _kubeconfigs() -> list[Path]:
    listed = os.environ.get("KUBECONFIG", "")
    return [Path(one) for one in listed.split(os.pathsep) if one]
