"""Spans around effects, where a collector is named."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from opentelemetry import trace

from fairlead import errors, loading
from fairlead import settings as settings_
from fairlead.engine import outbox


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
        # Late, and only here: the packages behind it are an optional extra.
        return loading.make("fairlead.bootstrap.tracing_otlp:start", Tracing, chosen.otlp_endpoint)
    except ModuleNotFoundError as error:
        raise errors.Rejected(
            f"FAIRLEAD_OTLP_ENDPOINT is set, but a package is missing: {error.name}",
            hint="install fairlead[telemetry], or unset it",
        ) from error


def traced(handlers: outbox.Handlers, tracing: Tracing) -> outbox.Handlers:
    """The same handlers, each attempt in a span; untouched where tracing is off."""
    if not tracing.on:
        return handlers
    return {effect: _spanned(handler, tracing.tracer) for effect, handler in handlers.items()}


def _spanned(handler: outbox.Handler, tracer: trace.Tracer) -> outbox.Handler:
    async def perform(effect: Any, context: outbox.EffectContext) -> object | None:
        attributes: dict[str, str | int] = {
            "fairlead.stream": context.stream,
            "fairlead.effect": type(effect).__name__,
            "fairlead.idempotency_key": context.idempotency_key,
            "fairlead.attempt": context.attempt,
        }
        with tracer.start_as_current_span("perform", attributes=attributes):
            return await handler.perform(effect, context)

    return replace(handler, perform=perform)
