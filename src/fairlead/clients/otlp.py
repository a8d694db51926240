"""Spans to an OpenTelemetry collector by OTLP over HTTP.

Imported only where FAIRLEAD_OTLP_ENDPOINT is set: the packages are the optional extra
`telemetry`.
"""

import contextlib
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import fairlead
from fairlead import errors

_TIMEOUT_SECONDS = 5.0
_CLOSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Exporter:
    """A tracer, and the thread behind it that sends."""

    provider: TracerProvider

    @property
    def tracer(self) -> trace.Tracer:
        return self.provider.get_tracer("fairlead", fairlead.__version__)

    def close(self) -> None:
        """Send what is left, but let a silent collector hold nobody up."""

        def shut() -> None:
            with contextlib.suppress(Exception):  # spans are lost, nothing else
                self.provider.shutdown()

        last = threading.Thread(target=shut, name="fairlead-spans", daemon=True)
        last.start()
        last.join(_CLOSE_SECONDS)


def start(endpoint: str) -> Exporter:
    exporter = OTLPSpanExporter(endpoint=traces_url(endpoint), timeout=_TIMEOUT_SECONDS)
    return provided(BatchSpanProcessor(exporter))


def provided(processor: SpanProcessor) -> Exporter:
    """A provider of our own, not the global one: two engines in one process stay apart."""
    resource = Resource.create({SERVICE_NAME: "fairlead", SERVICE_VERSION: fairlead.__version__})
    # Our own shutdown sends the rest; an exit hook besides would wait for the collector again.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return Exporter(provider)


def traces_url(endpoint: str) -> str:
    """A collector's address, with the usual path where none is given."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.Rejected(
            f"malformed setting FAIRLEAD_OTLP_ENDPOINT: {endpoint[:80]}",
            hint="use a URL such as http://127.0.0.1:4318",
        )
    return endpoint if parts.path.strip("/") else endpoint.rstrip("/") + "/v1/traces"
