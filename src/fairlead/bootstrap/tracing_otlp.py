"""Spans to a collector; what it needs is an optional extra, so it is loaded late."""

from fairlead.bootstrap.tracing import Tracing
from fairlead.clients.otlp import start as start_exporter


def start(endpoint: str) -> Tracing:
    exporter = start_exporter(endpoint)
    return Tracing(exporter.tracer, exporter.close, on=True)
