"""The intake: who may, which id, what is recorded."""

import math
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.clients import otlp
from fairlead.engine import messages
from tests.unit.web import rig

DEPOT = messages.stream_name("depot", "a")
OPERATOR = intake.Caller("ann", tokens.Role.OPERATOR)


def request(**changes: object) -> intake.Request:
    values = {"stream": DEPOT, "type": "Order", "data": {"depot": "a", "trips": 1}, **changes}
    return intake.Request(**values)  # type: ignore[arg-type]  # any field may be exchanged


def deep(levels: int) -> list[object]:
    found: list[object] = []
    for _ in range(levels):
        found = [found]
    return found


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


@pytest.mark.parametrize(
    ("trips", "why"),
    [
        (math.nan, r"not finite at \$\.trips: nan"),
        ([[[]] * 2] * 2, "malformed"),
        (deep(200), "100"),
    ],
    ids=["nan", "another shape", "too deep"],
)
async def test_what_could_not_be_read_back_is_refused_at_the_door(
    tmp_path: Path, trips: object, why: str
) -> None:
    async with rig.site(tmp_path) as site:
        with pytest.raises(errors.Rejected, match=why):
            await intake.Intake(site.engine).submit(
                OPERATOR, request(data={"depot": "a", "trips": trips})
            )

        assert (await site.client.get("/api/v1/streams")).json()["items"] == []


@pytest.mark.parametrize("trips", ["NaN", "1e999", "[" * 100_000 + "]" * 100_000])
async def test_the_api_says_what_is_wrong_with_such_a_body(tmp_path: Path, trips: str) -> None:
    async with rig.site(tmp_path) as site:
        answer = await site.client.post(
            "/api/v1/streams/depot/a/commands",
            content='{"type":"Order","data":{"depot":"a","trips":' + trips + "}}",
            headers={"Content-Type": "application/json"},
        )

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "rejected")


@pytest.mark.parametrize("role", [tokens.Role.OPERATOR, tokens.Role.ADMIN])
async def test_a_command_of_machines_is_refused_to_people_with_their_verbs(
    tmp_path: Path, role: tokens.Role
) -> None:
    async with rig.site(tmp_path) as site:
        door, caller = intake.Intake(site.engine), intake.Caller("ann", role)
        ended = {"child": "trip/a-1", "succeeded": True}

        with pytest.raises(errors.Forbidden, match="not a command of people: ChildEnded") as told:
            await door.ask(caller, request(type="ChildEnded", data=ended))
        with pytest.raises(errors.Rejected, match="Nonsense") as unknown:
            await door.ask(caller, request(type="Nonsense"))
        await door.ask(caller, request())

    assert told.value.hint == "its verbs: Order, Cancel"
    assert not isinstance(unknown.value, errors.Forbidden)


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
