"""From descriptions to types: bodies, verbs, parents and operations, in both forms."""

from typing import Any

import pytest

from fairlead.areas.resources.domain import reading
from fairlead.areas.resources.domain.documents import Documents
from fairlead.errors import Invalid
from tests.unit.areas.resources.swagger import SCOPE, classes, operation, read, ref, robots, swagger

ROBOT = {
    "Robot": {
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": {"type": "string"},
            "arms": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
        }
    }
}


@pytest.mark.requirement("resources R11")
def test_a_url_that_is_read_and_written_is_a_type() -> None:
    (then,) = read(robots(ROBOT, patch=operation(ref("Robot")), delete=operation()))

    assert (then.type, then.version) == ("Acme.Toys/robots", "2026-01-01")
    assert then.verbs == ["GET", "PUT", "PATCH", "DELETE"]
    assert (then.parent, then.lro, then.paging, then.create) == (None, {}, None, None)
    assert classes(then) == {
        "id": ("read-only", "readOnly"),
        "name": ("writable", "difference"),
        "arms": ("writable", "difference"),
        "arms[].name": ("writable", "difference"),
    }
    assert {each.path: each.list_key for each in then.properties}["arms"] == ["name"]


def test_what_is_only_read_or_only_done_is_no_type() -> None:
    paths = {"/operations": {"get": operation(shown={})}, "/start": {"post": operation({})}}

    assert read(swagger(paths)) == []


def test_a_type_has_the_nearest_type_above_it_as_its_parent() -> None:
    verbs = {"get": operation(shown=ref("Robot")), "put": operation(ref("Robot"))}
    paths = {
        f"{SCOPE}/robots/{{robot}}": verbs,
        f"{SCOPE}/robots/{{robot}}/arms": {"get": operation(shown={})},
        f"{SCOPE}/robots/{{robot}}/arms/{{arm}}": verbs,
        f"{SCOPE}/robots/{{robot}}/arms/{{arm}}/restart": {"post": operation({})},
    }

    then = read(swagger(paths, ROBOT))

    assert [(each.type, each.parent) for each in then] == [
        ("Acme.Toys/robots", None),
        ("Acme.Toys/robots/arms", "Acme.Toys/robots"),
    ]


@pytest.mark.requirement("resources R34")
def test_long_operations_and_pages_are_told() -> None:
    long: dict[str, Any] = {"x-ms-long-running-operation": True}
    via = {**long, "x-ms-long-running-operation-options": {"final-state-via": "location"}}
    document = robots(ROBOT, put=operation(ref("Robot"), **long), delete=operation(**via))
    listed = operation(shown={}, **{"x-ms-pageable": {"nextLinkName": "next"}})
    document["paths"][f"{SCOPE}/robots"] = {"get": listed}

    (then,) = read(document)

    assert (then.lro, then.paging) == ({"PUT": "default", "DELETE": "location"}, "next")


def test_an_operation_without_pages_has_none() -> None:
    document = robots(ROBOT)
    document["paths"][f"{SCOPE}/robots"] = {
        "get": operation(shown={}, **{"x-ms-pageable": {"nextLinkName": None}})
    }

    assert read(document)[0].paging is None


@pytest.mark.requirement("resources R11", "resources R13")
def test_a_post_on_the_collection_makes_one_and_says_what_is_for_the_start_only() -> None:
    shown: Any = {"properties": {"id": {}, "name": {}, "breed": {}}}
    made: Any = {"properties": {"name": {}, "breed": {}}}
    changed: Any = {"properties": {"name": {}}}
    paths = {
        "/pets": {"post": operation(made)},
        "/pets/{pet}": {"get": operation(shown=shown), "patch": operation(changed)},
    }

    (then,) = read(swagger(paths))

    assert (then.type, then.create) == ("pets", "/pets")
    assert classes(then) == {
        "name": ("writable", "difference"),
        "breed": ("create-only", "difference"),
        "id": ("read-only", "difference"),
    }


@pytest.mark.requirement("resources R2")
def test_openapi_3_is_read_alike() -> None:
    def content(schema: Any) -> Any:
        return {"content": {"application/json; charset=utf-8": {"schema": schema}}}

    robot = {"$ref": "#/components/schemas/Robot"}
    document = {
        "openapi": "3.1.0",
        "info": {"version": "v1"},
        "paths": {
            "/robots/{id}": {
                "get": {"responses": {"200": content(robot)}},
                "put": {"requestBody": {"$ref": "#/components/requestBodies/R"}},
            }
        },
        "components": {
            "requestBodies": {"R": content(robot)},
            "schemas": {
                "Robot": {
                    "properties": {
                        "pin": {"type": "string", "writeOnly": True},
                        "born": {"type": "string", "readOnly": True},
                        "name": {"type": ["string", "null"]},
                    }
                }
            },
        },
    }

    (then,) = read(document)

    assert (then.type, then.version) == ("robots", "v1")
    assert classes(then) == {
        "pin": ("write-only", "writeOnly"),
        "born": ("read-only", "readOnly"),
        "name": ("writable", "difference"),
    }


def test_where_only_head_can_be_asked_the_answer_of_put_is_what_is_shown() -> None:
    document = robots(ROBOT, head=operation(), put=operation(ref("Robot"), ref("Robot")))
    del document["paths"][f"{SCOPE}/robots/{{name}}"]["get"]

    (then,) = read(document)

    assert then.verbs == ["HEAD", "PUT"]
    assert classes(then)["name"] == ("writable", "difference")


def test_verbs_of_one_url_may_stand_in_two_files() -> None:
    url = f"{SCOPE}/robots/{{name}}"
    first = swagger({url: {"get": operation(shown=ref("Robot"))}}, ROBOT)
    second = swagger({url: {"put": operation(ref("Robot"))}}, ROBOT)

    (then,) = read(first, second)

    assert then.verbs == ["GET", "PUT"]


def test_each_version_is_a_type_of_its_own() -> None:
    old, new = robots(ROBOT), robots(ROBOT)
    new["info"]["version"] = "2027-01-01"

    assert [each.version for each in read(new, old)] == ["2026-01-01", "2027-01-01"]


def test_a_body_may_be_a_shared_parameter() -> None:
    document = robots(ROBOT)
    url = next(iter(document["paths"]))
    document["parameters"] = {"R": {"name": "r", "in": "body", "schema": ref("Robot")}}
    document["paths"][url]["put"] = {"responses": {}}
    document["paths"][url]["parameters"] = [{"$ref": "#/parameters/R"}]

    assert classes(read(document)[0])["name"] == ("writable", "difference")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"info": {}}, "no version"),
        ({"paths": ["/x"]}, "paths are not an object"),
        ({"definitions": {}}, "reference to nothing: #/definitions/Robot"),
    ],
)
def test_a_description_that_cannot_be_read_is_refused_with_its_file(
    change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Invalid, match=problem) as refused:
        read({**robots(ROBOT), **change})

    assert refused.value.problems[0].file == "0.json"


def test_only_what_says_so_is_a_description() -> None:
    assert reading.is_description({"swagger": "2.0"})
    assert reading.is_description({"openapi": "3.0.3"})
    assert not reading.is_description({"parameters": {}})
    assert not reading.is_description([1])


@pytest.mark.requirement("resources R13")
def test_overrides_reach_their_type() -> None:
    files = {"a.json": robots(ROBOT)}

    (then,) = reading.read(
        Documents(files), ["a.json"], {"Acme.Toys/robots": {"name": "create-only"}}
    )

    assert classes(then)["name"] == ("create-only", "override")
