"""Pushes come twice and in any order: only what is newest starts a trigger."""

import itertools

import pytest

from fairlead.areas.deployments.domain import ref
from fairlead.areas.deployments.domain.ref import (
    REF,
    Outdated,
    Pushed,
    Ref,
    RefDeleted,
    Rerun,
    TakePush,
    TakeRerun,
)
from fairlead.areas.deployments.domain.trigger.messages import Source, Start, Target
from fairlead.engine import machine
from fairlead.engine.messages import Send, StreamName
from fairlead.engine.testing import Given

A, B, C, NONE = "a" * 40, "b" * 40, "c" * 40, "0" * 40
KEY = "github:acme:shop:main"
TARGETS = (Target("prod", "shop", "fairlead.yaml"),)


def source(commit: str) -> Source:
    return Source("github", "acme/shop", "refs/heads/main", commit, reports=True)


def push(before: str, after: str, at: int = 0) -> TakePush:
    return TakePush(KEY, before, source(after), TARGETS, "push", "github:ann", at)


STATES = {
    "unknown": Ref(),
    "at B": Ref(B, (NONE, A), 2, f"{KEY}:2", 20),
    "deleted": Ref(count=2, at=20),
}
COMMANDS: dict[str, TakePush | TakeRerun] = {
    "A to B": push(A, B),
    "B to C": push(B, C),
    "A to C": push(A, C),
    "none to A": push(NONE, A),
    "B to A": push(B, A),
    "earlier": push(A, C, 19),
    "later": push(A, C, 21),
    "delete": push(B, ""),
    "rerun B": TakeRerun(KEY, source(B), TARGETS, "re-run", "github:ann"),
    "rerun A": TakeRerun(KEY, source(A), TARGETS, "re-run", "github:ann"),
}
# The head after it; nothing where nothing happens.
TABLE = {
    "unknown": {
        "A to B": B,
        "B to C": C,
        "A to C": C,
        "none to A": A,
        "B to A": A,
        "earlier": C,
        "later": C,
        "rerun B": B,
        "rerun A": A,
    },
    "at B": {
        "B to C": C,
        "A to C": C,
        "none to A": "outdated",
        "B to A": A,
        "earlier": "outdated",
        "later": C,
        "delete": "",
        "rerun B": B,
        "rerun A": "outdated",
    },
    "deleted": {
        "A to B": B,
        "B to C": C,
        "A to C": C,
        "none to A": A,
        "B to A": A,
        "earlier": "outdated",
        "later": C,
        "rerun B": B,
        "rerun A": A,
    },
}


@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    expected, asked = TABLE[state].get(command), COMMANDS[command]

    then = Given(REF, STATES[state]).when(asked)

    if expected is None:
        assert not then.decision
    elif expected in ("", "outdated"):
        assert [type(each) for each in then.decision.events] in ([Outdated], [RefDeleted])
        assert then.state.note.endswith("nothing is deployed")
        then.sends()
    else:
        assert [type(each) for each in then.decision.events] in ([Pushed], [Rerun])
        assert (then.state.head, then.state.note) == (expected, "")
        name = f"{KEY}:{STATES[state].count + 1}"
        start = Start(name, asked.source, TARGETS, asked.cause, "github:ann")
        then.sends(Send(StreamName(f"trigger/{name}"), start))


def test_the_table_has_every_command_of_the_machine() -> None:
    assert {type(each) for each in COMMANDS.values()} == {*machine.members(REF.vocabulary.commands)}


def told(*pushes: TakePush) -> Ref:
    state = Ref()
    for each in pushes:
        state = Given(REF, state).when(each).state
    return state


@pytest.mark.parametrize(
    "order", list(itertools.permutations((push(NONE, A, 1), push(A, B, 2), push(B, C, 3))))
)
def test_in_whichever_order_they_come_the_newest_goes_last(order: tuple[TakePush, ...]) -> None:
    assert told(*order, *order).head == C


def test_one_that_overtook_another_stays_the_newest_without_times_too() -> None:
    assert told(push(NONE, A), push(B, C), push(A, B)).head == C


def test_a_force_push_back_and_forth_is_followed() -> None:
    assert told(push(NONE, A), push(A, B), push(B, A), push(A, B)).head == B


def test_what_was_passed_is_bounded() -> None:
    commits = [f"{number:040x}" for number in range(500)]

    state = told(*(push(before, after) for before, after in itertools.pairwise(commits)))

    assert len(state.passed) == ref._MOST_PASSED
