"""What operators store for deployments: clusters, environments and push targets, each versioned.

             Store                     Store (other content)
ABSENT ───────────────► STORED ─────────────────────────────┐
   ▲   Removed: version  │  ▲──────────────────────────────┘
   └──── goes on ────────┘ Remove

Three machines share this life; what is stored was read and checked (`specs.reading`) before it
came here, and whoever may store it was asked at the door. The version only ever grows, so that two
people who edit the same thing notice each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from fairlead import errors
from fairlead.engine import machine
from fairlead.engine.messages import Decision

CLUSTER = "cluster"
ENVIRONMENT = "environment"
PUSH_TARGET = "push-target"


@dataclass(frozen=True, slots=True)
class Store:
    """Command: this is what it is from now on."""

    content: dict[str, Any]
    by: str
    expects: int | None = None
    """The version that was edited; None where that does not matter."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Command: forget it; its history stays."""

    by: str


@dataclass(frozen=True, slots=True)
class Stored:
    """Event: it was written or rewritten."""

    version: int
    content: dict[str, Any]
    by: str


@dataclass(frozen=True, slots=True)
class Removed:
    """Event: it is no longer there."""

    version: int
    by: str


@dataclass(frozen=True, slots=True)
class Definition:
    """State: what is stored, and as which version."""

    version: int = 0
    content: dict[str, Any] = field(default_factory=dict)
    by: str = ""
    present: bool = False


Command = Store | Remove
Event = Stored | Removed
Machine = machine.Machine[Definition, Command, Event]


def decide(state: Definition, command: Command, _now: datetime) -> Decision:
    match command:
        case Store(content, by, expects):
            if expects is not None and expects != state.version:
                raise errors.Conflict(
                    f"it was edited meanwhile: version {state.version}, not {expects}",
                    hint="read it again and repeat the edit",
                )
            if state.present and state.content == content:
                return Decision()
            return Decision((Stored(state.version + 1, content, by),))
        case Remove(by):
            return Decision((Removed(state.version + 1, by),)) if state.present else Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: Definition, event: Event) -> Definition:
    match event:
        case Stored(version, content, by):
            return Definition(version, content, by, present=True)
        case Removed(version, by):
            return replace(state, version=version, by=by, present=False)
        case unreachable:
            assert_never(unreachable)


def _machine(name: str, found_by: Callable[[Mapping[str, Any]], dict[str, str]]) -> Machine:
    def attributes(state: Definition) -> dict[str, machine.AttributeValue]:
        # What was removed is found by nothing but the fact.
        words = found_by(state.content) if state.present else {}
        return {"present": state.present, **words}

    kinds: dict[str, machine.AttributeKind] = dict.fromkeys(found_by({}), str)
    return machine.Machine(
        name=name,
        initial=Definition(),
        decide=decide,
        evolve=evolve,
        vocabulary=machine.Vocabulary(Definition, Command, Event),
        attributes=machine.Attributes({"present": bool, **kinds}, attributes),
    )


def repository_word(provider: str, repository: str) -> str:
    """By which the targets of a repository are found; hosts do not tell large letters apart."""
    return f"{provider}:{repository}".lower()


MACHINES: Mapping[str, Machine] = {
    CLUSTER: _machine(CLUSTER, lambda _: {}),
    ENVIRONMENT: _machine(ENVIRONMENT, lambda it: {"cluster": it.get("cluster_name", "")}),
    PUSH_TARGET: _machine(
        PUSH_TARGET,
        lambda it: {
            "repository": repository_word(it.get("provider", ""), it.get("repository", "")),
            "environment": it.get("environment", ""),
        },
    ),
}
