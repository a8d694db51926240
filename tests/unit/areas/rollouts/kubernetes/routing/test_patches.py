"""A patch does what it says, and names nothing that stays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fairlead.areas.rollouts.kubernetes.routing import patches
from tests.fakes.kubernetes.patches import json_patch

_SCALARS = some.none() | some.integers(2, 9) | some.text("ab~/", max_size=3)
_VALUES = some.recursive(
    _SCALARS,
    lambda inner: (
        some.lists(inner, max_size=4) | some.dictionaries(some.text("ab~/", max_size=2), inner)
    ),
    max_leaves=12,
)


@given(_VALUES, _VALUES)
def test_a_patch_turns_the_first_value_into_the_second(before: Any, after: Any) -> None:
    one, other = {"spec": before}, {"spec": after}

    assert json_patch(one, list(patches.diff(one, other))) == other


@given(_VALUES)
def test_what_is_the_same_needs_no_patch(value: Any) -> None:
    assert list(patches.diff(value, value)) == []


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        (
            {"route": [{"host": "a", "weight": 100}]},
            {"route": [{"host": "a", "weight": 90}, {"host": "b", "weight": 10}]},
            [("replace", "/route/0/weight"), ("add", "/route/1")],
        ),
        (
            {"http": [{"name": "x"}, {"name": "y"}]},
            {"http": [{"name": "ours"}, {"name": "x"}, {"name": "y"}]},
            [("add", "/http/0")],
        ),
        (
            {"http": [{"name": "ours"}, {"name": "x"}]},
            {"http": [{"name": "x"}]},
            [("remove", "/http/0")],
        ),
        ({}, {"a/b": {"c~d": 1}}, [("add", "/a~1b")]),
        ({"on": True}, {"on": 1}, [("replace", "/on")]),
    ],
)
def test_only_what_differs_is_named(
    before: Any, after: Any, operations: list[tuple[str, str]]
) -> None:
    made = patches.diff(before, after)

    assert [(one["op"], one["path"]) for one in made] == operations
