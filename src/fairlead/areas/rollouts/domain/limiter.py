"""A limiter's life: so many rollouts at once, the others in the order they came.

A ConfigMap that many workloads read starts all their rollouts in one breath; this lets them
through a few at a time.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from fairlead.areas.rollouts.domain.coordination import Claim, Release, rollout_stream
from fairlead.areas.rollouts.domain.messages import Grant
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send


@dataclass(frozen=True, slots=True)
class Claimed:
    """Event: a rollout stands in line."""

    rollout: str
    cap: int


@dataclass(frozen=True, slots=True)
class Granted:
    """Event: a rollout may begin."""

    rollout: str


@dataclass(frozen=True, slots=True)
class Released:
    """Event: a rollout is out of the line, or over."""

    rollout: str


@dataclass(frozen=True, slots=True)
class Line:
    """State: who is under way, and who waits, in order."""

    cap: int = 1
    under_way: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


Command = Claim | Release
Event = Claimed | Granted | Released


def decide(state: Line, command: Command, _now: datetime) -> Decision:
    match command:
        case Claim(rollout, cap):
            if rollout in state.under_way:
                # It forgot that it was let in, so it is told again.
                return _let_in(state, [Released(rollout), Claimed(rollout, cap)])
            if rollout in state.waiting and cap == state.cap:
                return Decision()
            return _let_in(state, [Claimed(rollout, cap)])
        case Release(rollout):
            if rollout not in (*state.under_way, *state.waiting):
                return Decision()
            return _let_in(state, [Released(rollout)])
        case unreachable:
            assert_never(unreachable)


def evolve(state: Line, event: Event) -> Line:
    match event:
        case Claimed(rollout, cap):
            waiting = state.waiting if rollout in state.waiting else (*state.waiting, rollout)
            return Line(cap, state.under_way, waiting)
        case Granted(rollout):
            waiting = tuple(each for each in state.waiting if each != rollout)
            return Line(state.cap, (*state.under_way, rollout), waiting)
        case Released(rollout):
            under_way = tuple(each for each in state.under_way if each != rollout)
            waiting = tuple(each for each in state.waiting if each != rollout)
            return Line(state.cap, under_way, waiting)
        case unreachable:
            assert_never(unreachable)


LIMITER: machine.Machine[Line, Command, Event] = machine.Machine(
    name="limiter",
    initial=Line(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Line, Command, Event),
)


def _let_in(state: Line, events: list[Event]) -> Decision:
    for event in events:
        state = evolve(state, event)
    room = max(0, state.cap - len(state.under_way))
    first = state.waiting[:room]
    sends = tuple(Send(rollout_stream(rollout), Grant()) for rollout in first)
    return Decision((*events, *(Granted(rollout) for rollout in first)), sends=sends)
