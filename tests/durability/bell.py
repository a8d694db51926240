"""A machine for these tests: a bell that is wound once and strikes by timers.

          Wind              Strike (last one)
Silent ──────────► Wound ──────────────────────► Still
                   │   ▲
                   └───┘ Strike (sounds, and sets the next timer)

It has what trips and depots lack: timers, and effects that want no answer.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from fairlead.engine import machine
from fairlead.engine.messages import Decision, SetTimer

PAUSE = timedelta(milliseconds=40)


@dataclass(frozen=True, slots=True)
class Wind:
    strikes: int


@dataclass(frozen=True, slots=True)
class Strike:
    number: int


@dataclass(frozen=True, slots=True)
class Wound:
    strikes: int


@dataclass(frozen=True, slots=True)
class Struck:
    number: int


@dataclass(frozen=True, slots=True)
class Sound:
    """Effect: make it heard; nobody answers."""

    number: int


@dataclass(frozen=True, slots=True)
class Chime:
    """Effect: the same in the next version of the program, which the first cannot perform."""

    number: int


@dataclass(frozen=True, slots=True)
class Silent:
    pass


@dataclass(frozen=True, slots=True)
class Ringing:
    strikes: int
    struck: int = 0


@dataclass(frozen=True, slots=True)
class Still:
    strikes: int


Command = Wind | Strike
Event = Wound | Struck
State = Silent | Ringing | Still


def decide(state: State, command: Command, now: datetime) -> Decision:
    match state, command:
        case Silent(), Wind(strikes):
            return Decision((Wound(strikes),), timers=(_next(1, now),))
        case Ringing(strikes, struck), Strike(number) if number == struck + 1:
            timers = (_next(number + 1, now),) if number < strikes else ()
            return Decision((Struck(number),), (Sound(number),), timers=timers)
        case _:
            return Decision()


def evolve(state: State, event: Event) -> State:
    match event:
        case Wound(strikes):
            return Ringing(strikes)
        case Struck(number):
            assert isinstance(state, Ringing)
            return Still(number) if number == state.strikes else Ringing(state.strikes, number)
        case unreachable:
            assert_never(unreachable)


BELL: machine.Machine[State, Command, Event] = machine.Machine(
    name="bell",
    initial=Silent(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Still),
    vocabulary=machine.Vocabulary(State, Command, Event, Sound),
)


def decide_next(state: State, command: Command, now: datetime) -> Decision:
    decision = decide(state, command, now)
    chimes = [Chime(effect.number) for effect in decision.effects if isinstance(effect, Sound)]
    return dataclasses.replace(decision, effects=tuple(chimes))


NEXT_BELL: machine.Machine[State, Command, Event] = dataclasses.replace(
    BELL, decide=decide_next, vocabulary=machine.Vocabulary(State, Command, Event, Sound | Chime)
)


def _next(number: int, now: datetime) -> SetTimer:
    return SetTimer("strike", now + PAUSE, Strike(number))
