"""The step of a plan that is a rollout: every state times every command, and how plans begin it."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import coordination, messages, plan_step
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.engine import machine as machines
from fairlead.engine.messages import Cancel, ChildEnded, Send, Withdraw, parse_stream
from tests.unit.areas.rollouts.domain.world import version

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
PARENT = parse_stream("deployment/dev/shop/v2")
STREAM = plan_step.stream("d1")
REQUEST = messages.Request("dev/shop", Spec(), version("v2"), 1)
START = plan_step.StartStep("d1", "dev/shop", "dev/shop/f.json", PARENT)
APPLYING = plan_step.Underway("d1", "dev/shop", PARENT)
FOLLOWING = plan_step.Underway("d1", "dev/shop", PARENT, following=True)
CANCELLED = plan_step.Underway("d1", "dev/shop", PARENT, following=True, cancelled=True)
CONTENT = '{"containers": []}'
LULLING = plan_step.Underway("d1", "bay/shop", PARENT, asleep=True)
STATES: dict[str, Any] = {
    "NotStarted": plan_step.NotStarted(),
    "applying": APPLYING,
    "following": FOLLOWING,
    "cancelled": CANCELLED,
    "lulling": LULLING,
    "Ended": plan_step.Ended(succeeded=True, reason="done"),
    "ended early": plan_step.Ended(succeeded=False, reason="cancelled", key="d1"),
}
COMMANDS: dict[str, Any] = {
    "StartStep": START,
    "asleep": plan_step.StartStep("d1", "dev/shop", "", PARENT, asleep=True),
    "asleep with content": plan_step.StartStep("d1", "bay/shop", "", PARENT, True, CONTENT),
    "Applied": plan_step.Applied(REQUEST),
    "applied elsewhere": plan_step.Applied(REQUEST, "bay/shop/u1"),
    "NotApplied": plan_step.NotApplied("port taken"),
    "ReportVersion": coordination.ReportVersion(succeeded=False, reason="rolled back"),
    "Cancel": Cancel("terminated"),
}
SAYS_NOTHING: tuple[str, ...] = ()
# What happens, by the names of events; then the machines that hear of it, and the effects.
TABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("NotStarted", "StartStep"): ("StepStarted", "ApplyVersion"),
    ("NotStarted", "asleep"): ("StepStarted", "rollout FallAsleep"),
    ("NotStarted", "asleep with content"): ("StepStarted", "ApplyVersion"),
    ("applying", "Applied"): ("VersionApplied", "rollout Follow"),
    ("applying", "applied elsewhere"): ("VersionApplied", "rollout Follow"),
    ("lulling", "Applied"): ("VersionApplied", "rollout FallAsleep"),
    ("lulling", "applied elsewhere"): ("VersionApplied", "rollout FallAsleep"),
    ("ended early", "applied elsewhere"): (
        *("VersionApplied", "rollout Follow", "rollout Abandon"),
    ),
    ("lulling", "NotApplied"): ("StepEnded", "deployment ChildEnded"),
    ("lulling", "Cancel"): ("StepEnded", "deployment ChildEnded"),
    ("applying", "NotApplied"): ("StepEnded", "deployment ChildEnded"),
    ("applying", "Cancel"): ("StepEnded", "deployment ChildEnded"),
    ("following", "ReportVersion"): ("StepEnded", "deployment ChildEnded"),
    ("following", "Cancel"): ("CancelAsked", "rollout Abandon"),
    ("cancelled", "ReportVersion"): ("StepEnded", "deployment ChildEnded"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_state_answers_every_command(state: str, command: str) -> None:
    decision = plan_step.decide(STATES[state], COMMANDS[command], NOW)

    said = [
        *(type(each).__name__ for each in decision.events),
        *(
            f"{each.stream.partition('/')[0]} {type(each.command).__name__}"
            for each in decision.sends
        ),
        *(type(each).__name__ for each in decision.effects),
    ]
    assert tuple(said) == TABLE.get((state, command), SAYS_NOTHING)


def test_the_table_names_every_command_and_state() -> None:
    assert {type(each) for each in COMMANDS.values()} == {*machines.members(plan_step.Command)}
    assert {type(each) for each in STATES.values()} == {*machines.members(plan_step.State)}


def test_the_parent_hears_the_reason_in_the_rollouts_words() -> None:
    decision = plan_step.decide(FOLLOWING, COMMANDS["ReportVersion"], NOW)

    ended = ChildEnded(STREAM, succeeded=False, reason="rolled back")
    assert decision.sends == (Send(PARENT, ended),)


def test_events_lead_through_the_states() -> None:
    state: Any = plan_step.NotStarted()
    for name, expected in (
        ("StartStep", APPLYING),
        ("Applied", FOLLOWING),
        ("Cancel", CANCELLED),
        ("ReportVersion", plan_step.Ended(succeeded=False, reason="rolled back")),
    ):
        event: Any
        for event in plan_step.decide(state, COMMANDS[name], NOW).events:
            state = plan_step.evolve(state, event)
        assert state == expected


def test_a_rollout_that_only_the_platform_can_name_is_asked_and_cancelled_by_that_name() -> None:
    applied = plan_step.Applied(REQUEST, "bay/shop/u1")

    told = plan_step.decide(LULLING, applied, NOW)
    event: Any = told.events[0]
    state = plan_step.evolve(LULLING, event)
    cancelled = plan_step.decide(state, Cancel("terminated"), NOW)

    whole = coordination.rollout_stream("bay/shop/u1")
    assert [each.stream for each in (*told.sends, *cancelled.sends)] == [whole, whole]


def test_what_was_not_applied_when_a_plan_ends_is_not_applied_later() -> None:
    """An operator may be away for hours; one that is at it cannot be stopped, and is undone."""
    told = plan_step.decide(APPLYING, Cancel("terminated"), NOW)
    event: Any = told.events[0]
    state = plan_step.evolve(APPLYING, event)
    late = plan_step.decide(state, plan_step.Applied(REQUEST, "bay/shop/u1"), NOW)
    applied: Any = late.events[0]
    after = plan_step.evolve(state, applied)

    assert told.withdraws == (Withdraw(plan_step.ApplyVersion),)
    assert [type(each.command).__name__ for each in late.sends] == ["Follow", "Abandon"]
    # Once: what is said again changes nothing.
    assert not plan_step.decide(after, plan_step.Applied(REQUEST, "bay/shop/u1"), NOW)


def test_a_plan_begins_it_by_its_words_where_it_is_told() -> None:
    words = {"rollout": "dev/shop", "file": "dev/shop/f.json", "queue": "local@x"}

    sent = plan_step.start(PARENT, "d1", words)

    assert sent == Send(STREAM, START, queue="local@x")
    brought = plan_step.start(PARENT, "d1", {**words, "content": CONTENT}).command
    assert brought == dataclasses.replace(START, content=CONTENT)
    assert plan_step.start(PARENT, "d1", {**words, "queue": None}).queue is None


@pytest.mark.parametrize("missing", ["rollout", "file"])
def test_words_that_make_no_sense_are_refused(missing: str) -> None:
    words = {"rollout": "dev/shop", "file": "f.json"}
    del words[missing]

    with pytest.raises(errors.Rejected, match=f"a step that is a rollout needs: {missing}"):
        plan_step.start(PARENT, "d1", words)
