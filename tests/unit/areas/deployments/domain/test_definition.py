"""What is stored has versions: every state with every command."""

import itertools

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain import definition
from fairlead.areas.deployments.domain.definition import Definition, Remove, Removed, Store, Stored
from fairlead.engine import machine
from fairlead.engine.testing import Given

OLD, NEW = {"full_name": "prod"}, {"full_name": "prod", "cluster_name": "east"}
STATES = {
    "absent": Definition(),
    "stored": Definition(3, OLD, "ann", present=True),
    "removed": Definition(4, OLD, "ann"),
}
COMMANDS = {
    "store": Store(NEW, "bob"),
    "the same": Store(OLD, "bob"),
    "of 3": Store(NEW, "bob", expects=3),
    "of 9": Store(NEW, "bob", expects=9),
    "remove": Remove("bob"),
}
# What is recorded; nothing where nothing happens, `no` where it is refused.
TABLE = {
    ("absent", "store"): Stored(1, NEW, "bob"),
    ("absent", "the same"): Stored(1, OLD, "bob"),
    ("absent", "of 3"): "no",
    ("absent", "of 9"): "no",
    ("stored", "store"): Stored(4, NEW, "bob"),
    ("stored", "of 3"): Stored(4, NEW, "bob"),
    ("stored", "of 9"): "no",
    ("stored", "remove"): Removed(4, "bob"),
    ("removed", "store"): Stored(5, NEW, "bob"),
    ("removed", "the same"): Stored(5, OLD, "bob"),
    ("removed", "of 3"): "no",
    ("removed", "of 9"): "no",
}


@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    expected = TABLE.get((state, command))
    given = Given(definition.MACHINES["environment"], STATES[state])
    if expected == "no":
        with pytest.raises(errors.Conflict, match="edited meanwhile"):
            given.when(COMMANDS[command])
        return

    then = given.when(COMMANDS[command])

    assert then.decision.events == (() if expected is None else (expected,))
    assert then.state.version == STATES[state].version + len(then.decision.events)


def test_the_table_has_every_command_and_people_have_none_of_them() -> None:
    for each in definition.MACHINES.values():
        assert {type(one) for one in COMMANDS.values()} == {
            *machine.members(each.vocabulary.commands)
        }
        # Only through the door, which reads and checks what is stored.
        assert machine.members(each.vocabulary.verbs) == ()


def test_a_target_is_found_by_its_repository_until_it_is_removed() -> None:
    target = definition.MACHINES["push-target"]
    content = {"provider": "github", "repository": "Acme/Shop", "environment": "prod"}
    stored = Definition(1, content, "ann", present=True)
    assert target.attributes is not None

    found = target.attributes.of(stored)
    gone = target.attributes.of(definition.evolve(stored, Removed(2, "ann")))

    assert found == {"present": True, "repository": "github:acme/shop", "environment": "prod"}
    assert gone == {"present": False}
