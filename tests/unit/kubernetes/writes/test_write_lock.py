"""Quiet while we write: one look at the end, and nothing that others did is lost."""

import pytest

from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.writes.write_lock import Coalescer

NORTH, SOUTH = Key("bay", "north"), Key("bay", "south")


def test_what_is_heard_while_writing_is_told_once_at_the_end() -> None:
    told: list[Key] = []
    quiet = Coalescer(told.append)

    with quiet.writing(NORTH):
        quiet.heard(NORTH)
        quiet.heard(NORTH)
        during = list(told)
    quiet.heard(NORTH)

    assert during == []
    assert told == [NORTH, NORTH]


def test_others_are_told_at_once() -> None:
    told: list[Key] = []
    quiet = Coalescer(told.append)

    with quiet.writing(NORTH):
        quiet.heard(SOUTH)

        assert told == [SOUTH]

    assert told == [SOUTH]


def test_a_namesake_s_write_is_waited_for_too() -> None:
    told: list[Key] = []
    quiet = Coalescer(told.append)

    with quiet.writing(NORTH):
        with quiet.writing(NORTH):
            quiet.heard(NORTH)
        during = list(told)

    assert during == []
    assert told == [NORTH]


def test_a_failed_write_is_told_as_well() -> None:
    told: list[Key] = []
    quiet = Coalescer(told.append)

    def fail() -> None:
        with quiet.writing(NORTH):
            quiet.heard(NORTH)
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fail()

    assert told == [NORTH]
