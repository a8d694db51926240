"""Depot and trip in tables: every state with every command, and what comes of it."""

from typing import Any

import pytest

from fairlead import errors
from fairlead._sample import depot, trip
from fairlead._sample.messages import (
    Arrive,
    Arrived,
    Closed,
    Depart,
    Departed,
    DriveLeg,
    LegDriven,
    Order,
    Ordered,
    Return,
    Returned,
    Sent,
)
from fairlead.engine import machine
from fairlead.engine.messages import Send, stream_name
from fairlead.engine.testing import given

HOME = "depot/a"
IDLE: tuple[object, ...] = ()
BUSY = (Ordered("a", 3, 2, 1), Sent(1))
LAST = (Ordered("a", 1, 2, 1), Sent(1))
DONE = (*LAST, Returned(1), Closed(1))
PARKED: tuple[object, ...] = ()
DRIVING = (Departed(HOME, 1, 2),)
FINISHING = (*DRIVING, LegDriven(1))
AT_HOME = (*FINISHING, LegDriven(2), Arrived(2))


def departs(number: int, legs: int = 2) -> Send:
    return Send(depot.trip_stream("a", number), Depart(HOME, number, legs))


ALL_THREE = (departs(1), departs(2), departs(3))


@pytest.mark.parametrize(
    ("before", "command", "events", "sends"),
    [
        (IDLE, Order("a", 3, 2), (Ordered("a", 3, 2, 4), Sent(1), Sent(2), Sent(3)), ALL_THREE),
        (IDLE, Return(1), (), ()),
        (BUSY, Order("a", 2, 2, 1), (Ordered("a", 2, 2, 1),), ()),
        (BUSY, Return(1), (Returned(1), Sent(2)), (departs(2),)),
        (BUSY, Return(2), (), ()),
        (LAST, Return(1), (Returned(1), Closed(1)), ()),
        (DONE, Return(1), (), ()),
    ],
)  # fmt: skip
def test_depot(
    before: tuple[object, ...],
    command: object,
    events: tuple[object, ...],
    sends: tuple[Send, ...],
) -> None:
    given(depot.DEPOT, *before).when(command).then(*events).asks().sends(*sends)


def test_a_closed_depot_takes_no_order() -> None:
    with pytest.raises(errors.Rejected, match="the depot is closed"):
        given(depot.DEPOT, *DONE).when(Order("a", 1))


@pytest.mark.parametrize("order", [Order("a", 0), Order("a", 1, 0), Order("a", 1, 1, 0)])
def test_an_order_for_nothing_is_refused(order: Order) -> None:
    with pytest.raises(errors.Rejected, match="nothing to drive"):
        given(depot.DEPOT).when(order)


def test_a_later_order_joins_the_queue_of_the_first() -> None:
    after = given(depot.DEPOT, *BUSY).when(Order("a", 2, 9, 9))

    assert after.state == depot.Busy("a", 2, 1, ordered=5, sent=1, on_road=(1,))


REPORT = Send(stream_name("depot", "a"), Return(1))


@pytest.mark.parametrize(
    ("before", "command", "events", "effects", "sends"),
    [
        (PARKED, Depart(HOME, 1, 2), (Departed(HOME, 1, 2),), (DriveLeg(1),), ()),
        (PARKED, Arrive(1), (), (), ()),
        (DRIVING, Depart(HOME, 1, 2), (), (), ()),
        (DRIVING, Arrive(1), (LegDriven(1),), (DriveLeg(2),), ()),
        (DRIVING, Arrive(2), (), (), ()),
        (FINISHING, Arrive(1), (), (), ()),
        (FINISHING, Arrive(2), (LegDriven(2), Arrived(2)), (), (REPORT,)),
        (AT_HOME, Depart(HOME, 1, 2), (), (), ()),
        (AT_HOME, Arrive(2), (), (), ()),
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
    [(depot.DEPOT, (IDLE, BUSY, DONE)), (trip.TRIP, (PARKED, DRIVING, AT_HOME))],
)
def test_only_the_last_state_is_the_end(
    machine_: machine.AnyMachine, lives: tuple[tuple[Any, ...], ...]
) -> None:
    ended = [machine_.ended(given(machine_, *life).state) for life in lives]

    assert ended == [False, False, True]


@pytest.mark.parametrize("machine_", [depot.DEPOT, trip.TRIP])
def test_the_tables_above_know_every_state_and_command(machine_: machine.AnyMachine) -> None:
    lives = {"depot": (IDLE, BUSY, DONE), "trip": (PARKED, DRIVING, AT_HOME)}[machine_.name]
    states = {type(given(machine_, *life).state) for life in lives}

    assert states == set(machine.members(machine_.vocabulary.states))
