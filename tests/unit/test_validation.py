"""All that is wrong with plain data, at once: paths, sentences, and what was probably meant."""

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
import pytest

from fairlead import errors, validation


class Step(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A part of a plan."""

    weight: Annotated[int, msgspec.Meta(ge=0, le=100)]
    pause_for: Annotated[str, validation.hinted("write it with its unit: 30s")] = "0s"


class Plan(msgspec.Struct, forbid_unknown_fields=True):
    """One of each kind of field."""

    name: str
    steps: list[Step] = []
    env: dict[str, str] = {}
    kind: Literal["canary", "blueGreen"] = "canary"
    limit: float | None = None
    dry: bool = False
    free: Any = None


QUOTE = "put it in quotes"


def problems(content: object) -> list[tuple[str, str, str]]:
    with pytest.raises(errors.Invalid) as caught:
        validation.convert(content, Plan, about="see the reference")
    return [(each.path, each.message, each.hint) for each in caught.value.problems]


def test_what_holds_is_converted() -> None:
    assert validation.convert({"name": "a", "limit": 2}, Plan, about="").limit == 2


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"stepz": []},
            (
                "stepz",
                "unknown field",
                "did you mean steps? use one of: dry, env, free, kind, limit, name, steps",
            ),
        ),
        (
            {"kind": "canery"},
            ("kind", "unknown value: canery", "did you mean canary? use one of: blueGreen, canary"),
        ),
        ({"name": 1.5}, ("name", "expected text, got a number: 1.5", QUOTE)),
        ({"name": True}, ("name", "expected text, got a boolean: true", QUOTE)),
        (
            {"name": dt.date(2030, 1, 31)},
            ("name", "expected text, got a date: 2030-01-31", QUOTE),
        ),
        ({"env": {"PORT": 80}}, ("env.PORT", "expected text, got a number: 80", QUOTE)),
        ({"env": {80: "x"}}, ("env", "expected text as a name, got a number: 80", QUOTE)),
        ({True: 1}, ("", "expected text as a name, got a boolean: true", QUOTE)),
        ({"name": None}, ("name", "expected text, got nothing", "give it a value, or remove it")),
        ({"name": ["a"]}, ("name", "expected text, got a list", "see the reference")),
        ({"limit": "2"}, ("limit", "expected a number, got text: 2", "remove the quotes")),
        ({"limit": "two"}, ("limit", "expected a number, got text: two", "see the reference")),
        ({"dry": "yes"}, ("dry", "expected true or false, got text: yes", "see the reference")),
        ({"steps": "x"}, ("steps", "expected a list, got text: x", "see the reference")),
        ({"steps": [5]}, ("steps[0]", "expected a map, got a number: 5", "see the reference")),
        ({"steps": [{}]}, ("steps[0].weight", "missing", "add it: it takes a whole number")),
        (
            {"steps": [{"weight": 101}]},
            ("steps[0].weight", "expected at most 100: 101", "see the reference"),
        ),
        (
            {"steps": [{"weight": -1}]},
            ("steps[0].weight", "expected at least 0: -1", "see the reference"),
        ),
        (
            {"steps": [{"weight": 1, "pauseFor": 30}]},
            (
                "steps[0].pauseFor",
                "expected text, got a number: 30",
                "write it with its unit: 30s",
            ),
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_field_and_a_way_out(
    fields: dict[Any, Any], told: tuple[str, str, str]
) -> None:
    assert problems({"name": "a"} | fields) == [told]


def test_all_mistakes_are_told_at_once() -> None:
    found = problems({"steps": [{"weight": 1, "wait": 2}, {"weight": "x"}], "kind": "ab"})

    assert [path for path, _, _ in found] == ["name", "steps[0].wait", "steps[1].weight", "kind"]


def test_a_flood_of_mistakes_is_cut() -> None:
    assert len(problems({"name": "a", "steps": [1] * 1000})) == validation.MOST


def test_something_else_than_fields_is_refused_as_a_whole() -> None:
    assert problems([]) == [("", "expected a map, got a list", "see the reference")]


def test_half_a_character_is_no_text() -> None:
    ((_, alone, _),) = problems({"name": "a", "\ud800": 1})
    beside = problems({"name": 1, "kind": "\ud800", "\ud801": 1})

    assert alone == "text that is not Unicode"
    assert beside[1:] == [
        ("kind", "unknown value: ?", "use one of: blueGreen, canary"),
        ("?", "unknown field", "use one of: dry, env, free, kind, limit, name, steps"),
    ]


def test_a_mistake_that_the_walk_does_not_know_is_told_as_msgspec_does() -> None:
    class Short(msgspec.Struct):
        word: Annotated[str, msgspec.Meta(max_length=2)]

    with pytest.raises(errors.Invalid) as caught:
        validation.convert({"word": "long"}, Short, "spec", about="shorten it")

    assert caught.value.message == "spec.word: expected str of length <= 2"
    assert caught.value.hint == "shorten it"


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ([], {"a": [{"b": 1, "c": [1, 2]}], "d": 2}),
        (["d", "a[0].b"], {"a": [{"c": [1, 2]}]}),
        (["a[0].c[1]"], {"a": [{"b": 1}], "d": 2}),
        (["a[0]", "e", "", "x.y", "d.z"], {"d": 2}),
    ],
)
def test_fields_are_left_out_of_a_copy(paths: list[str], left: object) -> None:
    content = {"a": [{"b": 1, "c": [1, 2]}], "d": 2}

    assert validation.without(content, paths) == left
    assert content["d"] == 2


def test_what_is_missing_is_filled_in_a_copy() -> None:
    content = {"stops": [{"at": 3}], "more": 1}

    class Stop(msgspec.Struct):
        at: int
        name: str

    class Trip(msgspec.Struct):
        stops: list[Stop]
        first: Stop
        lanes: Annotated[int, msgspec.Meta(ge=2)]
        last: Stop | None
        note: str = ""

    assert validation.completed(content, Trip) == {
        "stops": [{"at": 3, "name": "x"}],
        "first": {"at": 0, "name": "x"},
        "lanes": 2,
        "last": None,
        "more": 1,
    }
    assert content == {"stops": [{"at": 3}], "more": 1}


def test_what_several_parts_refuse_is_gathered() -> None:
    found = validation.Gathered()
    for path in ("a", "b"):
        with found.part():
            raise errors.Invalid([errors.Problem(path, "empty", "fill it")])
    with found.part():
        pass

    with pytest.raises(errors.Invalid, match="a: empty; b: empty"):
        found.settle()
