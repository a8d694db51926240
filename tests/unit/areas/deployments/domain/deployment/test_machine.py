"""How a deployment goes its way: its steps, its failures, and who hears of its end."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.deployment import machine, state
from fairlead.areas.deployments.domain.deployment.machine import DEPLOYMENT
from fairlead.areas.deployments.domain.deployment.state import Deployment, Status
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import Outcome, StepStatus
from fairlead.areas.deployments.domain.spec import (
    DeploymentSpec,
    Flag,
    Override,
    deployment_stream,
    stack_stream,
)
from fairlead.engine.machine import AnyMachine
from fairlead.engine.messages import Cancel, ChildEnded, Send, SetTimer, StreamName
from fairlead.engine.testing import START, Given, When
from tests.unit.areas.deployments.domain.samples import SPEC, TWO, flagged

STACK = stack_stream("prod/shop")


class Told:
    """A deployment that is told one thing after another."""

    def __init__(self, spec: DeploymentSpec, told_by: AnyMachine = DEPLOYMENT) -> None:
        self.machine = told_by
        self.state = Deployment()
        self.last: When
        self.tell(messages.Request("d1", spec))
        self.tell(messages.TriggerDeployment())

    def tell(self, command: object) -> When:
        self.last = Given(self.machine, self.state).when(command)
        self.state = self.last.state
        return self.last

    def settle(self, status: StackStatus = StackStatus.COMPLETE) -> "Told":
        self.tell(messages.ReportStackStatus(status))
        return self

    def done(self, *steps: str, impact: Impact | None = None) -> When:
        for step in steps:
            self.tell(messages.ReportStep(step, 1, StepStatus.DONE, impact=impact))
        return self.last

    def fail(self, step: str, error: str, attempt: int = 1) -> When:
        return self.tell(messages.ReportStep(step, attempt, StepStatus.FAILED, error))

    @property
    def active(self) -> list[str]:
        return [run.step.name for run in self.state.those(StepStatus.ACTIVE)]


def ended(outcome: Outcome, reason: str = "") -> Send:
    return Send(STACK, messages.ReportEnd("d1", outcome, reason))


def test_a_run_in_which_nothing_can_begin_any_more_fails_with_what_is_left() -> None:
    """A peer calls such a plan done. No plan of ours has one; a store of another version might."""
    told = Told(flagged(Flag.QUICK)).settle()
    stuck = replace(told.state.steps[0].step, name="Stuck", depends_on=("Lost",))
    blocked = state.StepRun(stuck)
    told.state = replace(told.state, steps=(*told.state.steps, blocked))

    told.done("CFUpsert", "PGUpsert", "PGMigrate", "PGCleanup")

    assert told.state.status is Status.FAILED
    assert told.state.reason == "steps wait for what never comes: Stuck"
    assert told.last.decision.sends == (ended(Outcome.FAILED, told.state.reason),)


@pytest.mark.requirement("deployer D8", "deployer D9")
def test_after_a_failure_nothing_starts_and_what_runs_is_awaited() -> None:
    told = Told(flagged(Flag.QUICK, spec=TWO)).settle()

    told.fail("CFUpsert", "no room")
    told.done("PGUpsert.orders", "PGUpsert.stock")

    assert told.state.status is Status.FAILED
    assert told.last.decision.effects == ()
    assert told.state.reason == "Step CFUpsert: no room"
    assert told.last.decision.sends == (ended(Outcome.FAILED, "Step CFUpsert: no room"),)


@pytest.mark.requirement("deployer D9")
def test_every_step_that_failed_has_its_line() -> None:
    told = Told(flagged(Flag.QUICK)).settle()

    told.done("PGUpsert")
    told.fail("CFUpsert", "no room")
    told.fail("PGMigrate", "no such table")

    assert told.state.reason == "Step CFUpsert: no room\nStep PGMigrate: no such table"


def test_a_step_that_may_be_tried_again_gets_a_token_of_its_own() -> None:
    told = Told(flagged(Flag.QUICK)).settle()

    then = told.fail("PGUpsert", "connection lost")

    (effect,) = then.decision.effects
    assert isinstance(effect, messages.PerformStep)
    assert (effect.attempt, effect.token) == (2, "d1-PGUpsert-2")
    assert not told.fail("PGUpsert", "told twice").decision
    told.fail("PGUpsert", "again", attempt=2)
    told.fail("PGUpsert", "and again", attempt=3)
    assert told.active == ["CFUpsert"]
    assert told.done("CFUpsert").state.reason == "Step PGUpsert: and again"


@pytest.mark.requirement("deployer D4")
def test_what_moves_is_asked_about_again_by_ourselves() -> None:
    told = Told(SPEC)

    for seconds, status in ((5, StackStatus.PROGRESS), (10, StackStatus.ROLLING_BACK)):
        told.settle(status)
        due = START + timedelta(seconds=seconds)
        assert told.last.decision.timers == (SetTimer("observe", due, messages.Observe()),)
    assert told.tell(messages.Observe()).decision.effects == (messages.StabilizeStack(SPEC),)


def test_a_stack_that_never_settles_is_not_waited_for_without_end() -> None:
    """REVIEW_IN_PROGRESS: somebody made a change set for a new stack, and never executed it."""
    told = Told(SPEC).settle(StackStatus.PROGRESS)
    moving = messages.ReportStackStatus(StackStatus.PROGRESS, "REVIEW_IN_PROGRESS")
    for _ in range(1000):
        told.tell(messages.Observe())
        assert told.tell(moving).state.status is Status.WAITING, "looks alone end nothing"
    assert told.state.waiting_since is not None
    before = told.state.waiting_since - messages.LONGEST_WAIT
    told.state = replace(told.state, waiting_since=before)

    then = told.tell(moving)

    assert then.state.status is Status.FAILED
    assert then.state.reason == "the stack has not settled for 12 h: REVIEW_IN_PROGRESS"
    (send,) = then.decision.sends
    assert isinstance(send.command, messages.ReportEnd)
    assert send.command.outcome is Outcome.FAILED
    assert then.decision.timers == ()


@pytest.mark.requirement("deployer D5")
@pytest.mark.parametrize("status", [StackStatus.TERMINAL, StackStatus.CREATE_FAILED])
def test_the_stack_hears_of_infrastructure_that_cannot_settle(status: StackStatus) -> None:
    told = Told(SPEC).settle(status)

    assert told.state.status is Status.FAILED
    (send,) = told.last.decision.sends
    assert isinstance(send.command, messages.ReportEnd)
    assert send.command.outcome is Outcome.FAILED


def test_flags_that_make_no_sense_fail_before_anything_runs() -> None:
    told = Told(flagged(Flag.DB_ONLY)).settle(StackStatus.MISSING)

    assert told.state.status is Status.FAILED
    assert "it is missing" in told.state.reason
    assert told.last.decision.effects == ()


@pytest.mark.requirement("deployer P4", "deployer P5")
@pytest.mark.parametrize(
    ("database", "infrastructure", "begun"),
    [
        (Impact.NOP, Impact.NOP, ["VersionMigrate"]),
        (Impact.PARALLEL, Impact.NOP, ["CFUpsert", "PGMigrate"]),
        (Impact.NOP, Impact.BEFORE, ["InfraMigrate", "PGMigrate"]),
        (Impact.DOWNTIME, Impact.BEFORE, ["ScaleDown"]),
    ],
)
def test_the_worse_answer_takes_exactly_one_branch(
    database: Impact, infrastructure: Impact, begun: list[str]
) -> None:
    told = Told(SPEC).settle()

    told.done("CFPlan", impact=infrastructure)
    told.done("PGUpsert")
    assert state.phase(told.state) == "EVALUATING"
    told.done("PGEval", impact=database)

    assert told.active == begun


def test_another_class_than_was_approved_stops_and_asks() -> None:
    told = Told(replace(SPEC, expects=Impact.NOP)).settle()
    told.done("CFPlan", impact=Impact.NOP)
    told.done("PGUpsert")
    told.done("PGEval", impact=Impact.DOWNTIME)

    assert told.active == []
    assert told.state.waits_for == "approval: NOP was approved, found DOWNTIME"
    refusing = Given(DEPLOYMENT, told.state).when(messages.Terminate("ann"))
    told.tell(messages.Approve("ann"))

    assert told.active == ["ScaleDown"]
    # Evaluations changed nothing that runs, so saying no does not break the stack.
    assert refusing.decision.sends == (ended(Outcome.TERMINATED, "terminated by ann"),)


@pytest.mark.parametrize(
    ("flags", "status", "mode", "begun"),
    [
        ((), StackStatus.MISSING, "full", ["InfraMigrate"]),
        ((Flag.QUICK,), StackStatus.COMPLETE, "quick", ["CFUpsert", "PGUpsert"]),
        ((Flag.SEQUENTIAL,), StackStatus.COMPLETE, "full", ["ScaleDown"]),
    ],
)
def test_a_plan_without_evaluation_is_not_the_class_that_was_approved(
    flags: tuple[Flag, ...], status: StackStatus, mode: str, begun: list[str]
) -> None:
    told = Told(flagged(*flags, expects=Impact.PARALLEL)).settle(status)

    asked = f"approval: PARALLEL was approved, and this plan evaluates nothing: {mode}"
    assert (told.state.status, told.state.waits_for) == (Status.AVAILABLE, asked)
    assert told.active == []
    told.tell(messages.Approve("ann"))

    assert told.active == begun


def test_an_override_that_would_skip_migrations_asks_what_to_do() -> None:
    override = Override(Impact.NOP, "ann", "no time")
    told = Told(replace(SPEC, override=override)).settle()
    told.done("CFPlan", impact=Impact.NOP)
    told.done("PGUpsert")
    told.done("PGEval", impact=Impact.PARALLEL)

    assert told.state.waits_for == "approval: NOP would skip pending migrations, found PARALLEL"
    told.tell(messages.Approve("bob"))

    assert told.active == ["CFUpsert", "PGMigrate"]


def test_what_scale_down_remembers_reaches_scale_up() -> None:
    told = Told(flagged(Flag.SEQUENTIAL)).settle()

    counts = {"DesiredCountWeb": "3"}
    told.tell(messages.ReportStep("ScaleDown", 1, StepStatus.ACTIVE, outputs=counts))
    told.done("ScaleDown", "InfraMigrate", "PGMigrate")

    (effect,) = told.last.decision.effects
    assert isinstance(effect, messages.PerformStep)
    assert (effect.step, effect.outputs) == ("ScaleUp", {"ScaleDown": counts})


@pytest.mark.requirement("deployer Q18", "deployer Q19", "deployer Q27", "deployer Q28")
def test_the_phase_follows_the_steps() -> None:
    told = Told(SPEC).settle(StackStatus.MISSING)
    phases = [state.phase(told.state)]
    for step in ("InfraMigrate", "PGMigrate", "ScaleUp"):
        told.done(step)
        phases.append(state.phase(told.state))

    assert phases == ["INFRA_MIGRATING", "DB_MIGRATING", "SCALING_UP", ""]


@pytest.mark.requirement("deployer D11")
def test_terminating_a_run_withdraws_what_it_asked_and_breaks_the_stack() -> None:
    told = Told(flagged(Flag.SEQUENTIAL)).settle()
    asked = told.last.decision.effects[0]

    told.tell(messages.Terminate("ann", "wrong version"))

    assert told.state.status is Status.TERMINATED
    assert asked in [each.effect for each in told.last.decision.withdraws]
    assert told.last.decision.sends == (ended(Outcome.FAILED, "terminated by ann: wrong version"),)
    told.done("ScaleDown")
    assert told.state.those(StepStatus.DONE)[0].step.name == "ScaleDown"
    told.last.asks().sends()


@pytest.mark.requirement("deployer S-gap")
def test_a_retry_requests_the_same_under_the_next_name() -> None:
    told = Told(flagged(Flag.SEQUENTIAL)).settle()
    told.fail("ScaleDown", "no")

    then = told.tell(messages.RetryDeployment("ann"))

    spec, cause = flagged(Flag.SEQUENTIAL), "retry of d1"
    again = messages.Request("d1.r2", spec, cause=cause, by="ann", fixes=True)
    assert then.decision.sends == (Send(deployment_stream("d1.r2"), again),)
    assert not told.tell(messages.RetryDeployment("ann")).decision


def test_a_step_has_its_time_and_is_not_tried_again_after_it() -> None:
    told = Told(flagged(Flag.QUICK)).settle()
    due = {each.name: each for each in told.last.decision.timers}
    timer = due["timeout PGUpsert"]
    assert isinstance(timer, SetTimer)
    assert timer.due == START + timedelta(hours=1)

    told.tell(timer.command)
    told.done("CFUpsert")

    assert told.state.reason == "Step PGUpsert: no end after 1:00:00"


def child(_: StreamName, key: str, words: Mapping[str, object]) -> Send:
    if words["database"] == "stock":
        raise errors.Rejected("no such server group", hint="name another one")
    return Send(StreamName(f"migration/{key}"), words)


@pytest.mark.requirement("deployer Q20", "deployer Q26")
def test_a_step_that_is_a_machine_is_started_heard_and_cancelled() -> None:
    kinds = machine.deployment({"PGMigrate": child}, ("migration",))
    told = Told(flagged(Flag.DB_ONLY), kinds).settle()
    run = told.state.find("PGMigrate")
    assert run is not None
    told.done("PGUpsert")
    name = StreamName("migration/d1-PGMigrate-1")

    # In its own words, without any of ours: a kind may refuse those that it does not know.
    assert told.last.decision.sends == (Send(name, run.step.words),)
    cancelled = Given(kinds, told.state).when(messages.Terminate("ann"))
    assert Send(name, Cancel("terminated by ann")) in cancelled.decision.sends
    late = Given(kinds, cancelled.state).when(ChildEnded(name, succeeded=False, reason="ended"))
    assert late.state.find("PGMigrate").error == "ended"
    told.tell(ChildEnded(name, succeeded=True))
    assert told.active == ["PGCleanup"]


def test_a_machine_that_cannot_start_fails_its_step() -> None:
    kinds = machine.deployment({"PGMigrate": child}, ("migration",))
    told = Told(flagged(Flag.DB_ONLY, spec=replace(TWO, databases=TWO.databases[1:])), kinds)
    told.settle()

    told.done("PGUpsert")

    assert told.state.reason == "Step PGMigrate: no such server group"


@pytest.mark.parametrize(
    ("name", "again"), [("v1.5", "v1.5.r2"), ("d1.r2", "d1.r3"), ("a.b.r9", "a.b.r10")]
)
def test_a_retry_never_has_the_name_of_another_deployment(name: str, again: str) -> None:
    failed = replace(Told(SPEC).settle(StackStatus.TERMINAL).state, name=name)

    then = Given(DEPLOYMENT, failed).when(messages.RetryDeployment("ann"))

    assert then.state.retried == again
