"""Weights in a list of destinations: ours change, others' stay, and all can be undone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing import backend_weights
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, Route, only_split
from fairlead.traffic.weights import giving

TO = {Slot.PRIMARY: "shop", Slot.CANARY: "shop-canary", Slot.BASELINE: "shop-baseline"}
SIDES = backend_weights.Sides(
    lambda item, slot: bool(item["to"] == TO[slot]),
    lambda item, slot: {**item, "to": TO[slot]},
    1,
)


def shop(weight: int | None = None) -> dict[str, Any]:
    return {"to": "shop"} if weight is None else {"to": "shop", "weight": weight}


@pytest.mark.parametrize(
    ("items", "weight", "weights"),
    [
        ([shop()], 0, [100, 0]),
        ([shop()], 10, [90, 10]),
        ([shop(1)], 35, [65, 35]),
        ([shop(100)], 100, [0, 100]),
        ([shop(80), {"to": "other", "weight": 20}], 10, [72, 8, 20]),
        ([{"to": "other", "weight": 20}, shop(80)], 50, [20, 40, 40]),
        # Rounded, a weight of 1 % of 10 would be nothing, and one of 99 % all.
        ([shop(10), {"to": "other", "weight": 90}], 1, [9, 1, 90]),
        ([shop(10), {"to": "other", "weight": 90}], 99, [1, 9, 90]),
        ([shop(10), {"to": "other", "weight": 90}], 100, [0, 10, 90]),
    ],
)
def test_the_canary_takes_its_weight_from_the_primary_alone(
    items: list[dict[str, Any]], weight: int, weights: list[int]
) -> None:
    route = only_split(weight)

    made = backend_weights.routed(items, SIDES, route)

    assert [one["weight"] for one in made] == weights


@pytest.mark.parametrize(
    ("items", "shared", "weights"),
    [
        ([shop()], (0, 0), [100, 0, 0]),
        ([shop()], (10, 10), [80, 10, 10]),
        ([shop(80), {"to": "other", "weight": 20}], (50, 16), [27, 40, 13, 20]),
        # Rounded, nobody's weight becomes nothing.
        ([shop(10), {"to": "other", "weight": 90}], (1, 1), [8, 1, 1, 90]),
        ([shop(10), {"to": "other", "weight": 90}], (33, 33), [4, 3, 3, 90]),
        ([shop(10), {"to": "other", "weight": 90}], (94, 5), [1, 8, 1, 90]),
    ],
)
def test_the_baseline_takes_its_weight_from_the_primary_too(
    items: list[dict[str, Any]], shared: tuple[int, int], weights: list[int]
) -> None:
    route = Route(giving(*shared), joined=True, compared=True)

    made = backend_weights.routed(items, SIDES, route)

    assert [one["weight"] for one in made] == weights
    assert [one["to"] for one in made][:3] == list(TO.values())
    assert backend_weights.without_canary(made, SIDES, items[0].get("weight")) == items


@given(some.integers(0, 50), some.integers(0, 50))
def test_the_canary_s_weight_is_seen_beside_a_baseline(weight: int, beside: int) -> None:
    route = Route(giving(weight, beside), joined=True, compared=True)

    assert backend_weights.seen(backend_weights.routed([shop()], SIDES, route), SIDES) == weight


def test_a_canary_that_has_not_joined_is_not_in_the_list() -> None:
    assert backend_weights.routed([shop()], SIDES, PRIMARY_ONLY) == [shop()]


@given(
    some.integers(0, 100),
    some.integers(10, 1000) | some.none(),
    some.lists(some.integers(0, 100), max_size=2),
)
def test_home_undoes_what_was_routed(percent: int, weight: int | None, others: list[int]) -> None:
    beside = [{"to": "other", "weight": one} for one in others]
    theirs = [shop(weight), *beside] if weight or not beside else [shop(100), *beside]

    made = backend_weights.routed(theirs, SIDES, only_split(percent))

    assert backend_weights.without_canary(made, SIDES, theirs[0].get("weight")) == theirs
    assert made[-1:] == beside[-1:] or not beside


def test_a_list_without_a_canary_is_home_as_it_stands() -> None:
    assert backend_weights.without_canary([shop(7)], SIDES, None) == [shop(7)]


@given(some.integers(0, 100))
def test_the_weight_that_was_given_is_seen(weight: int) -> None:
    assert (
        backend_weights.seen(backend_weights.routed([shop()], SIDES, only_split(weight)), SIDES)
        == weight
    )


@pytest.mark.parametrize(
    ("items", "weight"),
    [
        ([shop()], 0),
        ([shop(30), {"to": "shop-canary", "weight": 10}], 25),
        ([shop(0), {"to": "shop-canary", "weight": 0}], 0),
        ([shop(), {"to": "shop-canary"}], 50),
    ],
)
def test_weights_of_any_sum_are_read_in_percent(items: list[dict[str, Any]], weight: int) -> None:
    assert backend_weights.seen(items, SIDES) == weight


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([shop()], ""),
        ([shop(1)], ""),
        ([shop(10), {"to": "other", "weight": 1}], ""),
        ([shop(9), {"to": "other", "weight": 1}], "too small to be shared, 9"),
        ([shop(50), shop(50)], "more than once"),
        (backend_weights.routed([shop()], SIDES, STANDBY), ""),
    ],
)
def test_a_list_that_cannot_be_shared_says_why(items: list[dict[str, Any]], why: str) -> None:
    found = backend_weights.problem(items, SIDES)

    assert why in found
    assert bool(found) == bool(why)
