"""The one place that wires everything: settings in, a running engine out."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import structlog

from fairlead import settings as settings_
from fairlead.engine import machine as machines_
from fairlead.engine import outbox, projections, service
from fairlead.engine.store import postgres, protocol, sqlite


@dataclass(frozen=True, slots=True)
class Cast:
    """The machines of an installation, with who performs their effects."""

    machines: Sequence[machines_.AnyMachine] = ()
    handlers: outbox.Handlers = field(default_factory=dict)
    views: Sequence[projections.Projection] = ()


def settings(environment: Mapping[str, str] | None = None) -> settings_.Settings:
    return settings_.from_environment(os.environ if environment is None else environment)


def cast() -> Cast:
    """What this installation can do; the areas join here as they come."""
    return Cast()


def store(chosen: settings_.StoreSettings, players: Cast) -> protocol.Store:
    ordered = [each.name for each in players.machines if each.effects_in_order]
    if chosen.database_url:
        return postgres.PostgresStore(chosen.database_url, ordered)
    return sqlite.SqliteStore(database_file(chosen), ordered)


def database_file(chosen: settings_.StoreSettings) -> Path:
    return chosen.state_dir.expanduser() / "fairlead.db"


def engine(
    chosen: settings_.Settings,
    players: Cast,
    kept: protocol.Store | None = None,
    *,
    perform: bool = True,
) -> service.Engine:
    tuning = service.Tuning(
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
    )
    return service.Engine(parts, perform=perform)


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
