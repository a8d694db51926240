"""What happens to a stack, by the document's names where it has one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Triggered:
    """Event: a deployment wants its turn; it starts, or joins the queue."""

    stack: str
    deployment: str
    fixes: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentCompleted:
    """Event: the current deployment ended well."""

    deployment: str


@dataclass(frozen=True, slots=True)
class DeploymentFailed:
    """Event: the current deployment failed, or was ended in the middle of its steps."""

    deployment: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentTerminated:
    """Event: the current deployment was ended before any of its steps ran."""

    deployment: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dequeued:
    """Event: a deployment left the queue without its turn."""

    deployment: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentStarted:
    """Event: the head of the queue has its turn."""

    deployment: str


@dataclass(frozen=True, slots=True)
class BecameAvailable:
    """Event: nothing is queued."""


@dataclass(frozen=True, slots=True)
class RetryRequested:
    """Event: somebody wants the failed deployment to run once more."""

    deployment: str
    by: str


@dataclass(frozen=True, slots=True)
class ForcedAvailable:
    """Event: somebody says that the stack is whole again."""

    by: str
    why: str


Event = (
    Triggered
    | DeploymentCompleted
    | DeploymentFailed
    | DeploymentTerminated
    | Dequeued
    | DeploymentStarted
    | BecameAvailable
    | RetryRequested
    | ForcedAvailable
)
