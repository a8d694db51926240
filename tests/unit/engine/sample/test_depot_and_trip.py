"""Depot and trip in tables: every state with every command, and what comes of it."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.engine import machine
from fairlead.engine.children import Children
from fairlead.engine.messages import Cancel, ChildEnded, Send, stream_name
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import (
    Arrive,
    Arrived,
    Cancelled,
    Closed,
    Depart,
    Departed,
    DriveLeg,
    LegDriven,
    Order,
    Ordered,
    Returned,
    Sent,
    Stopped,
)
from fairlead.engine.testing import given

HOME = "depot/a"
IDLE: tuple[object, ...] = ()
BUSY = (Ordered("a", 3, 2, 1), Sent(1))
LAST = (Ordered("a", 1, 2, 1), Sent(1))
FIRST, SECOND = trip.trip_stream("a", 1), trip.trip_stream("a", 2)
DONE = (*LAST, Returned(FIRST), Closed(1))
CLOSING = (Ordered("a", 3, 2, 2, "network/n"), Sent(1), Sent(2), Cancelled("no fuel"))
PARKED: tuple[object, ...] = ()
DRIVING = (Departed(HOME, 1, 2),)
FINISHING = (*DRIVING, LegDriven(1))
PRIMARY_ONLY = (*FINISHING, LegDriven(2), Arrived(2))
STOPPED = (*DRIVING, Stopped("no fuel"))


def departs(number: int, legs: int = 2) -> Send:
    return Send(trip.trip_stream("a", number), Depart(HOME, number, legs))


ALL_THREE = (departs(1), departs(2), departs(3))


@pytest.mark.parametrize(
    ("before", "command", "events", "sends"),
    [
        (IDLE, Order("a", 3, 2), (Ordered("a", 3, 2, 4), Sent(1), Sent(2), Sent(3)), ALL_THREE),
        (IDLE, ChildEnded(FIRST, succeeded=True), (), ()),
        (IDLE, Cancel("no fuel"), (), ()),
        (BUSY, Order("a", 2, 2, 1), (Ordered("a", 2, 2, 1),), ()),
        (BUSY, ChildEnded(FIRST, succeeded=True), (Returned(FIRST), Sent(2)), (departs(2),)),
        (BUSY, ChildEnded(SECOND, succeeded=True), (), ()),
        (BUSY, Cancel("no fuel"), (Cancelled("no fuel"),), (Send(FIRST, Cancel("no fuel")),)),
        (LAST, ChildEnded(FIRST, succeeded=True), (Returned(FIRST), Closed(1)), ()),
        (DONE, ChildEnded(FIRST, succeeded=True), (), ()),
        (DONE, Cancel("no fuel"), (), ()),
        (CLOSING, Cancel("again"), (), ()),
        (CLOSING, ChildEnded(SECOND, succeeded=False), (Returned(SECOND),), ()),
    ],
)  # fmt: skip
def test_depot(
    before: tuple[object, ...],
    command: object,
    events: tuple[object, ...],
    sends: tuple[Send, ...],
) -> None:
    given(depot.DEPOT, *before).when(command).then(*events).asks().sends(*sends)


@pytest.mark.parametrize("before", [DONE, CLOSING])
def test_a_closed_depot_takes_no_order(before: tuple[object, ...]) -> None:
    with pytest.raises(errors.Rejected, match="the depot is closed"):
        given(depot.DEPOT, *before).when(Order("a", 1))


def test_a_cancelled_depot_closes_with_its_last_trip_and_tells_its_parent() -> None:
    last = given(depot.DEPOT, *CLOSING, Returned(FIRST)).when(ChildEnded(SECOND, succeeded=False))

    heard = ChildEnded(stream_name("depot", "a"), succeeded=False, reason="no fuel")
    last.then(Returned(SECOND), Closed(2)).sends(Send(stream_name("network", "n"), heard))


@pytest.mark.parametrize("order", [Order("a", 0), Order("a", 1, 0), Order("a", 1, 1, 0)])
def test_an_order_for_nothing_is_refused(order: Order) -> None:
    with pytest.raises(errors.Rejected, match="nothing to drive"):
        given(depot.DEPOT).when(order)


def test_a_later_order_joins_the_queue_of_the_first() -> None:
    after = given(depot.DEPOT, *BUSY).when(Order("a", 2, 9, 9))

    assert after.state == depot.Busy("a", 2, 1, ordered=5, sent=1, on_road=Children((FIRST,)))


REPORT = Send(stream_name("depot", "a"), ChildEnded(FIRST, succeeded=True))
FAILED = Send(stream_name("depot", "a"), ChildEnded(FIRST, succeeded=False, reason="no fuel"))


@pytest.mark.parametrize(
    ("before", "command", "events", "effects", "sends"),
    [
        (PARKED, Depart(HOME, 1, 2), (Departed(HOME, 1, 2),), (DriveLeg(1),), ()),
        (PARKED, Arrive(1), (), (), ()),
        (PARKED, Cancel("no fuel"), (), (), ()),
        (DRIVING, Depart(HOME, 1, 2), (), (), ()),
        (DRIVING, Arrive(1), (LegDriven(1),), (DriveLeg(2),), ()),
        (DRIVING, Arrive(2), (), (), ()),
        (FINISHING, Arrive(1), (), (), ()),
        (FINISHING, Arrive(2), (LegDriven(2), Arrived(2)), (), (REPORT,)),
        (PRIMARY_ONLY, Depart(HOME, 1, 2), (), (), ()),
        (PRIMARY_ONLY, Arrive(2), (), (), ()),
        (PRIMARY_ONLY, Cancel("no fuel"), (), (), ()),
        (DRIVING, Cancel("no fuel"), (Stopped("no fuel"),), (), (FAILED,)),
        (STOPPED, Cancel("again"), (), (), ()),
        (STOPPED, Arrive(1), (), (), ()),
        (STOPPED, Depart(HOME, 1, 2), (), (), ()),
    ],
)
def test_trip(
    before: tuple[object, ...],
    command: object,
    events: tuple[object, ...],
    effects: tuple[object, ...],
    sends: tuple[Send, ...],
) -> None:
    given(trip.TRIP, *before).when(command).then(*events).asks(*effects).sends(*sends)


@pytest.mark.parametrize(
    ("machine_", "lives"),
    [
        (depot.DEPOT, (IDLE, BUSY, CLOSING, DONE)),
        (trip.TRIP, (PARKED, DRIVING, PRIMARY_ONLY, STOPPED)),
    ],
)
def test_only_the_last_state_is_the_end(
    machine_: machine.AnyMachine, lives: tuple[tuple[Any, ...], ...]
) -> None:
    ended = [machine_.ended(given(machine_, *life).state) for life in lives]

    assert ended == [False, False, machine_ is trip.TRIP, True]


@pytest.mark.parametrize("machine_", [depot.DEPOT, trip.TRIP])
def test_the_tables_above_know_every_state_and_command(machine_: machine.AnyMachine) -> None:
    trips = (PARKED, DRIVING, PRIMARY_ONLY, STOPPED)
    lives = {"depot": (IDLE, BUSY, DONE), "trip": trips}[machine_.name]
    states = {type(given(machine_, *life).state) for life in lives}

    assert states == set(machine.members(machine_.vocabulary.states))
