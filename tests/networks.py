"""A parent of parents: a network opens depots, which send trips."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from fairlead.engine import machine
from fairlead.engine.children import Children
from fairlead.engine.messages import Cancel, ChildEnded, Decision, Send, StreamName, stream_name
from fairlead.engine.sample.depot import DEPOT
from fairlead.engine.sample.messages import Order


@dataclass(frozen=True, slots=True)
class Open:
    """Command: open so many depots with so many trips each."""

    depots: int
    trips: int
    legs: int


@dataclass(frozen=True, slots=True)
class Opened:
    """Event: depots were opened."""

    depots: tuple[StreamName, ...]


@dataclass(frozen=True, slots=True)
class Stopping:
    """Event: all depots were told to close."""

    reason: str


@dataclass(frozen=True, slots=True)
class DepotClosed:
    """Event: a depot closed."""

    depot: StreamName
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Closed:
    """State: no depot was ever opened, or none is open any more."""

    opened: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Running:
    """State: depots are open."""

    opened: int
    depots: Children
    failed: int = 0
    reason: str | None = None


State = Closed | Running
Command = Open | ChildEnded | Cancel
Event = Opened | Stopping | DepotClosed


def decide(state: State, command: Command, _now: datetime) -> Decision:
    match state, command:
        case Closed(0), Open(count, trips, legs):
            names = [f"d{number}" for number in range(count)]
            depots = tuple(stream_name("depot", name) for name in names)
            orders = (Order(name, trips, legs, at_once=2, parent=NETWORK) for name in names)
            sends = tuple(map(Send, depots, orders))
            return Decision((Opened(depots),), sends=sends)
        case Running(reason=None), Cancel(reason):
            return Decision((Stopping(reason),), sends=state.depots.cancel(reason))
        case Running(), ChildEnded(depot, succeeded) if depot in state.depots:
            return Decision((DepotClosed(depot, succeeded),))
        case ((Closed() | Running()), (Open() | ChildEnded() | Cancel())):
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case Opened(depots):
            return Running(len(depots), Children().started(*depots))
        case Stopping(reason):
            assert isinstance(state, Running)
            return replace(state, reason=reason)
        case DepotClosed(depot, succeeded):
            assert isinstance(state, Running)
            failed = state.failed + (not succeeded)
            left = state.depots.ended(depot)
            return (
                replace(state, depots=left, failed=failed) if left else Closed(state.opened, failed)
            )
        case unreachable:
            assert_never(unreachable)


NETWORK = stream_name("network", "n")
MACHINE: machine.Machine[State, Command, Event] = machine.Machine(
    name="network",
    initial=Closed(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Closed) and state.opened > 0,
    vocabulary=machine.Vocabulary(State, Command, Event),
    children=(DEPOT.name,),
)
