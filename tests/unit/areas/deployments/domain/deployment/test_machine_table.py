"""A deployment in every state with every command: what it becomes, or that nothing happens."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.deployment import events
from fairlead.areas.deployments.domain.deployment.machine import DEPLOYMENT
from fairlead.areas.deployments.domain.deployment.state import Deployment, Status
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.spec import DeploymentSpec, Flag, Freeze, Policy
from fairlead.engine import machine
from fairlead.engine.messages import Cancel, ChildEnded, StreamName
from fairlead.engine.testing import START, Given
from tests.unit.areas.deployments.domain.samples import BARE, flagged

SPEC = flagged(Flag.QUICK, spec=BARE)
REQUEST = messages.Request("d1", SPEC, "{}", "push", "ann")
FREEZE = Freeze(START, START + timedelta(hours=1), "holidays")


def after(*commands: object, spec: DeploymentSpec = SPEC) -> Deployment:
    """A deployment that was told all this."""
    state = Deployment()
    for command in (replace(REQUEST, spec=spec), *commands):
        state = Given(DEPLOYMENT, state).when(command).state
    return state


def answer(status: StepStatus, attempt: int = 1) -> messages.ReportStep:
    return messages.ReportStep(
        "CFUpsert", attempt, status, "no" if status.value == "FAILED" else ""
    )


TURN, STORED = messages.TriggerDeployment(), messages.ReportTemplate()
SETTLED = messages.ReportStackStatus(StackStatus.COMPLETE)
APPROVED_FIRST = replace(SPEC, policy=Policy(approve=True))
FROZEN = replace(SPEC, policy=Policy(freezes=(FREEZE,)))
STATES = {
    "NEW": Deployment(),
    "QUEUED": after(STORED),
    "WAITING": after(STORED, TURN),
    "WAITING, not stored": after(TURN, SETTLED),
    "AVAILABLE, approval": after(STORED, TURN, SETTLED, spec=APPROVED_FIRST),
    "AVAILABLE, frozen": after(STORED, TURN, SETTLED, spec=FROZEN),
    "RUNNING": after(STORED, TURN, SETTLED),
    "DONE": after(STORED, TURN, SETTLED, answer(StepStatus.DONE)),
    "FAILED": after(STORED, TURN, SETTLED, answer(StepStatus.FAILED)),
    "TERMINATED": after(STORED, TURN, SETTLED, messages.Terminate("ann")),
}
COMMANDS = {
    "Request": REQUEST,
    "TriggerDeployment": TURN,
    "RetryDeployment": messages.RetryDeployment("ann"),
    "Supersede": messages.Supersede("d2"),
    "ReportTemplate": STORED,
    "progress": messages.ReportStackStatus(StackStatus.PROGRESS),
    "complete": SETTLED,
    "missing": messages.ReportStackStatus(StackStatus.MISSING),
    "rolled back": messages.ReportStackStatus(StackStatus.ROLLED_BACK),
    "terminal": messages.ReportStackStatus(StackStatus.TERMINAL, "ROLLBACK_FAILED"),
    "step active": answer(StepStatus.ACTIVE),
    "step done": answer(StepStatus.DONE),
    "step failed": answer(StepStatus.FAILED),
    "late step": answer(StepStatus.DONE, attempt=9),
    "foreign step": messages.ReportStep("Elsewhere", 1, StepStatus.DONE),
    "foreign child": ChildEnded(StreamName("rollout/x"), succeeded=True),
    "Observe": messages.Observe(),
    "ObserveAgain": messages.ObserveAgain("CFUpsert", 1),
    "TimeOut": messages.TimeOut("CFUpsert", 1),
    "FreezeEnded": messages.FreezeEnded(),
    "Approve": messages.Approve("ann"),
    "Terminate": messages.Terminate("ann", "wrong version"),
    "Cancel": Cancel("no"),
}
ENDS = {"Terminate": "TERMINATED", "Cancel": "TERMINATED"}
# The status after it; a command that is not listed changes nothing at all.
TABLE = {
    "NEW": {"Request": "QUEUED"},
    "QUEUED": {"TriggerDeployment": "WAITING", "Supersede": "TERMINATED", **ENDS},
    "WAITING": {
        "progress": "WAITING",
        "complete": "RUNNING",
        "missing": "RUNNING",
        "rolled back": "RUNNING",
        "terminal": "FAILED",
        "Observe": "WAITING",
        **ENDS,
    },
    "WAITING, not stored": {
        "ReportTemplate": "RUNNING",
        "progress": "WAITING",
        "missing": "WAITING",
        "rolled back": "WAITING",
        "terminal": "FAILED",
        "Observe": "WAITING",
        **ENDS,
    },
    "AVAILABLE, approval": {"Approve": "RUNNING", **ENDS},
    # It is still frozen when the timer of this test rings, so it waits for the end again.
    "AVAILABLE, frozen": {"FreezeEnded": "AVAILABLE", **ENDS},
    "RUNNING": {
        "step active": "RUNNING",
        "step done": "DONE",
        "step failed": "FAILED",
        "ObserveAgain": "RUNNING",
        "TimeOut": "FAILED",
        **ENDS,
    },
    "DONE": {},
    "FAILED": {"RetryDeployment": "FAILED"},
    "TERMINATED": {
        "step done": "TERMINATED",
        "step failed": "TERMINATED",
        "RetryDeployment": "TERMINATED",
    },
}


def refused(state: str, command: str) -> str:
    """Why a command is turned away; empty where it is not."""
    if state == "NEW":
        return "" if command == "Request" else "no such deployment"
    if command == "Approve" and state != "AVAILABLE, approval":
        return "nothing waits for approval"
    over = state in {"DONE", "FAILED", "TERMINATED"}
    if command == "Terminate" and over:
        return "has ended"
    return "other content" if command == "Request" and state.startswith("AVAILABLE") else ""


@pytest.mark.requirement(
    "deployer D1",
    "deployer D2",
    "deployer D3",
    "deployer D4",
    "deployer D5",
    "deployer D6",
    "deployer D7",
    "deployer D8",
    "deployer D9",
    "deployer D10",
    "deployer D11",
)
@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    given = Given(DEPLOYMENT, STATES[state])
    if why := refused(state, command):
        with pytest.raises((errors.Rejected, errors.Conflict), match=why):
            given.when(COMMANDS[command])
        return

    then = given.when(COMMANDS[command])

    expected = TABLE[state].get(command)
    if expected is None:
        assert not then.decision
    else:
        assert then.decision
        assert then.state.status.value == expected
        assert then.state.status is not Status.TRIGGERED


def test_the_states_are_what_they_are_called() -> None:
    for name, state in STATES.items():
        assert state.status.value == name.partition(",")[0]


def test_the_table_has_every_command_of_the_machine() -> None:
    named = {type(each) for each in COMMANDS.values()}

    assert named == {*machine.members(DEPLOYMENT.vocabulary.commands)}


def test_events_of_the_way_have_the_documents_names() -> None:
    told: list[str] = []
    state = Deployment()
    for command in (REQUEST, STORED, TURN, SETTLED, answer(StepStatus.DONE)):
        when = Given(DEPLOYMENT, state).when(command)
        told += [type(event).__name__ for event in when.decision.events]
        state = when.state

    assert told == [
        *("Requested", "TemplateStored", "Triggered", "StackWait", "StackObserved"),
        *("StackAvailable", "Running", "RunStep", "StepResult", "Done"),
    ]
    assert {*told} <= {each.__name__ for each in machine.members(events.Event)}
