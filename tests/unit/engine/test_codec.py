"""Rows stay readable for ever: by name, by version, lifted step by step."""

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors
from fairlead.engine import children, codec, machine, wellformed
from fairlead.engine import messages as engine_messages
from fairlead.engine.sample import depot, messages, trip
from tests import machines

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
NUMBER = st.integers(-(2**63), 2**63 - 1)
NOTES = codec.Codec(machines.NOTEBOOK).events


def words(of: machine.AnyMachine) -> list[tuple[codec.MessageCodec, type]]:
    registered = codec.Codec(of)
    codecs = (registered.states, registered.commands, registered.events, registered.effects)
    return [(message_codec, word) for message_codec in codecs for word in message_codec.types]


def _children(names: list[engine_messages.StreamName]) -> children.Children:
    return children.Children(tuple(names))


VALUES: tuple[tuple[str, st.SearchStrategy[Any]], ...] = (
    ("Children", st.lists(TEXT.map(engine_messages.StreamName)).map(_children)),
    ("tuple", st.lists(NUMBER).map(tuple)),
    ("bool", st.booleans()),
    ("str", TEXT),
    ("", NUMBER),
)
"""What a field may hold, by the first of these that its type's name has."""


def samples(word: type) -> st.SearchStrategy[Any]:
    def value(of: object) -> st.SearchStrategy[Any]:
        name = of.__name__ if isinstance(of, type) else str(of)
        return next(values for part, values in VALUES if part.lower() in name.lower())

    return st.builds(word, **{each.name: value(each.type) for each in dataclasses.fields(word)})


@given(st.data())
def test_every_word_of_the_samples_comes_back_as_it_went(data: st.DataObject) -> None:
    for message_codec, word in [*words(depot.DEPOT), *words(trip.TRIP)]:
        message = data.draw(samples(word))

        assert message_codec.decode(message_codec.encode(message)) == message


def test_each_kind_of_word_is_a_namespace_of_its_own() -> None:
    registered = codec.Codec(trip.TRIP)

    assert registered.commands.types == (messages.Depart, messages.Arrive, engine_messages.Cancel)
    assert registered.effects.types == (messages.DriveLeg,)
    with pytest.raises(errors.Rejected, match="not a trip command: DriveLeg") as refused:
        registered.commands.check(messages.DriveLeg(1))
    assert refused.value.hint == "use one of: Arrive, Cancel, Depart"


def test_a_machine_without_effects_has_no_words_for_them() -> None:
    assert codec.Codec(depot.DEPOT).effects.types == ()


def test_a_row_carries_the_version_of_today() -> None:
    row = NOTES.encode(machines.Note("a", ("b",)))

    assert row == codec.Encoded("Note", 3, '{"title":"a","lines":["b"]}')


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, {"text": "title\none\ntwo"}),
        (2, {"lines": ["title", "one", "two"]}),
        (3, {"title": "title", "lines": ["one", "two"]}),
    ],
)
def test_a_row_of_any_age_is_lifted_to_the_shape_of_today(version: int, data: Any) -> None:
    row = codec.Encoded("Note", version, json.dumps(data))

    assert NOTES.decode(row) == machines.Note("title", ("one", "two"))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (codec.Encoded("Note", 3, '{"title":"a"'), "truncated"),
        (codec.Encoded("Note", 3, '{"title":1,"lines":[]}'), "Expected `str`"),
        (codec.Encoded("Note", 3, ""), "truncated"),
        (codec.Encoded("Note", 1, '{"other":"a"}'), "text"),
        (codec.Encoded("Note", 1, "[]"), "list"),
        (codec.Encoded("Note", 1, '{"text":1}'), "int"),
        (codec.Encoded("Note", 2, '{"lines":[]}'), "index"),
        (codec.Encoded("Note", 0, '{"text":"a"}'), "0"),
    ],
)
def test_a_row_that_does_not_hold_what_it_says_is_corrupt(row: codec.Encoded, why: str) -> None:
    with pytest.raises(errors.Corrupt, match="cannot read notebook event") as refused:
        NOTES.decode(row)

    assert why in refused.value.message
    assert "backup" in refused.value.hint


@given(st.text(max_size=60), st.integers(0, 5))
def test_no_damage_escapes_as_anything_but_corrupt(data: str, version: int) -> None:
    with pytest.raises(errors.Newer if version > 3 else errors.Corrupt):
        NOTES.decode(codec.Encoded("Note", version, data))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (codec.Encoded("Letter", 1, "{}"), "unknown type"),
        (codec.Encoded("Note", 4, "{}"), "newer than this program's version 3"),
        (codec.Encoded("Note", 3, '{"title":"a","lines":[],"mood":1}'), "unknown field $.mood"),
    ],
)
def test_a_row_that_a_newer_program_wrote_is_left_to_that_one(row: codec.Encoded, why: str) -> None:
    with pytest.raises(errors.Newer, match="cannot read notebook event") as refused:
        NOTES.decode(row)

    assert refused.value.message.endswith(why)
    assert "waits for the version" in refused.value.hint


@dataclasses.dataclass(frozen=True, slots=True)
class Leg:
    number: int
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    legs: tuple[Leg, ...] = ()
    by_name: dict[str, Leg] = dataclasses.field(default_factory=dict)
    last: Leg | None = None
    length: float | None = None
    rest: Any = None


def message_codec(word: type, **more: Any) -> codec.MessageCodec:
    vocabulary = machine.Vocabulary(word, word, word)
    grown = dataclasses.replace(machines.NOTEBOOK, vocabulary=vocabulary, **more)
    return codec.Codec(grown).states


WAYS = message_codec(Way)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ('{"legs":[{"number":1},{"number":2,"by":"car"}]}', "$.legs[1].by"),
        ('{"by_name":{"a":{"number":1,"by":"car"}}}', "$.by_name[...].by"),
        ('{"last":{"number":1,"note":"","by":"car"}}', "$.last.by"),
    ],
)
def test_an_unknown_field_is_noticed_however_deep_it_stands(data: str, where: str) -> None:
    with pytest.raises(errors.Newer, match="unknown field") as refused:
        WAYS.decode(codec.Encoded("Way", 1, data))

    assert refused.value.message.endswith(where)


def test_a_row_in_other_words_than_ours_is_read_all_the_same() -> None:
    data = '{ "rest": {"any": {"thing": 1}}, "length": 2, "legs": [{"number": 1}] }'

    assert WAYS.decode(codec.Encoded("Way", 1, data)) == Way(
        legs=(Leg(1),), length=2.0, rest={"any": {"thing": 1}}
    )


@pytest.mark.parametrize(
    "fault",
    [RecursionError, AssertionError, ZeroDivisionError, OSError, StopIteration, errors.Rejected],
)
def test_an_upcaster_that_raises_anything_makes_its_row_corrupt_and_no_other(
    fault: type[Exception],
) -> None:
    def lift(data: dict[str, Any]) -> dict[str, Any]:
        if data["length"] is None:
            raise fault("no", hint="none") if fault is errors.Rejected else fault
        return data

    ways = message_codec(Way, versions={Way: 2}, upcasters={("Way", 1): lift})

    with pytest.raises(errors.Corrupt, match="cannot read notebook state Way version 1") as told:
        ways.decode(codec.Encoded("Way", 1, '{"length":null}'))
    assert isinstance(told.value.__cause__, fault)
    assert ways.decode(codec.Encoded("Way", 1, '{"length":1}')) == Way(length=1.0)


def nested(levels: int) -> Any:
    found: Any = 1
    for level in range(levels):
        found = [found] if level % 2 else {"a": found}
    return found


@pytest.mark.parametrize(
    ("way", "where"),
    [
        (Way(length=math.nan), "a number that is not finite at $.length: nan"),
        (Way(length=-math.inf), "a number that is not finite at $.length: -inf"),
        (Way(rest={"a": [1.0, math.inf]}), "a number that is not finite at $.rest.a[1]: inf"),
        (Way(rest=nested(100)), "nesting of more than 100 levels: $.rest[0].a[0]"),
        (Way(rest=nested(985)), "nesting of more than 100 levels: $.rest.a[0].a"),
        (Way(rest=nested(100_000)), "nesting of more than 100 levels: $.rest[0].a[0]"),
    ],
    ids=["nan", "infinity", "inside", "too deep", "much too deep", "absurd"],
)
def test_what_could_not_be_read_back_is_refused_with_its_path(way: Way, where: str) -> None:
    with pytest.raises(errors.Rejected) as refused:
        WAYS.encode(way)

    assert where in refused.value.message
    assert "finite" in refused.value.hint or "well-formed" in refused.value.hint


def test_nesting_up_to_the_limit_comes_back_as_it_went() -> None:
    way = Way(rest=nested(wellformed.MAX_DEPTH - 1), length=1e308)

    assert WAYS.decode(WAYS.encode(way)) == way


def test_what_only_looks_deep_or_not_finite_is_written() -> None:
    way = Way(rest=[["[{" * 200 + '"\\'], [[]] * 200, "\xcb\x7f\xf0", None])

    assert WAYS.decode(WAYS.encode(way)) == way


@pytest.mark.parametrize("rest", [math.nan, nested(200), [1, {"a": -math.inf}]])
def test_the_same_is_refused_of_what_comes_from_outside(rest: Any) -> None:
    with pytest.raises(errors.Rejected, match="notebook state Way holds"):
        WAYS.parse("Way", {"rest": rest})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"length": 2, "legs": [{"number": 1}]},
            {"legs": [{"note": "", "number": 1}], "length": 2.0},
        ),
        ({}, {"legs": [], "by_name": {}, "last": None, "length": None, "rest": None}),
        ({"rest": {"b": 1, "a": 2}}, {"rest": {"a": 2.0, "b": 1}}),
    ],
    ids=["order", "defaults spelled out", "inside"],
)
def test_the_essence_is_what_was_said_however_it_was_said(one: Any, other: Any) -> None:
    told = [WAYS.essence(WAYS.parse("Way", each)) for each in (one, other)]

    assert told[0] == told[1]


def test_what_differs_has_another_essence() -> None:
    ways = [Way(), Way(length=0.0), Way(legs=(Leg(1),)), Way(legs=(Leg(1, "a"),)), Way(rest=[])]

    assert len({WAYS.essence(way) for way in ways}) == len(ways)


def test_a_field_that_a_type_gained_does_not_change_what_was_said() -> None:
    old = dataclasses.make_dataclass("Way", [("legs", tuple[Leg, ...], ())], frozen=True)
    said = {"legs": [{"number": 1}]}

    before = message_codec(old).essence(message_codec(old).parse("Way", said))

    assert before == WAYS.essence(WAYS.parse("Way", said)) == b'{"legs":[{"number":1}]}'


def test_an_oversized_message_is_refused_with_the_limit() -> None:
    limit = engine_messages.MAX_PAYLOAD_BYTES
    frame = len('{"title":"","lines":[]}')

    NOTES.encode(machines.Note("x" * (limit - frame), ()))
    with pytest.raises(errors.Rejected, match="too large: 1048577 bytes") as refused:
        NOTES.encode(machines.Note("x" * (limit - frame + 1), ()))

    assert str(limit) in refused.value.hint


@pytest.mark.parametrize("title", ["\udc80", object()])
def test_what_json_cannot_hold_is_refused(title: Any) -> None:
    with pytest.raises(errors.Rejected, match="notebook event Note cannot be written"):
        NOTES.encode(machines.Note(title, ()))


def test_a_message_from_outside_is_parsed_or_refused_by_name() -> None:
    assert NOTES.parse("Note", {"title": "a", "lines": ["b"]}) == machines.Note("a", ("b",))
    with pytest.raises(errors.Rejected, match="not a notebook event: Letter"):
        NOTES.parse("Letter", {})
    with pytest.raises(errors.Rejected, match="malformed notebook event Note"):
        NOTES.parse("Note", {"title": "a"})
    with pytest.raises(errors.Rejected, match="malformed"):
        NOTES.parse("Note", None)
