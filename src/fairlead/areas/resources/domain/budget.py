"""Requests that an API lets a subscription have, shared by all workers: so many an hour.

A worker draws a handful at a time and spends them by itself, so that a read costs no commit. What
the API refuses in spite of that (others ask it too) pauses all of them.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

from fairlead.engine import machine
from fairlead.engine.messages import Decision, StreamName, stream_name

Kind = Literal["reads", "writes"]
MACHINE = "budget"
_HOUR = dt.timedelta(hours=1)
_BURSTS = 12
"""What was not used is kept for five minutes."""

_DRAWS = 20
_MOST_WORKERS = 64


@dataclass(frozen=True, slots=True)
class Draw:
    """Command: give this worker some more, of so many an hour."""

    worker: str
    hourly: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Command: the API wants to be left alone until then."""

    until: dt.datetime


@dataclass(frozen=True, slots=True)
class Drawn:
    """Event: a worker may send so many; 0: none for now."""

    worker: str
    granted: int
    left: float
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Paused:
    """Event: nobody sends anything until then."""

    until: dt.datetime


@dataclass(frozen=True, slots=True)
class Purse:
    """State: what is left, as of then."""

    left: float = 0.0
    at: dt.datetime | None = None
    until: dt.datetime | None = None
    granted: Mapping[str, int] = field(default_factory=dict)
    """Of the last draw of each worker."""


Command = Draw | Pause
Event = Drawn | Paused


def stream(place: str, subscription: str, kind: Kind) -> StreamName:
    digest = hashlib.sha256(f"{place} {subscription.lower()}".encode()).hexdigest()[:24]
    return stream_name(MACHINE, f"{digest}-{kind}")


def handful(hourly: int) -> int:
    return max(1, hourly // _BURSTS // _DRAWS)


def next_draw(purse: Purse, hourly: int, now: dt.datetime) -> dt.timedelta:
    """How long until there is something again."""
    paused = max(purse.until - now, dt.timedelta()) if purse.until else dt.timedelta()
    return max(paused, handful(hourly) * _HOUR / max(hourly, 1))


def decide(state: Purse, command: Command, now: dt.datetime) -> Decision:
    match command:
        case Pause(until):
            if state.until is not None and until <= state.until:
                return Decision()
            return Decision((Paused(until),))
        case Draw(worker, hourly):
            left = _left(state, hourly, now)
            paused = state.until is not None and now < state.until
            granted = 0 if paused else min(handful(hourly), int(left))
            if not granted and not state.granted.get(worker):
                return Decision()
            return Decision((Drawn(worker, granted, left - granted, now),))
        case unreachable:
            assert_never(unreachable)


def evolve(state: Purse, event: Event) -> Purse:
    match event:
        case Drawn(worker, granted, left, at):
            others = [each for each in state.granted.items() if each[0] != worker]
            kept = dict([*others[-_MOST_WORKERS + 1 :], (worker, granted)])
            return replace(state, left=left, at=at, granted=kept)
        case Paused(until):
            return replace(state, until=until)
        case unreachable:
            assert_never(unreachable)


def _left(state: Purse, hourly: int, now: dt.datetime) -> float:
    burst = max(1.0, hourly / _BURSTS)
    if state.at is None:
        return burst
    return min(burst, state.left + max(now - state.at, dt.timedelta()) / _HOUR * hourly)


BUDGET: machine.Machine[Purse, Command, Event] = machine.Machine(
    name=MACHINE,
    initial=Purse(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Purse, Command, Event),
)
