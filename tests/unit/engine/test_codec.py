"""Rows stay readable for ever: by name, by version, lifted step by step."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors
from fairlead._sample import depot, messages, trip
from fairlead.engine import codec, machine
from fairlead.engine import messages as engine_messages
from tests import machines

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
NUMBER = st.integers(-(2**63), 2**63 - 1)
NOTES = codec.Codec(machines.NOTEBOOK).events


def words(of: machine.AnyMachine) -> list[tuple[codec.Lexicon, type]]:
    spoken = codec.Codec(of)
    lexicons = (spoken.states, spoken.commands, spoken.events, spoken.effects)
    return [(lexicon, word) for lexicon in lexicons for word in lexicon.types]


def samples(word: type) -> st.SearchStrategy[Any]:
    return st.builds(
        word,
        **{
            field.name: st.lists(NUMBER).map(tuple) if "tuple" in str(field.type)
            else TEXT if field.type is str else NUMBER
            for field in dataclasses.fields(word)
        },
    )  # fmt: skip


@given(st.data())
def test_every_word_of_the_samples_comes_back_as_it_went(data: st.DataObject) -> None:
    for lexicon, word in [*words(depot.DEPOT), *words(trip.TRIP)]:
        message = data.draw(samples(word))

        assert lexicon.decode(lexicon.encode(message)) == message


def test_each_kind_of_word_is_a_namespace_of_its_own() -> None:
    spoken = codec.Codec(trip.TRIP)

    assert spoken.commands.types == (messages.Depart, messages.Arrive)
    assert spoken.effects.types == (messages.DriveLeg,)
    with pytest.raises(errors.Rejected, match="not a trip command: DriveLeg") as refused:
        spoken.commands.check(messages.DriveLeg(1))
    assert refused.value.hint == "use one of: Arrive, Depart"


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
        (codec.Encoded("Letter", 1, "{}"), "unknown type"),
        (codec.Encoded("Note", 4, "{}"), "newer than this program's version 3"),
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
    with pytest.raises(errors.Corrupt):
        NOTES.decode(codec.Encoded("Note", version, data))


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
