"""The snapshot of stored shapes: it notices what changed, and keeps what was."""

from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.rollouts.domain import machine as machine_of_rollouts
from fairlead.areas.rollouts.domain import status_codec
from fairlead.engine import machine
from tests import machines
from tools import shapes


@dataclass(frozen=True, slots=True)
class Leg:
    number: int


@dataclass(frozen=True, slots=True)
class Way:
    legs: tuple[Leg, ...]
    note: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


def registered(state: type, **more: Any) -> machine.AnyMachine:
    return replace(machines.NOTEBOOK, vocabulary=machine.Vocabulary(state, Leg, Leg), **more)


TODAY = registered(Way, versions={}, upcasters={})
LONGER_LEG = make_dataclass("Leg", [("number", int), ("by", str, "foot")], frozen=True)
LONGER = make_dataclass(
    "Way",
    [
        ("legs", tuple[LONGER_LEG, ...]),  # type: ignore[valid-type]  # made here
        ("note", str | None, None),
        ("more", dict[str, Any], field(default_factory=dict)),
    ],
    frozen=True,
)


def test_a_shape_names_fields_types_and_defaults_with_all_that_is_nested() -> None:
    book = shapes.current(TODAY)

    label = book.types["state Way"][1]
    assert book.shapes[label] == {
        "legs": f"tuple[{book.types['event Leg'][1]}, ...]",
        "note": "str | none = null",
        "more": "dict[str, any] = {}",
    }
    assert book.rows["state Way", 1] == {"legs": [{"number": 1}], "note": "a", "more": {"a": "any"}}


def test_what_was_written_down_is_read_again(tmp_path: Path) -> None:
    book = shapes.current(TODAY)
    book.prune()

    shapes.write("notebook", book, tmp_path)

    assert shapes.read("notebook", tmp_path) == book
    assert shapes.read("other", tmp_path) == shapes.Book()


def test_nothing_is_said_of_a_shape_that_did_not_change() -> None:
    assert list(shapes.faults(shapes.current(TODAY), shapes.current(TODAY))) == []


def test_a_change_of_something_nested_is_noticed_where_it_is_stored() -> None:
    (told,) = shapes.faults(shapes.current(TODAY), shapes.current(registered(LONGER, versions={})))

    assert told.startswith("state Way changed and is still version 1: raise it")
    assert "add an upcaster from 1, run make shapes" in told


def test_the_tool_does_not_write_over_a_shape() -> None:
    kept, now = shapes.current(TODAY), shapes.current(registered(LONGER, versions={}))

    shapes.add(kept, now)

    assert kept.types == shapes.current(TODAY).types
    assert list(shapes.faults(kept, now)) != []


def test_a_raised_version_is_added_and_the_one_before_stays_with_its_row() -> None:
    grown = registered(LONGER, versions={LONGER: 2}, upcasters={("Way", 1): dict})
    kept, now = shapes.current(TODAY), shapes.current(grown)
    before = kept.types["state Way"][1]
    assert list(shapes.faults(kept, now)) == ["state Way version 2 is new: run make shapes"]

    shapes.add(kept, now)

    assert list(shapes.faults(kept, now)) == list(shapes.unreadable(grown, kept)) == []
    assert sorted(kept.types["state Way"]) == [1, 2]
    assert kept.types["state Way"][1] == before
    assert {*kept.shapes} >= {before, kept.types["event Leg"][1]}


@pytest.mark.parametrize("lift", [lambda old: {**old, "legs": 1}, lambda old: old["gone"]])
def test_an_upcaster_that_cannot_lift_the_row_of_before_is_noticed(lift: Any) -> None:
    grown = registered(LONGER, versions={LONGER: 2}, upcasters={("Way", 1): lift})
    kept = shapes.current(TODAY)
    shapes.add(kept, shapes.current(grown))

    (told,) = shapes.unreadable(grown, kept)

    assert told.startswith("cannot read notebook state Way version 1")
    assert told.endswith("mend its upcaster, or its example row by hand")


def test_a_type_that_is_gone_is_noticed_until_a_person_drops_it() -> None:
    kept, now = shapes.current(TODAY), shapes.current(registered(Leg, versions={}))
    told = sorted(shapes.faults(kept, now))
    assert told[1].startswith("state Way is gone, and rows of it may exist")

    del kept.types["state Way"]
    shapes.add(kept, now)

    assert list(shapes.faults(kept, now)) == []
    assert [label for label in kept.shapes if label.startswith("Way")] == []


def test_what_a_status_remembers_has_a_version_of_its_own() -> None:
    rollout = machine_of_rollouts.ROLLOUT
    kept, now = shapes.current(rollout), shapes.current(rollout)
    now.types["memory Idle"] = {status_codec.SHAPE: "Idle#another"}
    (fault,) = shapes.faults(kept, now)

    assert fault.startswith("memory Idle changed and is still version 1: raise status_codec.SHAPE")
    assert list(shapes.unreadable(rollout, kept)) == []
    kept.rows["memory Idle", 1] = {}
    (fault,) = shapes.unreadable(rollout, kept)
    assert fault.startswith("cannot adopt status: Object missing required field `rollout`")
