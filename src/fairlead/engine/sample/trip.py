"""A trip's life: drive leg after leg, then tell the depot.

          Depart            Arrive (last leg)
Parked ──────────► Driving ──────────────────► Home
                    │ │ ▲
                    │ └─┘ Arrive (another leg to go)
                    │ Cancel
                    └───────► Stopped
"""

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from fairlead.engine import children, machine
from fairlead.engine.messages import Cancel, Decision, Send, StreamName, stream_name
from fairlead.engine.sample.messages import (
    Arrive,
    Arrived,
    Depart,
    Departed,
    DriveLeg,
    LegDriven,
    Stopped,
)


@dataclass(frozen=True, slots=True)
class Parked:
    """State: nothing has happened yet."""


@dataclass(frozen=True, slots=True)
class Driving:
    """State: some legs are behind, some ahead."""

    depot: str
    trip: int
    legs: int
    driven: int = 0


@dataclass(frozen=True, slots=True)
class Home:
    """State: the trip is over."""

    legs: int


Command = Depart | Arrive | Cancel
Event = Departed | LegDriven | Arrived | Stopped
State = Parked | Driving | Home | Stopped


def decide(state: State, command: Command, _now: datetime) -> Decision:
    match state, command:
        case Parked(), Depart(depot, trip, legs):
            return Decision((Departed(depot, trip, legs),), (DriveLeg(1),))
        case Driving() as driving, Arrive(leg) if leg == driving.driven + 1:
            return _arrive(driving, leg)
        case Driving() as driving, Cancel(reason):
            return Decision((Stopped(reason),), sends=_report(driving, reason, succeeded=False))
        case ((Parked() | Driving() | Home() | Stopped()), (Depart() | Arrive() | Cancel())):
            # Told twice, or too late: what was asked is already so.
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case Departed(depot, trip, legs):
            return Driving(depot, trip, legs)
        case LegDriven(leg):
            assert isinstance(state, Driving)
            return Driving(state.depot, state.trip, state.legs, leg)
        case Arrived(legs):
            return Home(legs)
        case Stopped():
            return event
        case unreachable:
            assert_never(unreachable)


def ended(state: State) -> bool:
    return isinstance(state, Home | Stopped)


TRIP: machine.Machine[State, Command, Event] = machine.Machine(
    name="trip",
    initial=Parked(),
    decide=decide,
    evolve=evolve,
    ended=ended,
    vocabulary=machine.Vocabulary(State, Command, Event, DriveLeg, Depart),
)


def trip_stream(depot: str, trip: int) -> StreamName:
    return stream_name("trip", f"{depot}-{trip}")


def _arrive(state: Driving, leg: int) -> Decision:
    if leg < state.legs:
        return Decision((LegDriven(leg),), (DriveLeg(leg + 1),))
    report = _report(state, "", succeeded=True)
    return Decision((LegDriven(leg), Arrived(state.legs)), sends=report)


def _report(state: Driving, reason: str, *, succeeded: bool) -> tuple[Send, ...]:
    trip = trip_stream(state.depot.partition("/")[2], state.trip)
    return children.report(state.depot, trip, succeeded=succeeded, reason=reason)
