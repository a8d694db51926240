"""Pushes come twice and in any order: only what is newest starts a trigger."""

import itertools

import pytest

from fairlead.areas.deployments.domain import ref
from fairlead.areas.deployments.domain.ref import (
    REF,
    Doubted,
    HeadAskedAgain,
    Outdated,
    Pushed,
    Ref,
    RefDeleted,
    Rerun,
    Settled,
    TakePush,
    TakeRerun,
)
from fairlead.areas.deployments.domain.trigger.messages import ReportCommit, Source, Start, Target
from fairlead.engine import machine
from fairlead.engine.messages import Send, StreamName
from fairlead.engine.testing import Given

A, B, C, D, E, NONE = (each * 40 for each in "abcde0")
KEY = "github:acme:shop:main"
TARGETS = (Target("prod", "shop", "fairlead.yaml"),)


def source(commit: str) -> Source:
    return Source("github", "acme/shop", "refs/heads/main", commit, reports=True)


def push(before: str, after: str, at: int = 0) -> TakePush:
    return TakePush(KEY, before, source(after), TARGETS, "push", "github:ann", at)


STATES = {
    "unknown": Ref(),
    "at B": Ref(B, (NONE, A), 2, f"{KEY}:2", 20),
    "asking": Ref(B, (NONE, A), 2, f"{KEY}:2", 20, asked=push(D, E)),
    "asking again": Ref(B, (NONE, A), 2, f"{KEY}:2", 20, asked=push(D, E), again=True),
    "deleted": Ref(passed=(NONE, A, B), count=2, at=20),
}
COMMANDS: dict[str, TakePush | TakeRerun | ReportCommit] = {
    "A to B": push(A, B),
    "B to C": push(B, C),
    "A to C": push(A, C),
    "none to A": push(NONE, A),
    "B to A": push(B, A),
    "earlier": push(A, C, 19),
    "later": push(A, C, 21),
    "delete": push(B, ""),
    "delete A": push(A, ""),
    "it is B": ReportCommit(B),
    "it is C": ReportCommit(C),
    "it is gone": ReportCommit("", "no such branch"),
    "rerun B": TakeRerun(KEY, source(B), TARGETS, "re-run", "github:ann"),
    "rerun A": TakeRerun(KEY, source(A), TARGETS, "re-run", "github:ann"),
}
ASKED: dict[str, str] = {
    **dict.fromkeys(("B to C", "A to C", "B to A", "later", "delete", "delete A"), "doubted"),
    **dict.fromkeys(("none to A", "earlier", "rerun A"), "outdated"),
    "rerun B": B,
}
# The head after it, or what is said of it; nothing where nothing happens.
TABLE: dict[str, dict[str, str]] = {
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
        "A to C": "doubted",
        "none to A": "outdated",
        "B to A": "doubted",
        "earlier": "outdated",
        "later": C,
        "delete": "deleted",
        "delete A": "doubted",
        "rerun B": B,
        "rerun A": "outdated",
    },
    "asking": {**ASKED, "it is B": "settled", "it is C": C, "it is gone": "settled"},
    "asking again": {
        **ASKED,
        **dict.fromkeys(("it is B", "it is C", "it is gone"), "asked again"),
    },
    "deleted": {
        **dict.fromkeys(("A to B", "B to C", "A to C", "none to A", "B to A"), "doubted"),
        "earlier": "outdated",
        "later": C,
        "rerun B": B,
        "rerun A": A,
    },
}
SAID = {
    "outdated": Outdated,
    "doubted": Doubted,
    "deleted": RefDeleted,
    "settled": Settled,
    "asked again": HeadAskedAgain,
}


@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    expected, asked = TABLE[state].get(command), COMMANDS[command]

    then = Given(REF, STATES[state]).when(asked)

    if expected is None:
        assert not then.decision
    elif expected in SAID:
        assert [type(each) for each in then.decision.events] == [SAID[expected]]
        assert expected == "asked again" or then.state.note
        asks = expected == "asked again" or (expected == "doubted" and not STATES[state].asked)
        assert bool(then.decision.effects) is asks
        then.sends()
    else:
        source_ = push(D, expected).source if isinstance(asked, ReportCommit) else asked.source
        assert [type(each) for each in then.decision.events] in ([Pushed], [Rerun])
        assert (then.state.head, then.state.note) == (expected, "")
        name = f"{KEY}:{STATES[state].count + 1}"
        cause = "push" if isinstance(asked, ReportCommit) else asked.cause
        start = Start(name, source_, TARGETS, cause, "github:ann")
        then.sends(Send(StreamName(f"trigger/{name}"), start))


def test_the_table_has_every_command_of_the_machine() -> None:
    assert {type(each) for each in COMMANDS.values()} == {*machine.members(REF.vocabulary.commands)}


def told(*pushes: TakePush, really: str = "") -> Ref:
    """What becomes of pushes, where the repository says which commit it is."""
    state = Ref()
    for each in pushes:
        then = Given(REF, state).when(each)
        while then.decision.effects:
            then = Given(REF, then.state).when(ReportCommit(really, "" if really else "gone"))
        state = then.state
    return state


HISTORIES = {
    "one after another": (A, B, C, D),
    "forced back": (A, B, C, B),
    "forced back and on": (A, B, A, C),
    "back and forth": (A, B, A, B),
    "to where it began": (A, B, C, A),
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("timed", [False, True])
def test_in_whichever_order_pushes_come_the_newest_goes_last(
    history: tuple[str, ...], *, timed: bool
) -> None:
    pairs = itertools.pairwise((NONE, *history))
    pushes = [push(*each, at if timed else 0) for at, each in enumerate(pairs, 1)]

    for order in itertools.permutations(pushes):
        for come in (order, (*order, *order)):
            assert told(*come, really=history[-1]).head == history[-1], come


def test_of_a_branch_that_is_gone_nothing_more_is_deployed() -> None:
    gone = told(push(NONE, A), push(A, B), push(B, ""))
    late = told(push(NONE, A), push(A, B), push(B, ""), push(NONE, A), push(C, D))

    assert (gone.head, gone.count) == ("", 2)
    assert (late.head, late.count, late.note) == ("", 2, "gone: nothing is deployed")
    anew = told(push(NONE, A), push(A, ""), push(NONE, A), really=A)
    assert (anew.head, anew.count) == (A, 2)


def test_what_was_passed_is_bounded() -> None:
    commits = [f"{number:040x}" for number in range(500)]

    state = told(*(push(before, after) for before, after in itertools.pairwise(commits)))

    assert len(state.passed) == ref._MOST_PASSED
