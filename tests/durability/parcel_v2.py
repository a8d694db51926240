"""The same machine a release later: it may fly, says how it moved, and can be sent by express."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from fairlead.engine import machine
from fairlead.engine.messages import Decision, SetTimer
from tests.durability.parcel_v1 import REST, Arrive, Go, Left, Move, Nudge, Nudged, Sent


@dataclass(frozen=True, slots=True)
class Parcel:
    """State, version 2: also how it moved last."""

    stops: int = 0
    done: int = 0
    nudges: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """Command, with a field that one may leave out."""

    stops: int
    express: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """Event, version 2: also how."""

    stop: int
    by: str


@dataclass(frozen=True, slots=True)
class Fly:
    """Effect of a new type: carry it to a stop through the air."""

    stop: int


Command = Send | Arrive | Go | Nudge
Event = Sent | Moved | Left | Nudged


def decide(state: Parcel, command: Command, now: datetime) -> Decision:
    match command:
        case Send(stops) if not state.stops:
            return Decision((Sent(stops),), (Move(1),))
        case Arrive(stop) if stop == state.done + 1:
            rest = (SetTimer("rest", now + REST, Go()),) if stop < state.stops else ()
            return Decision((Moved(stop, "air" if stop % 2 else "foot"),), timers=rest)
        case Go():
            stop = state.done + 1
            return Decision((Left(stop),), (Fly(stop) if stop % 2 else Move(stop),))
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
        case Moved(stop, by):
            return replace(state, done=stop, by=by)
        case Left():
            return state
        case Nudged():
            return replace(state, nudges=state.nudges + 1)
        case unreachable:
            assert_never(unreachable)


def _moved_from_1(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "by": "foot"}


def _parcel_from_1(data: dict[str, Any]) -> dict[str, Any]:
    # As its events, read again today, would tell it.
    return {**data, "by": "foot" if data["done"] else ""}


PARCEL: machine.Machine[Parcel, Command, Event] = machine.Machine(
    name="parcel",
    initial=Parcel(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: 0 < state.stops == state.done,
    vocabulary=machine.Vocabulary(Parcel, Command, Event, Move | Fly),
    versions={Parcel: 2, Moved: 2},
    upcasters={("Moved", 1): _moved_from_1, ("Parcel", 1): _parcel_from_1},
)
