"""A machine as its first version knew it: a parcel moves from stop to stop, and rests between."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from fairlead.engine import machine
from fairlead.engine.messages import Decision, SetTimer

REST = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True)
class Parcel:
    """State: how far it has come."""

    stops: int = 0
    done: int = 0
    nudges: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Command: on its way, over so many stops."""

    stops: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """Command: a stop was reached."""

    stop: int


@dataclass(frozen=True, slots=True)
class Go:
    """Command, from the timer: rested long enough."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """Command, at any time: it is still wanted."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Event: it is on its way."""

    stops: int


@dataclass(frozen=True, slots=True)
class Moved:
    """Event: it reached a stop."""

    stop: int


@dataclass(frozen=True, slots=True)
class Left:
    """Event: it left for a stop."""

    stop: int


@dataclass(frozen=True, slots=True)
class Nudged:
    """Event: somebody asked for it."""


@dataclass(frozen=True, slots=True)
class Move:
    """Effect: carry it to a stop."""

    stop: int


Command = Send | Arrive | Go | Nudge
Event = Sent | Moved | Left | Nudged


def decide(state: Parcel, command: Command, now: datetime) -> Decision:
    match command:
        case Send(stops) if not state.stops:
            return Decision((Sent(stops),), (Move(1),))
        case Arrive(stop) if stop == state.done + 1:
            rest = (SetTimer("rest", now + REST, Go()),) if stop < state.stops else ()
            return Decision((Moved(stop),), timers=rest)
        case Go():
            return Decision((Left(state.done + 1),), (Move(state.done + 1),))
        case Nudge() if state.done < state.stops:
            return Decision((Nudged(),))
        case Send() | Arrive() | Nudge():
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: Parcel, event: Event) -> Parcel:
    match event:
        case Sent(stops):
            return replace(state, stops=stops)
        case Moved(stop):
            return replace(state, done=stop)
        case Left():
            return state
        case Nudged():
            return replace(state, nudges=state.nudges + 1)
        case unreachable:
            assert_never(unreachable)


PARCEL: machine.Machine[Parcel, Command, Event] = machine.Machine(
    name="parcel",
    initial=Parcel(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: 0 < state.stops == state.done,
    vocabulary=machine.Vocabulary(Parcel, Command, Event, Move),
)
