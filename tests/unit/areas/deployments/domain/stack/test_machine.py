"""A stack gives one deployment at a time its turn: every state with every command."""

import itertools
from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.messages import Outcome
from fairlead.areas.deployments.domain.spec import deployment_stream
from fairlead.areas.deployments.domain.stack import events
from fairlead.areas.deployments.domain.stack.machine import STACK
from fairlead.areas.deployments.domain.stack.state import Stack, Status
from fairlead.engine import machine
from fairlead.engine.messages import Send, StreamName
from fairlead.engine.testing import Given, When

NAME = "prod/shop"
START = messages.TriggerDeployment()
STATES = {
    "NEW": Stack(),
    "CREATING": Stack(NAME, Status.CREATING, "a"),
    "AVAILABLE": Stack(NAME, Status.AVAILABLE),
    "MIGRATING": Stack(NAME, Status.MIGRATING, "a"),
    "MIGRATING, one waits": Stack(NAME, Status.MIGRATING, "a", ("b",)),
    "BROKEN": Stack(NAME, Status.BROKEN, "a", (), "no"),
    "BROKEN, one waits": Stack(NAME, Status.BROKEN, "a", ("b",), "no"),
}
COMMANDS = {
    "Trigger": messages.Trigger(NAME, "c"),
    "supersede": messages.Trigger(NAME, "c", supersede=True),
    "fix": messages.Trigger(NAME, "c", fixes=True),
    "a done": messages.ReportEnd("a", Outcome.DONE),
    "a failed": messages.ReportEnd("a", Outcome.FAILED, "no"),
    "a terminated": messages.ReportEnd("a", Outcome.TERMINATED, "no"),
    "b terminated": messages.ReportEnd("b", Outcome.TERMINATED, "no"),
    "other done": messages.ReportEnd("z", Outcome.DONE),
    "Retry": messages.Retry("ann"),
    "ForceAvailable": messages.ForceAvailable("ann", "mended"),
}
# Status, current, queue after it; `same` where nothing happens, `no` where it is refused.
TABLE = {
    "NEW": {"Trigger": "CREATING c", "supersede": "CREATING c", "fix": "CREATING c"},
    "CREATING": {
        "Trigger": "CREATING a c",
        "supersede": "CREATING a c",
        "fix": "CREATING a c",
        "a done": "AVAILABLE",
        "a failed": "BROKEN a",
        "a terminated": "AVAILABLE",
    },
    "AVAILABLE": {"Trigger": "MIGRATING c", "supersede": "MIGRATING c", "fix": "MIGRATING c"},
    "MIGRATING": {
        "Trigger": "MIGRATING a c",
        "supersede": "MIGRATING a c",
        "fix": "MIGRATING a c",
        "a done": "AVAILABLE",
        "a failed": "BROKEN a",
        "a terminated": "AVAILABLE",
    },
    "MIGRATING, one waits": {
        "Trigger": "MIGRATING a b c",
        "supersede": "MIGRATING a c",
        "fix": "MIGRATING a b c",
        "a done": "MIGRATING b",
        "a failed": "BROKEN a b",
        "a terminated": "MIGRATING b",
        "b terminated": "MIGRATING a",
    },
    "BROKEN": {
        "Trigger": "BROKEN a c",
        "supersede": "BROKEN a c",
        "fix": "MIGRATING c",
        "Retry": "BROKEN a",
        "ForceAvailable": "AVAILABLE",
    },
    "BROKEN, one waits": {
        "Trigger": "BROKEN a b c",
        "supersede": "BROKEN a c",
        "fix": "MIGRATING c b",
        "b terminated": "BROKEN a",
        "Retry": "BROKEN a b",
        "ForceAvailable": "MIGRATING b",
    },
}
STEERED = {"Retry", "ForceAvailable"}


def when(state: str, command: str) -> When:
    return Given(STACK, STATES[state]).when(COMMANDS[command])


def shown(stack: Stack) -> str:
    return " ".join(filter(None, (stack.status.value, stack.current, *stack.queue)))


@pytest.mark.requirement(
    "deployer S1",
    "deployer S2",
    "deployer S3",
    "deployer S4",
    "deployer S5",
    "deployer S6",
    "deployer S7",
    "deployer S8",
    "deployer S9",
    "deployer S10",
    "deployer S11",
    "deployer S-gap",
)
@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    expected = TABLE[state].get(command)
    if expected is None and command in STEERED:
        with pytest.raises(errors.Conflict, match="not broken"):
            when(state, command)
        return

    then = when(state, command)

    if expected is None:
        assert not then.decision
    else:
        assert then.decision.events
        assert shown(then.state) == expected
        assert then.state.status is not Status.STABLE


def test_the_table_has_every_command_of_the_machine() -> None:
    named = {type(each) for each in COMMANDS.values()}

    assert named == {*machine.members(STACK.vocabulary.commands)}


@pytest.mark.requirement("deployer S1", "deployer Q9")
def test_the_first_deployment_starts_at_once() -> None:
    then = when("NEW", "Trigger")

    then.then(events.Triggered(NAME, "c")).sends(Send(deployment_stream("c"), START))


@pytest.mark.requirement("deployer S2", "deployer S8")
def test_one_that_joins_the_queue_does_not_start() -> None:
    when("CREATING", "Trigger").sends()
    when("MIGRATING", "Trigger").sends()


@pytest.mark.requirement("deployer S6")
def test_the_oldest_of_the_queue_is_next() -> None:
    state = Stack(NAME, Status.MIGRATING, "a", ("b", "c", "d"))

    then = Given(STACK, state).when(messages.ReportEnd("a", Outcome.DONE))

    then.then(events.DeploymentCompleted("a"), events.DeploymentStarted("b"))
    then.sends(Send(deployment_stream("b"), START))
    assert then.state.queue == ("c", "d")


@pytest.mark.requirement("deployer S11")
def test_a_queued_one_that_is_terminated_makes_no_room() -> None:
    then = when("MIGRATING, one waits", "b terminated")

    then.then(events.Dequeued("b", "no")).sends()
    assert then.state == replace(STATES["MIGRATING, one waits"], queue=())


def test_an_end_that_is_told_twice_changes_nothing() -> None:
    once = when("MIGRATING", "a done")

    assert not Given(STACK, once.state).when(COMMANDS["a done"]).decision


def test_superseding_tells_those_that_waited() -> None:
    then = when("MIGRATING, one waits", "supersede")

    then.then(events.Dequeued("b", "superseded by c"), events.Triggered(NAME, "c"))
    then.sends(Send(deployment_stream("b"), messages.Supersede("c")))


def test_the_same_trigger_again_joins_once() -> None:
    once = when("MIGRATING", "Trigger")

    assert not Given(STACK, once.state).when(COMMANDS["Trigger"]).decision


@pytest.mark.requirement("deployer S-gap")
def test_a_retry_asks_the_deployment_that_failed() -> None:
    then = when("BROKEN, one waits", "Retry")

    then.sends(Send(deployment_stream("a"), messages.RetryDeployment("ann")))


def test_force_available_needs_a_reason() -> None:
    with pytest.raises(errors.Rejected, match="no reason"):
        Given(STACK, STATES["BROKEN"]).when(messages.ForceAvailable("ann", " "))


def test_a_trigger_for_another_stack_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="another stack"):
        STACK.addressed(StreamName("stack/prod/cart"), messages.Trigger(NAME, "c"))
