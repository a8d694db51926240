"""Machines are found by the stream's name; their words are read off their types."""

from typing import Union

import pytest

from fairlead import errors
from fairlead.engine import machine
from tests import machines


def test_a_stream_belongs_to_the_machine_before_the_slash() -> None:
    known = machine.Machines(machines.ALL)

    assert known.of("lane/a/b") is machines.LANE
    assert known.named("bell") is machines.BELL
    assert list(known) == list(machines.ALL)


def test_an_unknown_machine_is_told_with_those_that_are_known() -> None:
    known = machine.Machines([machines.BELL, machines.FAN])

    with pytest.raises(errors.NotFound, match="no such machine: gadget") as refused:
        known.of("gadget/a")

    assert refused.value.hint == "known machines: bell, fan"


def test_an_engine_without_machines_says_so() -> None:
    with pytest.raises(errors.NotFound) as refused:
        machine.Machines([]).of("gadget/a")

    assert refused.value.hint == "known machines: none"


def test_the_classes_of_a_union_of_one_class_and_of_none() -> None:
    assert machine.members(int | str) == (int, str)
    assert machine.members(Union[int, str]) == (int, str)  # noqa: UP007 - both spellings are allowed
    assert machine.members(int) == (int,)
    assert machine.members(None) == ()


def test_a_machine_without_an_end_never_ends() -> None:
    assert machines.ECHO.ended(machines.Heard(10**9)) is False
