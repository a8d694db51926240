"""The declarations of verbs fit the commands that they make."""

import dataclasses
from typing import get_args

import pytest

from fairlead.areas.rollouts.domain import verbs
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.engine import machine as machines
from fairlead.values import Verb

COMMANDS = {each.__name__: each for each in get_args(verbs.VerbCommand)}


def test_the_commands_that_people_may_give_are_those_of_the_verbs_but_deletion() -> None:
    spoken = machines.members(ROLLOUT.vocabulary.verbs)

    steering = {verb.command for verb in VERBS.values() if not verb.deletes}
    assert {each.__name__ for each in spoken} == steering
    assert set(spoken) <= set(machines.members(ROLLOUT.vocabulary.commands))


def test_each_command_of_people_is_declared_once() -> None:
    assert sorted(verb.command for verb in VERBS.values()) == sorted(COMMANDS)


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_a_verb_takes_what_its_command_has(verb: Verb) -> None:
    fields = {each.name for each in dataclasses.fields(COMMANDS[verb.command])}

    assert ("why" in fields) is verb.takes_reason
    assert ("revision" in fields) is verb.takes_revision


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_what_needs_a_revision_has_a_dialog_to_choose_it_in(verb: Verb) -> None:
    assert verb.confirm is not None or not verb.takes_revision


def test_a_dangerous_verb_is_confirmed() -> None:
    dangerous = [verb for verb in VERBS.values() if verb.tone == "danger"]

    assert dangerous
    assert all(verb.confirm for verb in dangerous)
