"""Paths and places: what a description says of a value, wherever it stands."""

import pytest

from fairlead.areas.resources.domain.model import (
    NOTHING,
    Item,
    Model,
    Path,
    by_key,
    found,
    written,
)
from tests.unit.areas.resources import swagger
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import SETS, rule


@pytest.mark.parametrize(
    ("path", "place", "is_declared"),
    [
        (("sku", "capacity"), "sku.capacity", True),
        (("tags", "tag1"), "tags.tag1", False),
        (("properties", "rules", rule("web"), "port"), "properties.rules[].port", True),
        (("beyond", "us"), "beyond.us", False),
    ],
)
def test_a_path_leads_to_what_is_said_of_it(path: Path, place: str, *, is_declared: bool) -> None:
    at = SETS.place(path)

    assert (at.path, at.is_declared) == (place, is_declared)


def test_a_key_of_a_map_of_objects_stands_for_all_of_them() -> None:
    users = {"type": "object", "additionalProperties": swagger.ref("User")}
    definitions = {
        "Robot": {"properties": {"users": users}},
        "User": {"properties": {"id": {"type": "string", "readOnly": True}}},
    }
    (robot,) = swagger.read(swagger.robots(definitions))

    at = Model.of(robot).place(("users", "ann", "id"))

    assert at.path == "users.*.id"
    assert at.said is not None
    assert at.said.class_ == "read-only"


def test_a_member_that_nothing_declares_is_none() -> None:
    top = SETS.place(())
    sku = SETS.inside(top, "sku")

    assert sku is not None
    assert SETS.inside(sku, "color") is None
    assert SETS.names(sku) == ["name", "capacity"]


def test_items_without_their_key_or_with_one_key_twice_are_a_plain_list() -> None:
    place = SETS.place(("properties", "rules"))

    assert by_key(place, [{"name": "web"}, {"port": 1}]) is None
    assert by_key(place, [{"name": "web"}, {"name": "web"}]) is None
    assert by_key(place, [{"name": "web"}]) == {rule("web"): {"name": "web"}}


def test_a_value_is_found_by_names_and_keys() -> None:
    spec = scale_set.spec()

    assert found(spec, ("properties", "rules", rule("web"), "port")) == 80
    assert found(spec, ("properties", "rules", rule("none"), "port")) is NOTHING
    assert found(spec, ("sku", "name", "deeper")) is NOTHING


def test_a_path_is_written_so_that_it_can_be_read_again() -> None:
    assert written(("tags", "a.b")) == 'tags["a.b"]'
    assert written(("rules", Item((("name", "web"), ("port", 1))), "to")) == (
        "rules[name=web, port=1].to"
    )
