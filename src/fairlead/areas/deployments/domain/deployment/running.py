"""The walk along a plan: begin what is ready, take what steps report, end when all have stopped."""

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.classes import Impact, worst
from fairlead.areas.deployments.domain.deployment import events
from fairlead.areas.deployments.domain.deployment.draft import Draft
from fairlead.areas.deployments.domain.deployment.state import StepRun
from fairlead.areas.deployments.domain.messages import Outcome, StepStatus
from fairlead.areas.deployments.domain.plan import graph, join
from fairlead.areas.deployments.domain.plan.change_set import Finding
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.spec import deployment_stream
from fairlead.engine.children import Children
from fairlead.engine.messages import ChildEnded, Withdraw


def start(draft: Draft) -> None:
    draft.record(events.Running())
    advance(draft)


def advance(draft: Draft) -> None:
    """Begin what can begin; where nothing can and nothing runs, it is over."""
    while not draft.state.those(StepStatus.FAILED) and not draft.state.waits_for:
        ready = _ready(draft)
        if not ready:
            break
        for run in ready:
            if run.step.kind == Kind.EVAL_JOIN.value:
                _join(draft, run)
            else:
                _begin(draft, run, 1)
    if not draft.state.those(StepStatus.ACTIVE) and not draft.state.waits_for:
        _end(draft)


def report(draft: Draft, told: messages.ReportStep) -> None:
    """Take the answer of the attempt that runs; any other is late, double or foreign."""
    run = draft.state.find(told.step)
    if run is None or run.status is not StepStatus.ACTIVE or run.attempt != told.attempt:
        return
    if told.status is StepStatus.ACTIVE:
        if {**run.outputs, **told.outputs} != run.outputs:
            draft.record(_result(told))
        draft.record(events.StillUnderway(told.step))
        again = messages.ObserveAgain(told.step, told.attempt)
        draft.wake(_observing(told.step), draft.now + messages.pause(run.polls), again)
        return
    draft.forget(_observing(told.step), _timing(told.step))
    draft.record(_result(told))
    if told.status is StepStatus.FAILED and _tries_again(draft, run):
        _begin(draft, run, run.attempt + 1)
    advance(draft)


def child_ended(draft: Draft, ended: ChildEnded) -> None:
    run = next((each for each in draft.state.steps if each.child == ended.child), None)
    if run is not None:
        status = StepStatus.DONE if ended.succeeded else StepStatus.FAILED
        error = "" if ended.succeeded else ended.reason
        report(draft, messages.ReportStep(run.step.name, run.attempt, status, error))


def observe_again(draft: Draft, command: messages.ObserveAgain) -> None:
    run = draft.state.find(command.step)
    if run and run.status is StepStatus.ACTIVE and run.attempt == command.attempt:
        draft.record(events.AskedAgain(command.step))
        draft.effects.append(messages.ObserveStep(_effect(draft, run, run.attempt)))


def time_out(draft: Draft, command: messages.TimeOut) -> None:
    """What had its time has failed; it is not tried again, for the outside may still work on it."""
    run = draft.state.find(command.step)
    if run is None or run.status is not StepStatus.ACTIVE or run.attempt != command.attempt:
        return
    stop(draft, run, f"no end after {run.step.timeout}")
    error = f"no end after {run.step.timeout}"
    draft.record(events.StepResult(command.step, run.attempt, StepStatus.FAILED, error))
    advance(draft)


def record_late(draft: Draft, told: messages.ReportStep) -> None:
    """After a person ended the deployment: what a step came to is only written down."""
    run = draft.state.find(told.step)
    late = run and run.status is StepStatus.ACTIVE and run.attempt == told.attempt
    if late and told.status is not StepStatus.ACTIVE:
        draft.record(_result(told))


def stop(draft: Draft, run: StepRun, why: str) -> None:
    """Ask nothing more about a step that runs, and end the machine that takes it."""
    effect = _effect(draft, run, run.attempt)
    draft.withdraws += [Withdraw(effect), Withdraw(messages.ObserveStep(effect))]
    draft.forget(_observing(run.step.name), _timing(run.step.name))
    if run.child is not None:
        draft.sends += Children((run.child,)).cancel(why)


def approve(draft: Draft) -> None:
    """A person took the class that was found: its branch is walked."""
    run = next(each for each in draft.state.steps if each.step.kind == Kind.EVAL_JOIN.value)
    assert draft.state.impact is not None
    _take(draft, run, Finding(draft.state.impact, draft.state.reasons))
    advance(draft)


def _ready(draft: Draft) -> tuple[StepRun, ...]:
    done = {run.step.name for run in draft.state.those(StepStatus.DONE)}
    blocked = draft.state.those(StepStatus.BLOCKED)
    names = {step.name for step in graph.ready((run.step for run in blocked), done)}
    return tuple(run for run in blocked if run.step.name in names)


def _begin(draft: Draft, run: StepRun, attempt: int) -> None:
    step = run.step
    draft.wake(_timing(step.name), draft.now + step.timeout, messages.TimeOut(step.name, attempt))
    starter = draft.starters.get(step.kind)
    if starter is None:
        draft.record(events.RunStep(step.name, attempt))
        draft.effects.append(_effect(draft, run, attempt))
        return
    try:
        parent, key = deployment_stream(draft.state.name), _token(draft, run, attempt)
        send = starter(parent, key, run.step.words)
    except errors.Rejected as error:
        draft.forget(_timing(step.name))
        draft.record(events.RunStep(step.name, attempt))
        failed = StepStatus.FAILED
        draft.record(events.StepResult(step.name, attempt, failed, error.message))
        return
    draft.record(events.RunStep(step.name, attempt, send.stream))
    draft.sends.append(send)


def _join(draft: Draft, run: StepRun) -> None:
    found = [
        Finding(each.impact or Impact.NOP, each.reasons)
        for each in draft.state.those(StepStatus.DONE)
        if each.impact is not None or each.reasons
    ]
    evaluations = (each for each in draft.state.steps if each.step.kind == Kind.PG_EVALUATE.value)
    migrations = worst(each.impact or Impact.NOP for each in evaluations)
    joined = join.join(draft.spec, found, migrations)
    if asks := join.question(draft.spec, joined.impact, migrations):
        draft.record(events.ApprovalAsked(f"approval: {asks}", joined.impact, joined.reasons))
        return
    _take(draft, run, joined)


def _take(draft: Draft, run: StepRun, joined: Finding) -> None:
    assert draft.state.plan is not None
    steps = draft.state.plan.branch(joined.impact)
    draft.record(events.RunStep(run.step.name, 1))
    draft.record(events.StepResult(run.step.name, 1, StepStatus.DONE))
    draft.record(events.EvalJoined(joined.impact, joined.reasons, steps))


def _end(draft: Draft) -> None:
    failed = draft.state.those(StepStatus.FAILED)
    left = draft.state.those(StepStatus.BLOCKED)
    if failed:
        _fail(draft, "\n".join(f"Step {run.step.name}: {run.error}" for run in failed))
    elif left:
        names = ", ".join(run.step.name for run in left)
        _fail(draft, f"steps wait for what never comes: {names}")
    else:
        draft.record(events.Done())
        draft.report(Outcome.DONE)


def _fail(draft: Draft, reason: str) -> None:
    draft.record(events.Error(reason))
    draft.report(Outcome.FAILED, reason)


def _tries_again(draft: Draft, run: StepRun) -> bool:
    others = [each for each in draft.state.those(StepStatus.FAILED) if each.step != run.step]
    return run.attempt < run.step.attempts and not others


def _result(told: messages.ReportStep) -> events.StepResult:
    return events.StepResult(
        told.step,
        told.attempt,
        told.status,
        told.error,
        told.outputs,
        told.impact,
        told.reasons,
        told.statements,
    )


def _effect(draft: Draft, run: StepRun, attempt: int) -> messages.PerformStep:
    # Only of steps it depends on: these ended before it began, so each delivery says the same.
    outputs = {
        each.step.name: each.outputs
        for each in draft.state.steps
        if each.outputs and _is_before(draft, each, run)
    }
    return messages.PerformStep(
        draft.spec,
        run.step.name,
        run.step.kind,
        attempt,
        _token(draft, run, attempt),
        run.step.words,
        outputs,
    )


def _is_before(draft: Draft, earlier: StepRun, run: StepRun) -> bool:
    todo, seen = [*run.step.depends_on], set[str]()
    while todo:
        name = todo.pop()
        if name == earlier.step.name:
            return True
        found = draft.state.find(name)
        if found is not None and name not in seen:
            seen.add(name)
            todo += found.step.depends_on
    return False


def _token(draft: Draft, run: StepRun, attempt: int) -> str:
    return f"{draft.state.name}-{run.step.name}-{attempt}"


def _observing(step: str) -> str:
    return f"observe {step}"


def _timing(step: str) -> str:
    return f"timeout {step}"
