"""Definitions of kinds from the types that read them."""

import dataclasses
from typing import Any, Literal

import pytest

from fairlead.errors import Rejected
from fairlead.kubernetes.objects import Object
from fairlead.kubernetes.schema import KindSchema, definition, structural
from tests.fakes.kubernetes.sample_schema import GADGET, GADGETS, GadgetSpec, GadgetStatus, Step


def version(kind: KindSchema = GADGETS) -> Any:
    return definition(GADGET, kind)["spec"]["versions"][0]


def spec() -> Any:
    return structural(GadgetSpec)


def test_names_scope_and_short_names() -> None:
    made = definition(GADGET, GADGETS)

    assert made["metadata"]["name"] == "gadgets.tests.fairlead.dev"
    assert made["spec"]["scope"] == "Namespaced"
    assert made["spec"]["names"] == {
        "kind": "Gadget",
        "listKind": "GadgetList",
        "plural": "gadgets",
        "singular": "gadget",
        "shortNames": ["shp"],
        "categories": ["all"],
    }


def test_status_is_a_subresource_and_columns_are_shown() -> None:
    assert version()["subresources"] == {"status": {}}
    assert version()["additionalPrinterColumns"] == [
        {"name": "Phase", "jsonPath": ".status.phase", "type": "string"},
        {"name": "Age", "jsonPath": ".metadata.age", "type": "date", "priority": 1},
    ]


def test_bounds_become_the_schemas_own() -> None:
    fields = spec()["properties"]
    text = {"type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[a-z].*$"}

    assert fields["image"] == text
    assert fields["steps"]["maxItems"] == 20
    step = fields["steps"]["items"]["properties"]
    assert (step["share"]["minimum"], step["share"]["maximum"]) == (0, 100)
    assert step["waitSeconds"]["exclusiveMinimum"] is True
    assert step["waitSeconds"]["minimum"] == 0


def test_defaults_and_required_follow_the_type() -> None:
    fields = spec()["properties"]

    assert spec()["required"] == ["image", "steps"]
    assert fields["mode"] == {"type": "string", "enum": ["Auto", "Manual"], "default": "Auto"}
    assert fields["paused"]["default"] is False
    assert fields["labels"]["default"] == {}
    assert "default" not in fields["port"]
    assert fields["steps"]["items"]["properties"]["waitSeconds"]["default"] == 60


def test_optional_mixed_and_free_fields() -> None:
    fields = spec()["properties"]

    assert fields["port"] == {"x-kubernetes-int-or-string": True}
    assert fields["ratio"] == {"type": "number"}
    assert fields["extra"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert fields["labels"]["additionalProperties"] == {"type": "string"}
    assert structural(GadgetStatus)["properties"]["since"]["format"] == "date-time"


def test_keyed_lists_say_their_keys() -> None:
    crew = spec()["properties"]["crew"]

    assert crew["x-kubernetes-list-type"] == "map"
    assert crew["x-kubernetes-list-map-keys"] == ["share"]
    assert crew["maxItems"] == 5


def test_rules_stand_where_they_belong() -> None:
    whole = version()["schema"]["openAPIV3Schema"]

    assert whole["x-kubernetes-validations"] == [
        {"rule": "self.metadata.name.size() <= 40", "message": "name too long"}
    ]
    assert spec()["x-kubernetes-validations"][0]["fieldPath"] == ".steps"


def test_the_first_paragraph_is_the_description() -> None:
    assert spec()["description"] == "A gadget, as asked for."
    assert "description" not in structural(GadgetStatus)


def test_every_place_has_one_type_and_no_reference() -> None:
    def walk(schema: Object) -> None:
        assert "$ref" not in schema
        assert "anyOf" not in schema
        assert "type" in schema or "x-kubernetes-int-or-string" in schema
        for part in schema.get("properties", {}).values():
            walk(part)
        for below in ("items", "additionalProperties"):
            if below in schema:
                walk(schema[below])

    walk(version()["schema"]["openAPIV3Schema"])


@dataclasses.dataclass(frozen=True)
class Torn:
    either: Step | list[str]


@dataclasses.dataclass(frozen=True)
class Mixed:
    choice: Literal["a", 1]


@dataclasses.dataclass(frozen=True)
class Raw:
    data: bytes


@pytest.mark.parametrize(
    ("type_", "place"), [(Torn, "Torn.either"), (Mixed, "Mixed.choice"), (Raw, "Raw.data")]
)
def test_what_has_no_structural_form_is_refused_with_its_place(type_: type, place: str) -> None:
    with pytest.raises(Rejected, match=place):
        structural(type_)
