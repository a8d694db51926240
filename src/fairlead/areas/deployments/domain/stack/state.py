"""Where a stack stands, and how each event moves it."""

import enum
from dataclasses import dataclass, replace
from typing import assert_never

from fairlead.areas.deployments.domain.stack import events


class Status(enum.Enum):
    """The document's states, and the one before the first trigger."""

    NEW = "NEW"
    CREATING = "CREATING"
    STABLE = "STABLE"
    """Automatic: every decision that comes here leaves it again."""

    AVAILABLE = "AVAILABLE"
    MIGRATING = "MIGRATING"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class Stack:
    """One application in one environment."""

    name: str = ""
    status: Status = Status.NEW
    current: str = ""
    """The deployment that has its turn; on a broken stack, the one that broke it."""

    queue: tuple[str, ...] = ()
    """Those that wait for their turn, the oldest first."""

    reason: str = ""
    """Why it is broken."""


def evolve(stack: Stack, event: events.Event) -> Stack:  # noqa: PLR0911 - one way for each event
    match event:
        case events.Triggered():
            return _triggered(stack, event)
        case events.DeploymentCompleted() | events.DeploymentTerminated():
            return replace(stack, status=Status.STABLE, current="")
        case events.DeploymentFailed(deployment, reason):
            return replace(stack, status=Status.BROKEN, current=deployment, reason=reason)
        case events.Dequeued(deployment):
            return replace(stack, queue=_without(stack, deployment))
        case events.DeploymentStarted(deployment):
            queue = _without(stack, deployment)
            return replace(stack, status=Status.MIGRATING, current=deployment, queue=queue)
        case events.BecameAvailable():
            return replace(stack, status=Status.AVAILABLE)
        case events.RetryRequested():
            return stack
        case events.ForcedAvailable():
            return replace(stack, status=Status.STABLE, current="", reason="")
        case unreachable:
            assert_never(unreachable)


def _triggered(stack: Stack, event: events.Triggered) -> Stack:
    starts = replace(stack, name=event.stack, current=event.deployment, reason="")
    match stack.status:
        case Status.NEW:
            return replace(starts, status=Status.CREATING)
        case Status.AVAILABLE:
            return replace(starts, status=Status.MIGRATING)
        case Status.BROKEN if event.fixes:
            return replace(starts, status=Status.MIGRATING)
        case Status.CREATING | Status.STABLE | Status.MIGRATING | Status.BROKEN:
            return replace(stack, queue=(*stack.queue, event.deployment))
        case unreachable:
            assert_never(unreachable)


def _without(stack: Stack, deployment: str) -> tuple[str, ...]:
    return tuple(each for each in stack.queue if each != deployment)
