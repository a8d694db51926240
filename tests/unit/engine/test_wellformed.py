"""What a type allows: found in every kind of place, and nowhere else looked for."""

import math
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from fairlead.engine import wellformed


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    value: float | None = None
    twigs: tuple["Tree", ...] = ()


class Box(msgspec.Struct, frozen=True):
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Places:
    pair: tuple[int, Point] | None = None
    many: frozenset[float] = frozenset()
    either: str | Point | None = None
    number: int | float | None = None
    by_name: dict[str, list[Point]] = field(default_factory=dict)
    tree: Tree = Tree()
    box: Box = Box()
    rest: Any = None


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    count: int | None = None


def faulty(message: object) -> bool:
    return wellformed.Shape(type(message)).is_faulty(message, msgspec.json.encode(message))


@pytest.mark.parametrize(
    "places",
    [
        Places(pair=(1, Point(math.nan))),
        Places(many=frozenset([1.0, math.inf])),
        Places(either=Point(math.nan)),
        Places(number=math.inf),
        Places(by_name={"a": [Point(1.0), Point(-math.inf)]}),
        Places(tree=Tree(1.0, (Tree(2.0, (Tree(math.nan),)),))),
        Places(box=Box(math.nan)),
        Places(rest=[{"a": math.nan}]),
    ],
)
def test_a_number_that_is_not_finite_is_found_wherever_a_type_allows_it(places: Places) -> None:
    assert faulty(places)
    assert wellformed.fault(places)


def test_nothing_is_found_where_nothing_is() -> None:
    full = Places(
        pair=(1, Point(1.0)),
        many=frozenset([1.0]),
        either="text",
        number=2,
        by_name={"null": [Point(0.5, "null")]},
        tree=Tree(None, (Tree(1.0),)),
        rest={"a": [None, 1e308]},
    )

    assert not faulty(full)
    assert not faulty(Plain("null", None))
    assert wellformed.fault(full) is None


def test_a_type_that_holds_itself_is_bounded_too() -> None:
    tree = Tree()
    for _ in range(wellformed.MAX_DEPTH):
        tree = Tree(twigs=(tree,))

    assert faulty(tree)


@pytest.mark.parametrize(
    ("data", "surplus"),
    [
        ('{"pair":[1,{"x":1,"y":2}]}', "$.pair[1].y"),
        ('{"either":{"x":1,"y":2}}', "$.either.y"),
        ('{"by_name":{"a":[{"x":1},{"x":1,"y":1}]}}', "$.by_name[...][1].y"),
        ('{"tree":{"value":1,"leaf":2}}', "$.tree.leaf"),
        ('{"more":null}', "$.more"),
        ('{"either":"text","rest":{"any":{"thing":1}},"number":null,"many":[1]}', None),
        ("{}", None),
    ],
)
def test_a_field_too_many_is_found_by_its_path(data: str, surplus: str | None) -> None:
    assert wellformed.Shape(Places).surplus(data) == surplus


def test_the_essence_of_structs_leaves_defaults_out_too() -> None:
    assert wellformed.essence(Places(box=Box(2.0), either=Point(1.0))) == {
        "box": {"weight": 2},
        "either": {"x": 1},
    }
