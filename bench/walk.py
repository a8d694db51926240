"""The machine that is timed: a walk of no-op steps, alone, with no parent to crowd at.

          Start          Arrive (last step)
Still ──────────► Afoot ────────────────────► Home
                   │  ▲
                   └──┘ Arrive (asks for the next step)

Its messages are as large as those of the sample trip.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from fairlead.engine import clock, machine
from fairlead.engine.messages import Decision, SetTimer, Withdraw

STEPS = 10


@dataclass(frozen=True, slots=True)
class Start:
    """Command: set out, at once or when the time has come (milliseconds since 1970)."""

    owner: str
    steps: int = STEPS
    not_before: int = 0


@dataclass(frozen=True, slots=True)
class Arrive:
    """Command: a step is behind the walk."""

    step: int


@dataclass(frozen=True, slots=True)
class Started:
    """Event: the walk is under way."""

    owner: str
    steps: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """Event: one more step is behind the walk."""

    step: int


@dataclass(frozen=True, slots=True)
class Step:
    """Effect: ask for a step."""

    step: int


@dataclass(frozen=True, slots=True)
class Spare:
    """Effect: waits behind a step, and is withdrawn before its turn comes."""


@dataclass(frozen=True, slots=True)
class Still:
    """State: nothing has happened yet."""


@dataclass(frozen=True, slots=True)
class Afoot:
    """State: some steps are behind, some ahead."""

    owner: str
    steps: int
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Home:
    """State: the walk is over."""

    steps: int


Command = Start | Arrive
Event = Started | Stepped
State = Still | Afoot | Home


def decide(state: State, command: Command, _now: datetime) -> Decision:
    match state, command:
        case Still(), Start() as start:
            return _start(start)
        case Afoot() as afoot, Arrive(step) if step == afoot.taken + 1:
            return Decision((Stepped(step),), (Step(step + 1),) if step < afoot.steps else ())
        case ((Still() | Afoot() | Home()), (Start() | Arrive())):
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case Started(owner, steps):
            return Afoot(owner, steps)
        case Stepped(step):
            assert isinstance(state, Afoot)
            return Afoot(state.owner, state.steps, step) if step < state.steps else Home(step)
        case unreachable:
            assert_never(unreachable)


def _start(start: Start) -> Decision:
    started = (Started(start.owner, start.steps),)
    if not start.not_before:
        return Decision(started, (Step(1),))
    timer = SetTimer("pause", clock.from_millis(start.not_before), Arrive(1))
    return Decision(started, timers=(timer,))


WALK: machine.Machine[State, Command, Event] = machine.Machine(
    name="walk",
    initial=Still(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Home),
    vocabulary=machine.Vocabulary(State, Command, Event, Step),
)
FOUND = dataclasses.replace(
    WALK, attributes=machine.Attributes({"taken": int}, lambda state: {"taken": _taken(state)})
)
"""The same, found by an attribute that changes with every step: the most that one can cost."""


def _decide_with_spare(state: State, command: Command, now: datetime) -> Decision:
    decision = decide(state, command, now)
    spare = (Spare(),) if decision.effects else ()
    withdraws = (Withdraw(Spare()),) if isinstance(state, Afoot) and decision else ()
    return dataclasses.replace(decision, effects=(*decision.effects, *spare), withdraws=withdraws)


WITHDRAWN = dataclasses.replace(
    WALK,
    decide=_decide_with_spare,
    vocabulary=machine.Vocabulary(State, Command, Event, Step | Spare),
    effects_in_order=True,
)
"""The same, with one effect more at every step that the next step withdraws."""


def _taken(state: State) -> int:
    match state:
        case Still():
            return 0
        case Afoot(taken=taken) | Home(taken):
            return taken
        case unreachable:
            assert_never(unreachable)
