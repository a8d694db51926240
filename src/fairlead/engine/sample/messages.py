"""What depots and trips say: commands in the imperative, events in the past tense."""

from dataclasses import dataclass

from fairlead.engine.messages import StreamName

LEGS = 10


@dataclass(frozen=True, slots=True)
class Order:
    """Command to a depot: queue so many trips."""

    depot: str
    trips: int
    legs: int = LEGS
    at_once: int = 4
    parent: str = ""
    """Who hears when the depot closes."""


@dataclass(frozen=True, slots=True)
class Depart:
    """Command to a trip, from its depot: set out, and report there."""

    depot: str
    trip: int
    legs: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """Command to a trip: the road says that a leg is behind it."""

    leg: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """Event: trips were queued."""

    depot: str
    trips: int
    legs: int
    at_once: int
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Event: no further trip leaves the depot, and those on the road were told to stop."""

    reason: str


@dataclass(frozen=True, slots=True)
class Sent:
    """Event: a trip left the depot."""

    trip: int


@dataclass(frozen=True, slots=True)
class Returned:
    """Event: a trip is back, or was stopped on its way."""

    trip: StreamName


@dataclass(frozen=True, slots=True)
class Closed:
    """Event: every trip is back and none is queued."""

    trips: int


@dataclass(frozen=True, slots=True)
class Departed:
    """Event: the trip is on its way."""

    depot: str
    trip: int
    legs: int


@dataclass(frozen=True, slots=True)
class LegDriven:
    """Event: one more leg is behind the trip."""

    leg: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """Event: all legs are behind the trip."""

    legs: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """Event, and state: the trip ended on its way."""

    reason: str


@dataclass(frozen=True, slots=True)
class DriveLeg:
    """Effect: ask the road for a leg."""

    leg: int
