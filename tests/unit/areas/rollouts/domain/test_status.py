"""One status for all: typed where it is made, and read back as it was."""

import json

import msgspec
import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import messages, states, status, view
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.kubernetes import schema
from tests.unit.areas.rollouts.domain.stories import SPEC, live


def test_what_an_object_carries_reads_as_what_was_published() -> None:
    world = live()
    world.run_until(states.Analysing)
    world.send(messages.Pause("ada", "lunch"))
    published = view.status(world.state())

    carried = json.loads(msgspec.json.encode(published.plain()))

    assert status.read(carried) == published
    assert published.is_resumable


def test_a_pause_says_by_whom_why_and_since_when() -> None:
    world = live()
    world.run_until(states.Analysing)
    world.send(messages.Pause("ada", "lunch"))

    paused = view.shown(world.state()).paused

    assert paused == status.PauseStatus("ada", world.now, "lunch")


def test_the_template_of_a_run_that_waits_for_its_turn_is_named() -> None:
    world = live()
    world.run_until(states.Promoting)
    world.want("v3", SPEC)

    waiting = view.shown(world.state())

    assert (waiting.pending_hash, waiting.desired_hash) == ("t1-v3", "t1-v3")
    world.run_until(states.Shifting)
    assert view.shown(world.state()).pending_hash == ""


def test_lists_get_the_status_without_its_memory() -> None:
    world = live()
    world.run_until(states.Analysing)

    shown = view.shown(world.state())

    assert not shown.is_resumable
    assert shown == msgspec.structs.replace(view.status(world.state()), memory=None)


def test_nothing_is_shown_of_what_was_never_requested() -> None:
    assert view.shown(states.Unknown()) == RolloutStatus()


def test_a_status_that_nobody_can_read_is_refused_with_a_hint() -> None:
    with pytest.raises(errors.Rejected, match=r"cannot read status: .*phase") as refused:
        status.read({"phase": 3})

    assert "remove the status" in refused.value.hint


def test_fields_of_a_later_release_are_passed_over() -> None:
    assert status.read({"phase": "Stable", "mood": "good"}) == RolloutStatus(phase="Stable")


def test_the_definition_of_the_kind_has_every_field() -> None:
    made = schema.structural(RolloutStatus)

    assert set(made["properties"]) == {
        field.encode_name for field in msgspec.structs.fields(RolloutStatus)
    }
