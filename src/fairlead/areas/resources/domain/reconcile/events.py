"""What happens to a resource."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    Failure,
    Memory,
    Operation,
    Plan,
)


@dataclass(frozen=True, slots=True)
class SpecChanged:
    """Event: something else is declared from now on."""

    declared: Declared
    by: str


@dataclass(frozen=True, slots=True)
class Followed:
    """Event: a plan waits for its end; empty: nobody does any more."""

    parent: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """Event: another worker's memory of it was taken up."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class RemovalRequested:
    """Event: it is no longer declared."""

    by: str
    retain: bool = False


@dataclass(frozen=True, slots=True)
class ReadStarted:
    """Event: the API is asked what is there."""

    order: int


@dataclass(frozen=True, slots=True)
class WriteStarted:
    """Event: from here on this request may have been sent."""

    order: int
    plan: Plan
    sealed: Json
    at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class DeletionStarted:
    """Event: from here on its deletion may have been asked for."""

    order: int
    at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """Event: the API gave it an id."""

    given: str


@dataclass(frozen=True, slots=True)
class OperationStarted:
    """Event: the API has taken the request, and works on it."""

    order: int
    operation: Operation
    until: dt.datetime
    deadline: dt.datetime


@dataclass(frozen=True, slots=True)
class PollStarted:
    """Event: the API is asked how far it is."""

    order: int


@dataclass(frozen=True, slots=True)
class OperationAwaited:
    """Event: it is not done, or could not be asked for."""

    order: int
    until: dt.datetime
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Event: what was sent is followed no longer; what is there will tell."""

    why: str


@dataclass(frozen=True, slots=True)
class Written:
    """Event: the API has done what was asked."""


@dataclass(frozen=True, slots=True)
class VerificationAwaited:
    """Event: what the API shows is not what it took: an old answer, maybe, or work in progress."""

    order: int
    until: dt.datetime
    why: str
    differs: bool
    """It was shown, as something else; otherwise nothing could be told."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Event: what the API shows by now is what it made of values that it took."""

    settled: Mapping[str, Any]
    paths: tuple[str, ...]
    """What was written, and shows otherwise."""


@dataclass(frozen=True, slots=True)
class Converged:
    """Event: the resource is as it is declared."""

    order: int
    applied: Json | None
    """None where it is what was remembered before."""

    until: dt.datetime | None
    shown: str = ""


@dataclass(frozen=True, slots=True)
class BackedOff:
    """Event: something did not work; it is tried again."""

    order: int
    failure: Failure
    until: dt.datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """Event: the resource is not there, or no longer ours."""

    released: bool
    """It was left as it is."""


Event = (
    SpecChanged
    | Followed
    | Adopted
    | RemovalRequested
    | ReadStarted
    | WriteStarted
    | DeletionStarted
    | Named
    | OperationStarted
    | PollStarted
    | OperationAwaited
    | Dropped
    | Written
    | VerificationAwaited
    | Settled
    | Converged
    | BackedOff
    | Gone
)
