"""References lead to a place in the tree, or are refused with the file they stand in."""

from typing import Any

import pytest

from fairlead.areas.resources.domain.documents import Documents, Located
from fairlead.errors import Invalid

FILES: dict[str, Any] = {
    "a/one.json": {
        "definitions": {
            "near": {"type": "string"},
            "far": {"$ref": "../b/two.json#/definitions/x~1y"},
            "self": {"$ref": "#/definitions/self"},
        },
        "list": [{"type": "boolean"}],
    },
    "b/two.json": {"definitions": {"x/y": {"type": "integer"}}},
}


def resolved(reference: str) -> Located:
    return Documents(FILES).resolved(Located("a/one.json", {"$ref": reference}))


@pytest.mark.requirement("resources R2")
def test_a_chain_of_references_through_files_ends_at_an_object() -> None:
    then = resolved("#/definitions/far")

    assert then == Located("b/two.json", {"type": "integer"}, "b/two.json#/definitions/x~1y")


def test_a_place_without_a_reference_is_itself() -> None:
    at = Located("a/one.json", {"type": "string"})

    assert Documents(FILES).resolved(at) is at


def test_a_place_in_a_list_is_found() -> None:
    assert resolved("#/list/0").node == {"type": "boolean"}


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("#/definitions/none", "reference to nothing: #/definitions/none"),
        ("#/list/7", "reference to nothing: #/list/7"),
        ("none.json#/x", "reference to nothing: none.json#/x"),
        ("#/definitions/self", "a circle of references: a/one.json#/definitions/self"),
        ("../../etc/passwd#/x", "reference out of the tree: ../../etc/passwd#/x"),
        ("/etc/passwd", "reference out of the tree: /etc/passwd"),
        ("https://evil.example/x.json#/y", "reference out of the tree: https://evil.example"),
        ("file:///etc/passwd", "reference out of the tree: file:///etc/passwd"),
        ("#/list", "not an object: [{'type': 'boolean'}]"),
    ],
)
def test_what_leads_nowhere_or_outside_is_refused(reference: str, problem: str) -> None:
    with pytest.raises(Invalid) as refused:
        resolved(reference)

    (found,) = refused.value.problems
    assert found.file == "a/one.json"
    assert found.message.startswith(problem)
    assert found.hint
