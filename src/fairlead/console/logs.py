"""Log lines to standard error, so that standard output stays data."""

import contextlib
import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from fairlead import settings as settings_
from fairlead import values
from fairlead.console import stderr


def configure(chosen: settings_.LogSettings) -> None:
    level = getattr(logging, chosen.log_level.upper())
    # Python has no standard error at all where it was closed at the start.
    terminal = getattr(sys.stderr, "isatty", bool)()
    as_text = chosen.log_format == "text" or (chosen.log_format == "auto" and terminal)
    renderer = (
        structlog.dev.ConsoleRenderer(colors=terminal)
        if as_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redacted,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=StderrLogger,
        cache_logger_on_first_use=True,
    )


def configure_server(chosen: settings_.LogSettings) -> None:
    """The same for a process that works on when nobody takes its log."""
    stderr.queue()
    configure(chosen)


def _redacted(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """No line of a log tells a token that somebody wrote into an address."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = values.redacted(value)
    return event


class StderrLogger:
    """Writes lines to whatever standard error is at that moment, and never raises."""

    def __init__(self, *_: object) -> None: ...

    def msg(self, message: str) -> None:
        # A log line that cannot be written must not end the work that it tells of.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(message + "\n")
            sys.stderr.flush()

    debug = info = warning = error = critical = exception = log = msg
