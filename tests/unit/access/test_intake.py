"""The intake: who may, which id, what is recorded."""

from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlead import errors
from fairlead.adapters import otlp
from fairlead.engine import messages
from fairlead.intents import intake, tokens
from tests.unit.web import rig

DEPOT = messages.stream_name("depot", "a")
OPERATOR = intake.Caller("ann", tokens.Role.OPERATOR)


def request(**changes: object) -> intake.Request:
    values = {"stream": DEPOT, "type": "Order", "data": {"depot": "a", "trips": 1}, **changes}
    return intake.Request(**values)  # type: ignore[arg-type]  # any field may be exchanged


async def test_a_viewer_may_not_submit(tmp_path: Path) -> None:
    async with rig.site(tmp_path) as site:
        with pytest.raises(errors.Forbidden, match="takes the role operator") as refused:
            await intake.Intake(site.engine).submit(
                intake.Caller("eve", tokens.Role.VIEWER), request()
            )

        assert "--role operator" in refused.value.hint
        assert (await site.client.get("/api/v1/streams")).json()["items"] == []


async def test_a_named_request_is_taken_once(tmp_path: Path) -> None:
    async with rig.site(tmp_path) as site:
        door = intake.Intake(site.engine)
        named = request(id=intake.derived_id("github", "delivery-7"))

        first = await door.submit(OPERATOR, named)
        again = await door.submit(OPERATOR, named)

        assert (first.duplicate, again.duplicate) == (False, True)
        assert first == again


def test_derived_ids_part_their_words() -> None:
    assert intake.derived_id("github", "a", "bc") == intake.derived_id("github", "a", "bc")
    assert intake.derived_id("github", "a", "bc") != intake.derived_id("github", "ab", "c")
    assert intake.derived_id("github", "a") != intake.derived_id("gitlab", "a")


def test_fresh_ids_are_never_alike() -> None:
    assert len({intake.fresh_id() for _ in range(100)}) == 100


async def test_a_submission_leaves_a_span(tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    tracer = otlp.provided(SimpleSpanProcessor(spans)).tracer

    async with rig.site(tmp_path) as site:
        door = intake.Intake(site.engine, tracer)
        await door.submit(OPERATOR, request(id=messages.command_id("x")))
        with pytest.raises(errors.Rejected):
            await door.submit(OPERATOR, request(data={"depot": "a", "trips": 0}))

    good, bad = spans.get_finished_spans()
    assert good.name == bad.name == "submit"
    assert dict(good.attributes or {}) == {
        "fairlead.stream": "depot/a",
        "fairlead.command": "Order",
        "fairlead.command_id": "x",
        "fairlead.events": 2,
    }
    assert not bad.status.is_ok
