"""A depot's life: queue trips, keep a few on the road, close when the last is back.

        Order             ChildEnded (last one)
Idle ──────────► Busy ──────────────────────────► Done
                 │  ▲
                 └──┘ Order (adds to the queue), ChildEnded (sends the next),
                      Cancel (empties the queue, stops those on the road)
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from fairlead import errors
from fairlead.engine import machine
from fairlead.engine.children import Children, report
from fairlead.engine.messages import Cancel, ChildEnded, Decision, Send, StreamName, stream_name
from fairlead.engine.sample.messages import (
    Cancelled,
    Closed,
    Depart,
    Order,
    Ordered,
    Returned,
    Sent,
)
from fairlead.engine.sample.trip import TRIP, trip_stream


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
    on_road: Children = Children()
    parent: str = ""
    cancelled: str | None = None
    """Why; no trip leaves any more."""


@dataclass(frozen=True, slots=True)
class Done:
    """State: every trip is back."""

    trips: int


Command = Order | ChildEnded | Cancel
Event = Ordered | Cancelled | Sent | Returned | Closed
State = Idle | Busy | Done


def decide(state: State, command: Command, _now: datetime) -> Decision:
    match command:
        case Order():
            return _order(state, command)
        case Cancel(reason) if isinstance(state, Busy) and state.cancelled is None:
            return Decision((Cancelled(reason),), sends=state.on_road.cancel(reason))
        case ChildEnded(trip) if isinstance(state, Busy) and trip in state.on_road:
            return _return(state, trip)
        case Cancel() | ChildEnded():
            # Told twice, or there is nothing to cancel: the trip is back already.
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case Ordered(depot, trips, legs, at_once, parent):
            if isinstance(state, Busy):
                return replace(state, ordered=state.ordered + trips)
            return Busy(depot, legs, at_once, trips, parent=parent)
        case Closed(trips):
            return Done(trips)
        case Sent() | Returned() | Cancelled():
            assert isinstance(state, Busy)
            return _busy(state, event)
        case unreachable:
            assert_never(unreachable)


def ended(state: State) -> bool:
    return isinstance(state, Done)


def attributes(state: State) -> dict[str, machine.AttributeValue]:
    """What a depot is found by."""
    match state:
        case Idle():
            return {"open": True, "trips": 0}
        case Busy(ordered=trips):
            return {"open": True, "trips": trips}
        case Done(trips):
            return {"open": False, "trips": trips}
        case unreachable:
            assert_never(unreachable)


DEPOT: machine.Machine[State, Command, Event] = machine.Machine(
    name="depot",
    initial=Idle(),
    decide=decide,
    evolve=evolve,
    ended=ended,
    vocabulary=machine.Vocabulary(State, Command, Event, verbs=Order | Cancel),
    attributes=machine.Attributes({"open": bool, "trips": int}, attributes),
    children=(TRIP.name,),
)


def _busy(state: Busy, event: Sent | Returned | Cancelled) -> Busy:
    match event:
        case Sent(trip):
            on_road = state.on_road.started(trip_stream(state.depot, trip))
            return replace(state, sent=trip, on_road=on_road)
        case Returned(trip):
            return replace(state, on_road=state.on_road.ended(trip))
        case Cancelled(reason):
            return replace(state, ordered=state.sent, cancelled=reason)
        case unreachable:
            assert_never(unreachable)


def _order(state: State, order: Order) -> Decision:
    if isinstance(state, Done) or (isinstance(state, Busy) and state.cancelled is not None):
        raise errors.Rejected("the depot is closed", hint="open another depot")
    if order.trips < 1 or order.legs < 1 or order.at_once < 1:
        raise errors.Rejected(f"nothing to drive: {order}", hint="order at least one trip and leg")
    event = Ordered(order.depot, order.trips, order.legs, order.at_once, order.parent)
    busy = evolve(state, event)
    assert isinstance(busy, Busy)
    return _send_next(busy, (event,))


def _return(state: Busy, trip: StreamName) -> Decision:
    event = Returned(trip)
    busy = evolve(state, event)
    assert isinstance(busy, Busy)
    if busy.sent < busy.ordered or busy.on_road:
        return _send_next(busy, (event,))
    depot, whole = stream_name("depot", busy.depot), busy.cancelled is None
    told = report(busy.parent, depot, succeeded=whole, reason=busy.cancelled or "")
    return Decision((event, Closed(busy.ordered)), sends=told)


def _send_next(state: Busy, events: tuple[Event, ...]) -> Decision:
    """Fill the road from the queue."""
    room = min(state.at_once - len(state.on_road.running), state.ordered - state.sent)
    trips = range(state.sent + 1, state.sent + 1 + room)
    home = stream_name("depot", state.depot)
    sends = tuple(
        Send(trip_stream(state.depot, trip), Depart(home, trip, state.legs)) for trip in trips
    )
    return Decision((*events, *(Sent(trip) for trip in trips)), sends=sends)
