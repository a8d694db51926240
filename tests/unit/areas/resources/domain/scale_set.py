"""A small scale set, as the document that resources follow has it, with all classes and lists."""

from typing import Any

from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.delta import Differ
from fairlead.areas.resources.domain.model import Item, Json, Model
from tests.unit.areas.resources import swagger

SEAL = Seal(b"a key of tests")


def of(kind: str, **more: Any) -> Json:
    return {"type": kind, **more}


def listed(name: str, **more: Any) -> Json:
    return {"type": "array", "items": swagger.ref(name), **more}


DEFINITIONS: Json = {
    "Sku": {"properties": {"name": of("string"), "capacity": of("integer")}},
    "Rule": {"properties": {"name": of("string"), "port": of("integer")}},
    "Disk": {"properties": {"size": of("integer"), "key": of("string", **{"x-ms-secret": True})}},
    "Body": {
        "properties": {
            "mode": of("string", **{"x-ms-mutability": ["create", "read"]}),
            "phrase": of("string", **{"x-ms-secret": True}),
            "state": of("string", readOnly=True),
            "rules": listed("Rule"),
            "disks": listed("Disk"),
            "zones": of("array", items=of("string")),
            "notes": of("string"),
        }
    },
    "Set": {
        "properties": {
            "location": of("string"),
            "etag": of("string", readOnly=True),
            "sku": swagger.ref("Sku"),
            "tags": of("object", additionalProperties=of("string")),
            "properties": swagger.ref("Body"),
        }
    },
    "SetUpdate": {
        "properties": {
            "sku": swagger.ref("Sku"),
            "tags": of("object", additionalProperties=of("string")),
            "properties": {"properties": {"rules": listed("Rule")}},
        }
    },
}


def model(*, patch: bool = True) -> Model:
    verbs = {
        "get": swagger.operation(shown=swagger.ref("Set")),
        "put": swagger.operation(swagger.ref("Set"), swagger.ref("Set")),
    }
    if patch:
        verbs["patch"] = swagger.operation(swagger.ref("SetUpdate"))
    path = f"{swagger.SCOPE}/sets/{{name}}"
    (found,) = swagger.read(swagger.swagger({path: verbs}, DEFINITIONS))
    return Model.of(found)


SETS = model()
DIFFER = Differ(SETS, SEAL)


def spec() -> Json:
    """The document's example, and a body."""
    return {
        "sku": {"name": "Standard_D2_v3", "capacity": 3},
        "tags": {"tag1": "value"},
        "properties": {"mode": "Flexible", "rules": [{"name": "web", "port": 80}]},
    }


def observed(**more: Any) -> Json:
    """What the API shows after it was made."""
    shown = spec()
    shown["properties"]["state"] = "Succeeded"
    return {**shown, "etag": '"1"', "id": "/sets/a", **more}


def rule(name: str) -> Item:
    return Item((("name", name),))
