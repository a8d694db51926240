"""The sample machine in a table: every state with every command, and what comes of it."""

import pytest

from fairlead.engine.testing import given
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.messages import ApplyChildren, Confirm, Refuse, ReleaseObject, Subject
from tests.operator.sample_kind import (
    BUNDLE,
    FINALIZER,
    KIND,
    Adopt,
    Adopted,
    Delete,
    Launched,
    Observe,
    Plan,
    Planned,
    Refused,
    Retry,
    Sunk,
    bundle,
    wanted,
)

NORTH = Subject("bundles.tests.fairlead.dev", "bay", "north", "u1")
TEA = Plan(1, 1, "tea")
SILK = Plan(2, 1, "silk")
EMPTY = Observe(NORTH, TEA, {})
FULL = Observe(NORTH, TEA, {"north-0": "tea"})
OTHER = Observe(NORTH, SILK, {"north-0": "tea"})
UNOBSERVED: tuple[object, ...] = ()
ADOPTED = (Adopted(7, 3, 1),)
BUILDING = (Planned(NORTH, TEA, 1),)
READY = (*BUILDING, Launched(NORTH, TEA, 2))
REFUSED = (*BUILDING, Refused("Rejected", "no", 2))
SUNK = (*READY, Sunk())
NO = Refuse(1, "Rejected", "no")


@pytest.mark.parametrize(
    ("before", "command", "events"),
    [
        (UNOBSERVED, EMPTY, (Planned(NORTH, TEA, 1),)),
        (UNOBSERVED, Adopt(7, 3, 1), (Adopted(7, 3, 1),)),
        (UNOBSERVED, Adopt(0, 0, 0), ()),
        (UNOBSERVED, Confirm(0), ()),
        (UNOBSERVED, NO, ()),
        (UNOBSERVED, Retry(0), ()),
        (UNOBSERVED, Delete(), (Sunk(),)),
        (ADOPTED, FULL, (Launched(NORTH, TEA, 8),)),
        (ADOPTED, EMPTY, (Planned(NORTH, TEA, 8),)),
        (BUILDING, EMPTY, ()),
        (BUILDING, FULL, (Launched(NORTH, TEA, 2),)),
        (BUILDING, OTHER, (Planned(NORTH, SILK, 2),)),
        (BUILDING, Adopt(1, 0, 0), ()),
        (BUILDING, Adopt(9, 4, 1), (Adopted(9, 4, 1),)),
        (BUILDING, Confirm(1), (Launched(NORTH, TEA, 2),)),
        (BUILDING, Confirm(0), ()),
        (BUILDING, NO, (Refused("Rejected", "no", 2),)),
        (BUILDING, Delete(), (Sunk(),)),
        (READY, FULL, ()),
        (READY, EMPTY, (Planned(NORTH, TEA, 3),)),
        (READY, OTHER, (Planned(NORTH, SILK, 3),)),
        (READY, Confirm(1), ()),
        (READY, NO, ()),
        (READY, Retry(1), ()),
        (REFUSED, EMPTY, ()),
        (REFUSED, FULL, (Launched(NORTH, TEA, 3),)),
        (REFUSED, Retry(2), (Planned(NORTH, TEA, 3),)),
        (REFUSED, Retry(1), ()),
        (SUNK, FULL, ()),
        (SUNK, Adopt(9, 4, 1), ()),
        (SUNK, Confirm(2), ()),
        (SUNK, NO, ()),
        (SUNK, Retry(2), ()),
        (SUNK, Delete(), ()),
    ],
)  # fmt: skip
def test_bundle(before: tuple[object, ...], command: object, events: tuple[object, ...]) -> None:
    given(BUNDLE, *before).when(command).then(*events)


def test_a_plan_asks_for_its_ships() -> None:
    asked = given(BUNDLE).when(EMPTY)

    asked.asks(ApplyChildren(NORTH, 1, wanted(NORTH, TEA)))


def test_an_adopted_bundle_asks_for_nothing_and_counts_on() -> None:
    found = given(BUNDLE, *ADOPTED).when(FULL).asks().state

    assert (found.voyages, found.phase) == (3, "Ready")


def test_an_old_plan_is_not_waited_for_after_an_adoption() -> None:
    found = given(BUNDLE, *BUILDING, Adopted(9, 4, 1)).when(EMPTY)

    found.then(Planned(NORTH, TEA, 10))


def test_a_version_that_was_launched_before_is_no_new_voyage() -> None:
    again = given(BUNDLE, *READY, Planned(NORTH, TEA, 3)).when(Confirm(3)).state
    other = given(BUNDLE, *READY, Planned(NORTH, SILK, 3)).when(Confirm(3)).state

    assert (again.voyages, other.voyages) == (1, 2)


def test_a_refusal_is_told_and_tried_again_later_each_time() -> None:
    first = given(BUNDLE, *BUILDING).when(NO)
    second = given(BUNDLE, *REFUSED, Planned(NORTH, TEA, 3)).when(Refuse(3, "Rejected", "no"))

    dues = [one.decision.timers[0].due for one in (first, second)]  # type: ignore[union-attr]  # both set their timer
    assert dues[0] < dues[1]
    assert len(first.decision.effects) == 2


def test_a_held_object_is_released_at_its_end() -> None:
    given(BUNDLE, *READY).when(Delete(NORTH, held=True)).asks(ReleaseObject(NORTH, FINALIZER))


def test_a_review_names_each_field_and_why() -> None:
    held = bundle("bay", "north", hold=True, gadgets=3)

    assert KIND.review(held, None) == []
    assert KIND.review(bundle("bay", "north", cargo="contraband", hold=True, gadgets=1), held) == [
        ("spec.cargo", "not carried: contraband"),
        ("spec.gadgets", "a held bundle keeps its gadgets: 3"),
    ]


def test_a_kind_without_a_review_lets_everything_pass() -> None:
    careless = Kind(KIND.api, BUNDLE, KIND.shown, observe=KIND.observe, delete=KIND.delete)

    assert careless.review(bundle("bay", "north"), None) == ()
