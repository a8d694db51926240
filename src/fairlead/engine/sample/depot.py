"""A depot's life: queue trips, keep a few on the road, close when the last is back.

        Order             Return (last one)
Idle ──────────► Busy ──────────────────────► Done
                 │  ▲
                 └──┘ Order (adds to the queue), Return (sends the next)
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from fairlead import errors
from fairlead._sample.messages import Closed, Depart, Order, Ordered, Return, Returned, Sent
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send, StreamName, stream_name


@dataclass(frozen=True, slots=True)
class Idle:
    """State: no trip was ever ordered."""


@dataclass(frozen=True, slots=True)
class Busy:
    """State: trips are queued or on the road."""

    depot: str
    legs: int
    at_once: int
    ordered: int
    sent: int = 0
    on_road: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """State: every trip is back."""

    trips: int


Command = Order | Return
Event = Ordered | Sent | Returned | Closed
State = Idle | Busy | Done


def decide(state: State, command: Command, _now: datetime) -> Decision:
    match command:
        case Order():
            return _order(state, command)
        case Return(trip) if isinstance(state, Busy) and trip in state.on_road:
            return _return(state, trip)
        case Return():
            # Told twice: the trip is back already.
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case Ordered(depot, trips, legs, at_once):
            if isinstance(state, Busy):
                return replace(state, ordered=state.ordered + trips)
            return Busy(depot, legs, at_once, trips)
        case Sent(trip):
            assert isinstance(state, Busy)
            return replace(state, sent=trip, on_road=(*state.on_road, trip))
        case Returned(trip):
            assert isinstance(state, Busy)
            return replace(state, on_road=tuple(each for each in state.on_road if each != trip))
        case Closed(trips):
            return Done(trips)
        case unreachable:
            assert_never(unreachable)


def ended(state: State) -> bool:
    return isinstance(state, Done)


DEPOT: machine.Machine[State, Command, Event] = machine.Machine(
    name="depot",
    initial=Idle(),
    decide=decide,
    evolve=evolve,
    ended=ended,
    vocabulary=machine.Vocabulary(State, Command, Event),
)


def trip_stream(depot: str, trip: int) -> StreamName:
    return stream_name("trip", f"{depot}-{trip}")


def _order(state: State, order: Order) -> Decision:
    if isinstance(state, Done):
        raise errors.Rejected("the depot is closed", hint="open another depot")
    if order.trips < 1 or order.legs < 1 or order.at_once < 1:
        raise errors.Rejected(f"nothing to drive: {order}", hint="order at least one trip and leg")
    event = Ordered(order.depot, order.trips, order.legs, order.at_once)
    busy = evolve(state, event)
    assert isinstance(busy, Busy)
    return _send_next(busy, (event,))


def _return(state: Busy, trip: int) -> Decision:
    event = Returned(trip)
    busy = evolve(state, event)
    assert isinstance(busy, Busy)
    if busy.sent == busy.ordered and not busy.on_road:
        return Decision((event, Closed(busy.ordered)))
    return _send_next(busy, (event,))


def _send_next(state: Busy, events: tuple[Event, ...]) -> Decision:
    """Fill the road from the queue."""
    room = min(state.at_once - len(state.on_road), state.ordered - state.sent)
    trips = range(state.sent + 1, state.sent + 1 + room)
    home = stream_name("depot", state.depot)
    sends = tuple(
        Send(trip_stream(state.depot, trip), Depart(home, trip, state.legs)) for trip in trips
    )
    return Decision((*events, *(Sent(trip) for trip in trips)), sends=sends)
