"""Whoever asked for a deployment hears of its end, whichever it is."""

import pytest

from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.deployment import events
from fairlead.areas.deployments.domain.deployment.machine import DEPLOYMENT
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.plan.build import build
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.engine.messages import ChildEnded, Send, StreamName
from fairlead.engine.testing import START, Given, given
from tests.unit.areas.deployments.domain.samples import BARE, flagged

QUICK = flagged(Flag.QUICK, spec=BARE)
PLAN = build(QUICK, Observation(exists=True))
STEP = PLAN.steps[0].name


def begun(parent: str = "trigger/t", *further: events.Event) -> Given:
    requested = events.Requested("d", QUICK, stored=True, parent=parent)
    return given(DEPLOYMENT, requested, *further)


WAITS = (events.Triggered(), events.StackWait(START))
RUNS = (*WAITS, events.StackAvailable(PLAN), events.Running(), events.RunStep(STEP, 1))
ENDS = {
    "superseded": (begun(), messages.Supersede("e"), False),
    "terminated": (begun(), messages.Terminate("ann"), False),
    "cannot settle": (
        begun("trigger/t", *WAITS),
        messages.ReportStackStatus(StackStatus.TERMINAL, "stuck"),
        False,
    ),
    "failed": (
        begun("trigger/t", *RUNS),
        messages.TimeOut(STEP, 1),
        False,
    ),
    "done": (begun("trigger/t", *RUNS), messages.ReportStep(STEP, 1, StepStatus.DONE), True),
}


def heard(state: Given, command: object) -> list[Send]:
    decided = state.when(command).decision
    return [each for each in decided.sends if isinstance(each.command, ChildEnded)]


@pytest.mark.parametrize("end", ENDS)
def test_its_parent_hears_of_every_end(end: str) -> None:
    state, command, succeeded = ENDS[end]

    (told,) = heard(state, command)

    assert told.stream == "trigger/t"
    assert isinstance(told.command, ChildEnded)
    assert told.command.child == StreamName("deployment/d")
    assert told.command.succeeded is succeeded


def test_one_without_a_parent_tells_nobody() -> None:
    assert heard(begun(""), messages.Terminate("ann")) == []


def test_a_retry_tells_the_same_parent() -> None:
    failed = begun("trigger/t", *WAITS, events.StackWaitFailure("no"))

    (send,) = failed.when(messages.RetryDeployment("ann")).decision.sends

    assert isinstance(send.command, messages.Request)
    assert (send.command.deployment, send.command.parent) == ("d.r2", "trigger/t")
