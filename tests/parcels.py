"""A machine that is found by an attribute of every type."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from fairlead.engine import machine
from fairlead.engine.messages import Decision

SIZES = ("small", "large")


@dataclass(frozen=True, slots=True)
class Parcel:
    """State: what is written on it; None where nothing is."""

    city: str | None = None
    weight: int | None = None
    fragile: bool | None = None
    due: datetime | None = None
    size: str | None = None
    stamps: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """Command: from now on this is written on it."""

    label: Parcel


@dataclass(frozen=True, slots=True)
class Stamp:
    """Command: one more stamp, which nobody searches for."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """Command: it is over."""


@dataclass(frozen=True, slots=True)
class Written:
    """Event: another label."""

    label: Parcel


@dataclass(frozen=True, slots=True)
class Stamped:
    """Event: one more stamp."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Event: it is over."""


@dataclass(frozen=True, slots=True)
class Home:
    """State: delivered, with the label it had."""

    label: Parcel = field(default_factory=Parcel)


State = Parcel | Home
Command = Write | Stamp | Deliver
Event = Written | Stamped | Delivered


def decide(_state: State, command: Command, _now: datetime) -> Decision:
    match command:
        case Write(label):
            return Decision((Written(label),))
        case Stamp():
            return Decision((Stamped(),))
        case Deliver():
            return Decision((Delivered(),))
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    label = state.label if isinstance(state, Home) else state
    match event:
        case Written(label):
            return label
        case Stamped():
            return replace(label, stamps=label.stamps + 1)
        case Delivered():
            return Home(label)
        case unreachable:
            assert_never(unreachable)


def values(state: State) -> dict[str, Any]:
    label = state.label if isinstance(state, Home) else state
    every = {name: getattr(label, name) for name in KINDS}
    return {name: value for name, value in every.items() if value is not None}


KINDS: dict[str, machine.AttributeKind] = {
    "city": str,
    "weight": int,
    "fragile": bool,
    "due": datetime,
    "size": SIZES,
}
PARCEL: machine.Machine[State, Command, Event] = machine.Machine(
    name="parcel",
    initial=Parcel(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Home),
    vocabulary=machine.Vocabulary(State, Command, Event),
    attributes=machine.Attributes(KINDS, values),
)
