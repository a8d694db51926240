"""Spans reach a collector over HTTP, the last ones before the process ends."""

import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fairlead import settings
from fairlead.bootstrap import tracing as tracing_


@pytest.fixture
def collector() -> Iterator[tuple[str, "queue.Queue[tuple[str, bytes]]"]]:
    heard: queue.Queue[tuple[str, bytes]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.put((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is its verdict."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", heard
        server.shutdown()
        thread.join()


def test_a_span_arrives_when_tracing_is_closed(
    collector: tuple[str, "queue.Queue[tuple[str, bytes]]"],
) -> None:
    url, heard = collector
    tracing = tracing_.telemetry(settings.LogSettings(otlp_endpoint=url))

    with tracing.tracer.start_as_current_span("submit"):
        pass
    tracing.close()

    path, body = heard.get(timeout=10)
    sent = ExportTraceServiceRequest.FromString(body).resource_spans[0]
    named = {each.key: each.value.string_value for each in sent.resource.attributes}
    assert path == "/v1/traces"
    assert [span.name for scope in sent.scope_spans for span in scope.spans] == ["submit"]
    assert named["service.name"] == "fairlead"
