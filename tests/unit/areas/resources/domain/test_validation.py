"""A spec that its type does not know is refused, with where and what was meant."""

from typing import Any

import pytest

from fairlead.areas.resources.domain import validation
from fairlead.areas.resources.domain.model import Json
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import SEAL, SETS


def told(spec: Json) -> list[str]:
    return [f"{each.path}: {each.message}" for each in validation.problems(SETS, spec)]


def test_the_example_of_the_document_makes_sense() -> None:
    assert told(scale_set.spec()) == []


@pytest.mark.requirement("resources R3")
def test_a_read_only_property_is_refused_by_its_path() -> None:
    assert told({"properties": {"state": "Succeeded"}}) == [
        "properties.state: read-only: the API alone says it"
    ]


def test_a_misspelt_name_is_told_with_the_nearest_one() -> None:
    (problem,) = validation.problems(SETS, {"properties": {"rules": [{"nmae": "web"}]}})

    assert (problem.path, problem.message) == ("properties.rules.0.nmae", "no such property")
    assert problem.hint == "did you mean name?"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"sku": {"capacity": "3"}}, "sku.capacity: not a whole number"),
        ({"sku": {"capacity": True}}, "sku.capacity: not a whole number"),
        ({"sku": "big"}, "sku: not a map"),
        ({"tags": ["a"]}, "tags: not a map"),
        ({"properties": {"rules": {"name": "web"}}}, "properties.rules: not a list"),
        ({"location": 7}, "location: not text"),
    ],
)
def test_a_value_of_another_type_is_refused(spec: Json, problem: str) -> None:
    assert told(spec) == [problem]


def test_all_mistakes_are_told_at_once_and_keys_of_a_map_are_free() -> None:
    spec = {"tags": {"any": "thing"}, "skuu": {}, "properties": {"state": "x", "notes": 1}}

    assert [each.split(":")[0] for each in told(spec)] == [
        "skuu",
        "properties.state",
        "properties.notes",
    ]


@pytest.mark.requirement("resources R21")
@pytest.mark.parametrize(
    ("mode", "applied", "shown", "refused"),
    [
        ("Uniform", "Flexible", "Flexible", True),
        ("Flexible", "Flexible", "Flexible", False),
        ("Uniform", None, None, False),
        ("Flexible", None, "Flexible", False),
        ("Uniform", None, "Flexible", True),
    ],
)
def test_what_was_for_the_creation_is_refused_once_it_changes(
    mode: str, applied: str | None, shown: str | None, *, refused: bool
) -> None:
    def body(value: Any) -> Json:
        return {} if value is None else {"properties": {"mode": value}}

    found = list(validation.frozen(SETS, SEAL, body(mode), body(applied), body(shown)))

    assert [each.path for each in found] == (["properties.mode"] if refused else [])
