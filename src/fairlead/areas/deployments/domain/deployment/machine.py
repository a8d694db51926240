"""A deployment's life: wait for its turn, for the infrastructure to settle, then walk the plan.

     Request          TriggerDeployment                        settled
NEW ─────────► QUEUED ─────────────────► TRIGGERED ─► WAITING ─────────► AVAILABLE
                                                         │                  │ run
                                         cannot settle   ▼   any error      ▼
                                                       FAILED ◄────────── RUNNING ─► DONE
QUEUED, WAITING, AVAILABLE, RUNNING ── Terminate ─► TERMINATED             all OK
"""

from collections.abc import Iterable
from datetime import datetime

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.deployment import events, running
from fairlead.areas.deployments.domain.deployment.draft import Draft, Starters
from fairlead.areas.deployments.domain.deployment.state import (
    Deployment,
    Status,
    evolve,
    exists,
    phase,
)
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import Outcome, StepStatus
from fairlead.areas.deployments.domain.plan.build import build
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import deployment_stream, stack_stream
from fairlead.engine import machine
from fairlead.engine.messages import Cancel, ChildEnded, Decision, Send, StreamName

FREEZE = "freeze"
OBSERVE = "observe"
_APPROVAL = "approval: the environment asks for it before anything runs"

Command = (
    messages.Request
    | messages.TriggerDeployment
    | messages.RetryDeployment
    | messages.Supersede
    | messages.ReportTemplate
    | messages.ReportStackStatus
    | messages.ReportStep
    | messages.Observe
    | messages.ObserveAgain
    | messages.TimeOut
    | messages.FreezeEnded
    | messages.Approve
    | messages.Terminate
    | ChildEnded
    | Cancel
)
Effect = (
    messages.StoreTemplate | messages.StabilizeStack | messages.PerformStep | messages.ObserveStep
)
Verb = messages.Approve | messages.Terminate


def deployment(
    starters: Starters, children: Iterable[str] = ()
) -> machine.Machine[Deployment, Command, events.Event]:
    """The machine, with the kinds of step that are machines of other areas."""

    def decide(state: Deployment, command: Command, now: datetime) -> Decision:
        draft = Draft(state, now, starters)
        _take(draft, command)
        return draft.decision()

    return machine.Machine(
        name="deployment",
        initial=Deployment(),
        decide=decide,
        evolve=evolve,
        ended=lambda state: state.status.over,
        vocabulary=machine.Vocabulary(Deployment, Command, events.Event, Effect, Verb),
        attributes=machine.Attributes(
            {
                "status": tuple(each.value for each in Status),
                "phase": str,
                "stack": str,
                "version": str,
            },
            attributes,
        ),
        addressed=addressed,
        children=tuple(children),
    )


def addressed(stream: StreamName, command: Command) -> None:
    """Sends go by the name, so it is the key of the stream and no other."""
    key = stream.partition("/")[2]
    if isinstance(command, messages.Request) and command.deployment != key:
        raise errors.Rejected(
            f"{key} is told to be another deployment: {command.deployment[:80]}",
            hint="name it by the key of its stream",
        )


def attributes(state: Deployment) -> dict[str, machine.AttributeValue]:
    if state.spec is None:
        return {"status": state.status.value}
    return {
        "status": state.status.value,
        "phase": phase(state),
        "stack": state.spec.key,
        "version": state.spec.version,
    }


def _take(draft: Draft, command: Command) -> None:
    match command:
        case messages.Request():
            _request(draft, command)
        case _ if draft.state.spec is None:
            raise errors.Rejected("no such deployment", hint="request it first")
        case messages.ReportStep() | ChildEnded() | messages.ObserveAgain() | messages.TimeOut():
            _on_step(draft, command)
        case messages.Approve() | messages.Terminate() | Cancel() | messages.RetryDeployment():
            _steer(draft, command)
        case messages.TriggerDeployment():
            if draft.state.status is Status.QUEUED:
                draft.record(events.Triggered())
                draft.record(events.StackWait(draft.now))
                draft.effects.append(messages.StabilizeStack(draft.spec))
        case messages.Supersede(newer):
            if draft.state.status is Status.QUEUED:
                draft.record(events.Terminated(f"superseded by {newer}"))
        case _:
            _wait(draft, command)


def _request(draft: Draft, command: messages.Request) -> None:
    if draft.state.spec is not None:
        if draft.state.spec != command.spec:
            raise errors.Conflict(
                f"a deployment of this name was requested with other content: {draft.state.name}",
                hint="give it another name",
            )
        return
    spec, stored = command.spec, not command.template
    cause, by, parent = command.cause, command.by, command.parent
    draft.record(events.Requested(command.deployment, spec, stored, cause, by, parent))
    if not stored:
        place, role = spec.template, spec.assume_role
        store = messages.StoreTemplate(place, command.template, role, command.beside)
        draft.effects.append(store)
    supersede = spec.policy.supersede
    trigger = messages.Trigger(spec.key, command.deployment, supersede, command.fixes)
    draft.sends.append(Send(stack_stream(spec.key), trigger))


def _wait(
    draft: Draft,
    command: (
        messages.ReportTemplate
        | messages.ReportStackStatus
        | messages.Observe
        | messages.FreezeEnded
    ),
) -> None:
    """Before anything runs: the infrastructure settles, a freeze ends."""
    state = draft.state
    waiting = state.status is Status.WAITING
    match command:
        case messages.ReportTemplate(error) if not state.stored and not state.status.over:
            if error:
                _fail_storing(draft, error)
            else:
                draft.record(events.TemplateStored())
                _settled(draft)
        case messages.ReportStackStatus(status, detail, pending) if waiting:
            observed = events.StackObserved(status, detail, pending)
            if observed != state.observed:
                draft.record(observed)
            _settled(draft)
        case messages.Observe() if waiting:
            draft.record(events.AskedAgain())
            draft.effects.append(messages.StabilizeStack(draft.spec))
        case messages.FreezeEnded() if state.status is Status.AVAILABLE:
            _run_if_allowed(draft)
        case _:
            # Late or told twice: it was answered already.
            return


def _settled(draft: Draft) -> None:
    """Go on once the infrastructure rests and the template lies where the steps look for it."""
    observed = draft.state.observed
    if draft.state.status is not Status.WAITING or observed is None:
        return
    since = draft.state.waiting_since
    # By time and not by how often we looked: whoever writes events of stacks makes us look.
    if observed.status.moving and since and draft.now - since >= messages.LONGEST_WAIT:
        told = observed.detail or observed.status.value
        hours = messages.LONGEST_WAIT.seconds // 3600
        _fail_waiting(draft, f"the stack has not settled for {hours} h: {told}")
        return
    if observed.status.moving:
        # Asked again by us: what moves may be another's update, whose end nobody tells us.
        draft.wake(OBSERVE, draft.now + messages.pause(draft.state.polls), messages.Observe())
        draft.record(events.StillUnderway())
        return
    if observed.status in {StackStatus.TERMINAL, StackStatus.CREATE_FAILED}:
        _fail_waiting(draft, f"the stack is {observed.status.value}: {observed.detail}")
        return
    if not draft.state.stored:
        return
    try:
        plan = build(draft.spec, Observation(exists(observed), observed.pending))
    except errors.Rejected as error:
        _fail_waiting(draft, error.message)
        return
    draft.record(events.StackAvailable(plan))
    _run_if_allowed(draft)


def _fail_storing(draft: Draft, error: str) -> None:
    """Nothing of it ran, so its stack goes on with the next one."""
    reason = f"the template is not stored: {error}"
    draft.forget(OBSERVE)
    draft.record(events.StackWaitFailure(reason))
    draft.report(Outcome.TERMINATED, reason)


def _fail_waiting(draft: Draft, reason: str) -> None:
    draft.record(events.StackWaitFailure(reason))
    draft.report(Outcome.FAILED, reason)


def _run_if_allowed(draft: Draft) -> None:
    asks = _question(draft)
    if asks and not draft.state.approved:
        if not draft.state.waits_for:
            draft.record(events.ApprovalAsked(asks))
        return
    freezes = draft.spec.policy.freezes
    freeze = next((each for each in freezes if each.start <= draft.now < each.end), None)
    if freeze is not None:
        draft.record(events.Frozen(f"end of a freeze: {freeze.reason or freeze.end.isoformat()}"))
        draft.wake(FREEZE, freeze.end, messages.FreezeEnded())
        return
    running.start(draft)


def _question(draft: Draft) -> str:
    """What a person is asked before anything runs; empty: nothing."""
    if draft.spec.policy.approve:
        return _APPROVAL
    plan, expected = draft.state.plan, draft.spec.expects
    if expected is None or plan is None or plan.branches:
        return ""
    # A stack gone missing, or a flag: no EvalJoin follows that would compare the classes.
    return f"approval: {expected.value} was approved, and this plan evaluates nothing: {plan.mode}"


def _on_step(
    draft: Draft,
    command: messages.ReportStep | ChildEnded | messages.ObserveAgain | messages.TimeOut,
) -> None:
    if draft.state.status is Status.TERMINATED:
        _record_late(draft, command)
        return
    if draft.state.status is not Status.RUNNING:
        return
    match command:
        case messages.ReportStep():
            running.report(draft, command)
        case ChildEnded():
            running.child_ended(draft, command)
        case messages.ObserveAgain():
            running.observe_again(draft, command)
        case messages.TimeOut():
            running.time_out(draft, command)


def _record_late(draft: Draft, command: object) -> None:
    match command:
        case messages.ReportStep():
            running.record_late(draft, command)
        case ChildEnded(child, succeeded, reason):
            run = next((each for each in draft.state.steps if each.child == child), None)
            if run is not None:
                status = StepStatus.DONE if succeeded else StepStatus.FAILED
                told = messages.ReportStep(run.step.name, run.attempt, status, reason)
                running.record_late(draft, told)


def _steer(
    draft: Draft,
    command: messages.Approve | messages.Terminate | Cancel | messages.RetryDeployment,
) -> None:
    match command:
        case messages.Approve(by):
            _approve(draft, by)
        case messages.Terminate(by, why):
            _terminate(draft, by, why)
        case Cancel(reason):
            if not draft.state.status.over:
                _terminate(draft, "", reason)
        case messages.RetryDeployment(by):
            if draft.state.status in {Status.FAILED, Status.TERMINATED}:
                _retry(draft, by)


def _approve(draft: Draft, by: str) -> None:
    if not draft.state.waits_for.startswith("approval"):
        raise errors.Conflict(
            f"nothing waits for approval: the deployment is {draft.state.status.value}",
            hint="see what it waits for: fairlead get deployment NAME",
        )
    joins = draft.state.status is Status.RUNNING
    draft.record(events.Approved(by))
    if joins:
        running.approve(draft)
    else:
        _run_if_allowed(draft)


def _terminate(draft: Draft, by: str, why: str) -> None:
    state = draft.state
    if state.status.over:
        raise errors.Conflict(
            f"the deployment has ended: it is {state.status.value}",
            hint="only one that waits or runs can be terminated",
        )
    who = f"terminated by {by}" if by else "terminated"
    reason = f"{who}: {why}" if why else who
    # Evaluations alone change nothing that runs: whoever says no to their class breaks no stack.
    touched = state.status is Status.RUNNING and not state.waits_for
    for run in state.those(StepStatus.ACTIVE):
        running.stop(draft, run, reason)
    draft.forget(OBSERVE, FREEZE)
    draft.record(events.Terminated(reason, by))
    draft.report(Outcome.FAILED if touched else Outcome.TERMINATED, reason)


def _retry(draft: Draft, by: str) -> None:
    if draft.state.retried:
        return
    # Not a bare number: `v1.5` that fails is not tried again as `v1.6`, which is another one.
    base, _, number = draft.state.name.rpartition(".r")
    tried = int(number) if base and number.isdecimal() else 1
    again = f"{base if tried > 1 else draft.state.name}.r{tried + 1}"
    draft.record(events.Retried(again, by))
    cause = f"retry of {draft.state.name}"
    parent = draft.state.parent
    request = messages.Request(again, draft.spec, "", cause, by, fixes=True, parent=parent)
    draft.sends.append(Send(deployment_stream(again), request))


DEPLOYMENT = deployment({})
