"""A stack's life: one deployment at a time has its turn, the others wait in their order.

      Trigger            DeploymentCompleted        nothing queued
NEW ─────────► CREATING ────────────────────► STABLE ─────────────► AVAILABLE
                  │                            ▲ │ next of the queue    │ Trigger
                  │ DeploymentFailed           │ ▼                      │
                  ├────────────► BROKEN ◄──── MIGRATING ◄───────────────┘
                                   │ Retry, a fix          ▲
                                   ├───────────────────────┘
                                   └─ ForceAvailable ─► STABLE

What ends is matched to the current deployment, so a queued one that is terminated, or an answer
that comes late, never makes room for a second one.
"""

from datetime import datetime
from typing import assert_never

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.messages import Outcome
from fairlead.areas.deployments.domain.spec import deployment_stream
from fairlead.areas.deployments.domain.stack import events
from fairlead.areas.deployments.domain.stack.state import Stack, Status, evolve
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send, StreamName

Command = messages.Trigger | messages.ReportEnd | messages.Retry | messages.ForceAvailable
Verb = messages.Retry | messages.ForceAvailable


def decide(stack: Stack, command: Command, _now: datetime) -> Decision:
    match command:
        case messages.Trigger():
            return _trigger(stack, command)
        case messages.ReportEnd():
            return _end(stack, command)
        case messages.Retry(by):
            _check_broken(stack)
            retry = Send(deployment_stream(stack.current), messages.RetryDeployment(by))
            return Decision((events.RetryRequested(stack.current, by),), sends=(retry,))
        case messages.ForceAvailable(by, why):
            _check_broken(stack)
            if not why.strip():
                raise errors.Rejected(
                    "no reason was given", hint="say why the stack is whole again"
                )
            return _settle(stack, events.ForcedAvailable(by, why))
        case unreachable:
            assert_never(unreachable)


def addressed(stream: StreamName, command: Command) -> None:
    """A trigger names its stack; one that came to another stream is a fault of its sender."""
    key = stream.partition("/")[2]
    if isinstance(command, messages.Trigger) and command.stack != key:
        raise errors.Rejected(
            f"{key} is told to be another stack: {command.stack[:80]}",
            hint="name it by the key of its stream",
        )


def attributes(stack: Stack) -> dict[str, machine.AttributeValue]:
    environment, _, app = stack.name.partition("/")
    return {
        "status": stack.status.value,
        "environment": environment,
        "app": app,
        "queued": len(stack.queue),
    }


STACK: machine.Machine[Stack, Command, events.Event] = machine.Machine(
    name="stack",
    initial=Stack(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Stack, Command, events.Event, verbs=Verb),
    attributes=machine.Attributes(
        {
            "status": tuple(each.value for each in Status),
            "environment": str,
            "app": str,
            "queued": int,
        },
        attributes,
    ),
    addressed=addressed,
)


def _trigger(stack: Stack, command: messages.Trigger) -> Decision:
    if command.deployment == stack.current or command.deployment in stack.queue:
        return Decision()
    replaced = stack.queue if command.supersede else ()
    left = tuple(events.Dequeued(each, f"superseded by {command.deployment}") for each in replaced)
    sends = tuple(
        Send(deployment_stream(each), messages.Supersede(command.deployment)) for each in replaced
    )
    triggered = events.Triggered(command.stack, command.deployment, command.fixes)
    if evolve(stack, triggered).current == command.deployment:
        sends = (*sends, _start(command.deployment))
    return Decision((*left, triggered), sends=sends)


def _end(stack: Stack, command: messages.ReportEnd) -> Decision:
    deployment, reason = command.deployment, command.reason
    if deployment in stack.queue:
        return Decision((events.Dequeued(deployment, reason),))
    runs = stack.status in {Status.CREATING, Status.MIGRATING}
    if not runs or deployment != stack.current:
        # Late, told twice, or of another stack: nothing here depends on it.
        return Decision()
    match command.outcome:
        case Outcome.DONE:
            return _settle(stack, events.DeploymentCompleted(deployment))
        case Outcome.TERMINATED:
            return _settle(stack, events.DeploymentTerminated(deployment, reason))
        case Outcome.FAILED:
            return Decision((events.DeploymentFailed(deployment, reason),))
        case unreachable:
            assert_never(unreachable)


def _settle(stack: Stack, event: events.Event) -> Decision:
    """Through STABLE, where nothing rests: on to the next of the queue, or to wait for one."""
    if not stack.queue:
        return Decision((event, events.BecameAvailable()))
    head = stack.queue[0]
    return Decision((event, events.DeploymentStarted(head)), sends=(_start(head),))


def _start(deployment: str) -> Send:
    return Send(deployment_stream(deployment), messages.TriggerDeployment())


def _check_broken(stack: Stack) -> None:
    if stack.status is not Status.BROKEN:
        raise errors.Conflict(
            f"the stack is not broken: it is {stack.status.value}",
            hint="only a broken stack is retried or forced to be available",
        )
