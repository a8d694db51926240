"""Machines that do what the samples do not: order, timers, sends both ways, and faults."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from fairlead import errors
from fairlead.engine import machine
from fairlead.engine.messages import CancelTimer, Decision, Send, SetTimer, StreamName


@dataclass(frozen=True, slots=True)
class Count:
    """State: a sum, closed at a hundred."""

    total: int = 0


@dataclass(frozen=True, slots=True)
class Add:
    """Command: add to the sum; zero changes nothing."""

    number: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Misbehave:
    """Command: do what no machine should."""

    how: str


@dataclass(frozen=True, slots=True)
class Added:
    """Event: the sum grew."""

    number: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Spoiled:
    """Event: one that cannot be evolved."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Effect: asked for without a reason."""


def _count(state: Count, command: Add | Misbehave, _now: datetime) -> Decision:
    match command:
        case Add(0):
            return Decision()
        case Add(number, note):
            return Decision((Added(number, note),))
        case Misbehave("raise"):
            raise ZeroDivisionError("the machine is broken")
        case Misbehave("silent"):
            return Decision(effects=(Nothing(),))
        case Misbehave("spoil"):
            return Decision((Added(1), Spoiled()))
        case Misbehave("stranger"):
            return Decision((Add(1),))
        case Misbehave(how):
            raise errors.Rejected(f"will not do: {how}", hint="ask for something else")
        case unreachable:
            assert_never(unreachable)


def _counted(state: Count, event: Added | Spoiled) -> Count:
    match event:
        case Added(number):
            return Count(state.total + number)
        case Spoiled():
            raise ValueError("spoiled")
        case unreachable:
            assert_never(unreachable)


COUNTER: machine.Machine[Count, Add | Misbehave, Added | Spoiled] = machine.Machine(
    name="counter",
    initial=Count(),
    decide=_count,
    evolve=_counted,
    ended=lambda state: state.total >= 100,
    vocabulary=machine.Vocabulary(Count, Add | Misbehave, Added | Spoiled, Nothing),
)


@dataclass(frozen=True, slots=True)
class Cargo:
    """State: what is still to be carried."""

    waiting: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """Command: carry these."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unload:
    """Command: this piece has been carried."""

    piece: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """Event: pieces to carry."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Event: a piece was carried."""

    piece: str


@dataclass(frozen=True, slots=True)
class Carry:
    """Effect: carry a piece."""

    piece: str


def _carry(state: Cargo, command: Load | Unload, _now: datetime) -> Decision:
    match command:
        case Load(pieces):
            return Decision((Loaded(pieces),), tuple(Carry(piece) for piece in pieces))
        case Unload("refused"):
            raise errors.Rejected("not undone: refused", hint="carry something else")
        case Unload("broken"):
            raise ZeroDivisionError("the machine is broken")
        case Unload(piece) if piece in state.waiting:
            return Decision((Unloaded(piece),))
        case Unload():
            return Decision()
        case unreachable:
            assert_never(unreachable)


def _carried(state: Cargo, event: Loaded | Unloaded) -> Cargo:
    match event:
        case Loaded(pieces):
            return replace(state, waiting=(*state.waiting, *pieces))
        case Unloaded(piece):
            waiting = tuple(each for each in state.waiting if each != piece)
            return Cargo(waiting, (*state.carried, piece))
        case unreachable:
            assert_never(unreachable)


def _carrier(name: str, *, in_order: bool) -> machine.Machine[Any, Any, Any]:
    return machine.Machine(
        name=name,
        initial=Cargo(),
        decide=_carry,
        evolve=_carried,
        ended=lambda state: bool(state.carried) and not state.waiting,
        effects_in_order=in_order,
        vocabulary=machine.Vocabulary(Cargo, Load | Unload, Loaded | Unloaded, Carry),
    )


FAN = _carrier("fan", in_order=False)
LANE = _carrier("lane", in_order=True)


@dataclass(frozen=True, slots=True)
class Bell:
    """State: how often it rang, and when last."""

    rings: int = 0
    snoozes: int = 0
    closed: bool = False


@dataclass(frozen=True, slots=True)
class SetAlarm:
    """Command: ring at a time, and so often again, a second apart."""

    due: datetime
    snoozes: int = 0
    name: str = "bell"
    stubborn: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """Command: do not ring."""

    name: str = "bell"


@dataclass(frozen=True, slots=True)
class Ring:
    """Command, from the timer: it is time."""

    name: str = "bell"
    stubborn: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Command: no more bells, whatever is set."""


@dataclass(frozen=True, slots=True)
class AlarmSet:
    """Event: an alarm was set."""

    snoozes: int


@dataclass(frozen=True, slots=True)
class Silenced:
    """Event: an alarm was cancelled."""


@dataclass(frozen=True, slots=True)
class Rang:
    """Event: it rang."""

    at: datetime


@dataclass(frozen=True, slots=True)
class BellClosed:
    """Event: it will ring no more."""


_BellCommand = SetAlarm | Silence | Ring | Close
_BellEvent = AlarmSet | Silenced | Rang | BellClosed


def _ring(state: Bell, command: _BellCommand, now: datetime) -> Decision:
    match command:
        case SetAlarm(due, snoozes, name, stubborn):
            return Decision(
                (AlarmSet(snoozes),), timers=(SetTimer(name, due, Ring(name, stubborn)),)
            )
        case Silence(name):
            return Decision((Silenced(),), timers=(CancelTimer(name),))
        case Ring(_, stubborn=True):
            raise errors.Rejected("will not ring: stubborn", hint="set another alarm")
        case Ring(name) if state.snoozes:
            again = SetTimer(name, now + timedelta(seconds=1), Ring(name))
            return Decision((Rang(now),), timers=(again,))
        case Ring():
            return Decision((Rang(now),))
        case Close():
            # Sets one in the moment it ends: it must not outlive the stream.
            return Decision((BellClosed(),), timers=(SetTimer("late", now, Ring("late")),))
        case unreachable:
            assert_never(unreachable)


def _rung(state: Bell, event: _BellEvent) -> Bell:
    match event:
        case AlarmSet(snoozes):
            return replace(state, snoozes=snoozes)
        case Silenced():
            return replace(state, snoozes=0)
        case Rang():
            return replace(state, rings=state.rings + 1, snoozes=max(0, state.snoozes - 1))
        case BellClosed():
            return replace(state, closed=True)
        case unreachable:
            assert_never(unreachable)


BELL: machine.Machine[Bell, _BellCommand, _BellEvent] = machine.Machine(
    name="bell",
    initial=Bell(),
    decide=_ring,
    evolve=_rung,
    ended=lambda state: state.closed,
    vocabulary=machine.Vocabulary(Bell, _BellCommand, _BellEvent),
)


@dataclass(frozen=True, slots=True)
class Heard:
    """State: how many calls came in."""

    calls: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """Command: pass the ball to a partner, so many times; below zero without end."""

    here: StreamName
    partner: StreamName
    times: int
    fail_at: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Called:
    """Event: a call came in."""

    times: int


def _call(state: Heard, command: Call, now: datetime) -> Decision:
    if command.times == command.fail_at:
        raise errors.Rejected("dropped the ball", hint="throw it again")
    back = Call(command.partner, command.here, command.times - 1, command.fail_at)
    sends = (Send(command.partner, back),) if command.times else ()
    timer = SetTimer("patience", now + timedelta(hours=1), command)
    return Decision((Called(command.times),), (Nothing(),), sends, (timer,))


ECHO: machine.Machine[Heard, Call, Called] = machine.Machine(
    name="echo",
    initial=Heard(),
    decide=_call,
    evolve=lambda state, _: Heard(state.calls + 1),
    vocabulary=machine.Vocabulary(Heard, Call, Called, Nothing),
)


@dataclass(frozen=True, slots=True)
class Note:
    """A word in its third shape; the first had one text, the second a list of lines."""

    title: str
    lines: tuple[str, ...]


def _note_from_1(data: dict[str, Any]) -> dict[str, Any]:
    return {"lines": data["text"].split("\n")}


def _note_from_2(data: dict[str, Any]) -> dict[str, Any]:
    return {"title": data["lines"][0], "lines": data["lines"][1:]}


NOTEBOOK: machine.Machine[Note, Note, Note] = machine.Machine(
    name="notebook",
    initial=Note("", ()),
    decide=lambda _state, command, _now: Decision((command,)),
    evolve=lambda _, event: event,
    vocabulary=machine.Vocabulary(Note, Note, Note),
    versions={Note: 3},
    upcasters={("Note", 1): _note_from_1, ("Note", 2): _note_from_2},
)

ALL: tuple[machine.AnyMachine, ...] = (COUNTER, FAN, LANE, BELL, ECHO, NOTEBOOK)
ORDERED = ("lane",)
