"""Every property of a schema has a path, through lists, maps, parents, subtypes and circles."""

from typing import Any

import pytest

from fairlead.areas.resources.domain.documents import Documents, Located
from fairlead.areas.resources.domain.schemas import DEEPEST, Properties, Schemas
from tests.unit.areas.resources.swagger import ref


def properties(schema: Any, **definitions: Any) -> Properties:
    file = {"definitions": definitions}
    schemas = Schemas(Documents({"a.json": file}), ["a.json"])
    return schemas.properties(Located("a.json", schema))


TEXT = {"type": "string"}


def of(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def test_lists_and_maps_are_walked_through() -> None:
    then = properties(
        of(
            rows={"type": "array", "items": of(cells={"type": "array", "items": of(at=TEXT)})},
            users={"type": "object", "additionalProperties": of(id=TEXT)},
            tags={"type": "object", "additionalProperties": TEXT},
            grid={"type": "array", "items": {"type": "array", "items": of(x=TEXT)}},
        )
    )

    assert list(then) == [
        *("rows", "rows[].cells", "rows[].cells[].at", "users", "users.*.id", "tags"),
        *("grid", "grid[][].x"),
    ]
    assert [then[path].type for path in ("rows", "users", "rows[].cells[].at")] == [
        *("array", "object", "string")
    ]


@pytest.mark.requirement("resources R2")
def test_parents_and_choices_are_joined() -> None:
    then = properties(
        {"allOf": [ref("Base")], "oneOf": [of(b=TEXT), of(c=TEXT)], "properties": {"d": TEXT}},
        Base={"allOf": [of(z=TEXT)], "properties": {"a": TEXT}},
    )

    assert set(then) == {"z", "a", "b", "c", "d"}


@pytest.mark.requirement("resources R2")
def test_a_discriminator_brings_the_properties_of_all_subtypes() -> None:
    then = properties(
        of(pet=ref("Pet")),
        Pet={"discriminator": "kind", "properties": {"kind": TEXT}},
        Cat={"allOf": [ref("Pet")], "properties": {"lives": {"type": "integer"}}},
        Lion={"allOf": [ref("Cat")], "properties": {"mane": TEXT}},
        Stone={"properties": {"weight": TEXT}},
    )

    assert set(then) == {"pet", "pet.kind", "pet.lives", "pet.mane"}


@pytest.mark.requirement("resources R2")
def test_a_definition_inside_of_itself_ends_the_path() -> None:
    then = properties(
        ref("Node"),
        Node=of(name=TEXT, next=ref("Node"), all={"type": "array", "items": ref("Node")}),
    )

    assert list(then) == ["name", "next", "all"]


def test_a_circle_of_parents_and_a_list_of_itself_end() -> None:
    then = properties(
        of(own={"$ref": "#/definitions/Loop"}, rows=ref("List")),
        Loop={"allOf": [ref("Loop")], "properties": {"x": TEXT}},
        List={"type": "array", "items": ref("List")},
    )

    assert list(then) == ["own", "own.x", "rows"]


def test_a_path_has_ten_names_at_most() -> None:
    schema: Any = TEXT
    for _ in range(DEEPEST + 3):
        schema = of(a=schema)

    assert max(path.count(".") + 1 for path in properties(schema)) == DEEPEST


def test_marks_stand_beside_a_reference_or_behind_it_and_are_inherited() -> None:
    then = properties(
        of(
            id={**ref("Id"), "readOnly": True},
            state=ref("State"),
            net={"x-ms-mutability": ["create", "read"], **of(zone=TEXT)},
            key={**TEXT, "x-ms-secret": True},
            pin={**TEXT, "format": "password"},
        ),
        Id=of(value=TEXT),
        State={"readOnly": True, **of(code=TEXT)},
    )

    read_only = {path for path, found in then.items() if found.is_read_only}
    assert read_only == {"id", "id.value", "state", "state.code"}
    assert then["net.zone"].mutability == frozenset({"create", "read"})
    assert [then[path].is_secret for path in ("key", "pin", "id")] == [True, True, False]


def test_one_definition_below_two_places_inherits_from_each() -> None:
    then = properties(of(seen={**ref("Id"), "readOnly": True}, set=ref("Id")), Id=of(value=TEXT))

    assert (then["seen.value"].is_read_only, then["set.value"].is_read_only) == (True, False)


@pytest.mark.requirement("resources R34")
def test_the_key_of_a_list_is_declared_or_a_name_or_an_id() -> None:
    def rows(item: Any, **more: Any) -> Any:
        return {"type": "array", "items": item, **more}

    then = properties(
        of(
            declared=rows(of(a=TEXT, name=TEXT), **{"x-ms-identifiers": ["/a", "b/c"]}),
            atomic=rows(of(name=TEXT), **{"x-ms-identifiers": []}),
            named=rows(of(id=TEXT, name=TEXT)),
            numbered=rows(of(id=TEXT)),
            plain=rows(TEXT),
        )
    )

    assert [found.list_key for path, found in then.items() if path.count("[") == 0] == [
        *(("a", "b.c"), None, ("name",), ("id",), None)
    ]


def test_enums_and_types_of_both_forms_are_read() -> None:
    then = properties(
        of(
            size={"type": "string", "enum": ["S", "L"]},
            note={"type": ["null", "string"]},
            rows={"items": TEXT},
            any={},
        )
    )

    assert then["size"].enum == ("S", "L")
    assert [found.type for found in then.values()] == ["string", "string", "array", "object"]
