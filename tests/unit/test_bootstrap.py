"""The wiring: spans only where they are asked for, and a line per transition in debug."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlead import errors, settings
from fairlead.bootstrap import tracing as tracing_
from fairlead.clients import otlp
from fairlead.console import logs
from fairlead.engine import messages, outbox
from fairlead.engine.sample.messages import DriveLeg, Order
from tests.unit.web import rig


async def test_each_attempt_at_an_effect_leaves_a_span(tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    exporter = otlp.provided(SimpleSpanProcessor(spans))
    tracing = tracing_.Tracing(exporter.tracer, exporter.close, on=True)
    cast = replace(rig.CAST, handlers=tracing_.traced(rig.CAST.handlers, tracing))

    async with rig.site(tmp_path, cast) as site:
        await site.client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
        await site.settled("depot/a")

    found = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
    assert [each["fairlead.effect"] for each in found] == ["DriveLeg", "DriveLeg"]
    assert {each["fairlead.stream"] for each in found} == {"trip/a-1"}
    assert {each["fairlead.attempt"] for each in found} == {1}
    assert len({each["fairlead.idempotency_key"] for each in found}) == 2


async def test_a_failed_attempt_is_marked_in_its_span() -> None:
    spans = InMemorySpanExporter()
    tracing = tracing_.Tracing(otlp.provided(SimpleSpanProcessor(spans)).tracer, on=True)
    handlers = tracing_.traced({DriveLeg: outbox.Handler(rig.refuse)}, tracing)
    context = outbox.EffectContext(messages.stream_name("trip", "a"), "k", 1)

    with pytest.raises(errors.Rejected):
        await handlers[DriveLeg].perform(DriveLeg(1), context)

    (span,) = spans.get_finished_spans()
    assert not span.status.is_ok


def test_without_an_endpoint_handlers_stay_as_they_are() -> None:
    tracing = tracing_.telemetry(settings.LogSettings())

    assert not tracing.on
    assert tracing_.traced(rig.CAST.handlers, tracing) is rig.CAST.handlers


def test_a_missing_package_is_told_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("fairlead.clients.otlp", "fairlead.bootstrap.tracing_otlp"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    with pytest.raises(errors.Rejected, match=r"package is missing: opentelemetry\.sdk") as refused:
        tracing_.telemetry(settings.LogSettings(otlp_endpoint="http://127.0.0.1:4318"))

    assert "fairlead[telemetry]" in refused.value.hint


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://otel.example/in/traces", "https://otel.example/in/traces"),
    ],
)
def test_a_collector_gets_the_usual_path(endpoint: str, url: str) -> None:
    assert otlp.traces_url(endpoint) == url


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "ftp://x", "http://"])
def test_a_malformed_collector_is_refused(endpoint: str) -> None:
    with pytest.raises(errors.Rejected, match="FAIRLEAD_OTLP_ENDPOINT"):
        otlp.traces_url(endpoint)


async def test_debug_logs_have_one_line_per_event_with_its_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = settings.Settings(
        store=settings.StoreSettings(state_dir=tmp_path),
        log=settings.LogSettings(log_level="debug", log_format="json"),
    )
    store = rig.CAST.store(chosen.store)
    store.migrate()
    old = structlog.get_config()
    logs.configure(chosen.log)
    try:
        async with rig.CAST.engine(chosen, store, perform=False).running() as engine:
            stream = messages.stream_name("depot", "a")
            await engine.submit(stream, Order("a", 1, 2), messages.command_id("order-1"))
    finally:
        structlog.configure(**old)

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    told = [line for line in lines if line["event"] == "transition"]
    # The trip's own event too: no caller submitted it, the depot sent it.
    assert [(line["stream"], line["seq"], line["event_type"]) for line in told] == [
        ("depot/a", 1, "Ordered"),
        ("depot/a", 2, "Sent"),
        ("trip/a-1", 1, "Departed"),
    ]
    assert {line["cause"] for line in told} == {"order-1"}


def test_an_operator_searches_for_garbage_seldom_but_finds_it() -> None:
    # In a process of its own: what is frozen stays so.
    script = """
import gc, weakref
from fairlead.bootstrap import operator as wiring

class Knot:
    def __init__(self):
        self.me = self

wiring.collect_rarely()
assert gc.get_freeze_count() > 10_000
first = weakref.ref(Knot())
held = [Knot() for _ in range(20_000)]
assert first() is None
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, timeout=60, capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")
