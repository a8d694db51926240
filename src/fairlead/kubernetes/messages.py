"""What a machine may ask of the Kubernetes object it stands for, in words that every kind shares.

A machine that is driven by an object (a `Kind` in kubernetes/kinds.py) names these effects in
its vocabulary; kubernetes/writes/effects.py performs them. It takes `Confirm` and `Refuse`
among its commands: the answers to `ApplyChildren`.

Every effect carries the round of the machine: a number that grows with each decision to act and
is published in `.status`. What is older than a round that was acted upon already is dropped, so
that a late try of an old request never undoes a newer one.
"""

from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """One object, never a namesake: the UID tells them apart."""

    kind: str
    """As Kubernetes writes a resource in full: plural.group."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is so, is not, or is unknown, and why."""

    type: str
    status: bool | None
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ApplyChildren:
    """Effect: let the subject own exactly these children, as they stand here."""

    subject: Subject
    round: int
    children: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class PublishStatus:
    """Effect: bring `.status` to this; conditions of others are kept."""

    subject: Subject
    round: int
    generation: int
    status: Object = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Effect: tell those who describe the object what happened to it."""

    subject: Subject
    reason: str
    note: str
    warning: bool = False
    topic: str = ""
    """Where one reason tells of several things, which of them: each gets an Event of its own."""


@dataclass(frozen=True, slots=True)
class HoldObject:
    """Effect: put our finalizer on, so that the object waits for us at its end."""

    subject: Subject
    finalizer: str


@dataclass(frozen=True, slots=True)
class ReleaseObject:
    """Effect: take our finalizer off; the object may go."""

    subject: Subject
    finalizer: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """Command, the answer to ApplyChildren: the children of this round are as asked."""

    round: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Command, the answer to ApplyChildren: what was asked in this round cannot be had."""

    round: int
    reason: str
    message: str
