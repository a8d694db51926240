"""A lamp's life: lit, then burnt out; whoever had it lit hears of its end.

       Light       Burned, Delete, Cancel
Dark ─────────► Lit ──────────────────────► Out
"""

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from fairlead.engine import machine
from fairlead.engine.children import report
from fairlead.engine.messages import Cancel, Decision, Send, StreamName, parse_stream
from fairlead.kubernetes.messages import Condition, PublishStatus, Subject


@dataclass(frozen=True, slots=True)
class Light:
    """Command: shine with so many watts; an object or a parent may stand behind it."""

    name: str
    watts: int
    subject: Subject | None = None
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Burned:
    """Command, the answer to Shine: it is over."""

    watts: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Command: the object is gone."""


@dataclass(frozen=True, slots=True)
class Lit:
    """Event: somebody wants light. State: it shines."""

    name: str
    watts: int
    parent: str = ""


@dataclass(frozen=True, slots=True)
class WentOut:
    """Event: it is dark again."""

    watts: int


@dataclass(frozen=True, slots=True)
class Dark:
    """State: never lit."""


@dataclass(frozen=True, slots=True)
class Out:
    """State: burnt out."""

    watts: int


@dataclass(frozen=True, slots=True)
class Shine:
    """Effect: let it shine."""

    name: str
    watts: int


State = Dark | Lit | Out
Command = Light | Burned | Delete | Cancel
Event = Lit | WentOut


def decide(state: State, command: Command, _now: datetime) -> Decision:
    match state, command:
        case Dark(), Light(name, watts, subject, parent):
            lit = Lit(name, watts, parent)
            if subject is not None:
                return Decision((lit,), (_status(subject, watts),))
            return Decision((lit,), (Shine(name, watts),))
        case Lit(), Burned(watts):
            told = f"shone with {watts} W"
            return Decision((WentOut(watts),), sends=_told(state, told, succeeded=watts > 0))
        case Lit(), Cancel(reason):
            return Decision((WentOut(0),), sends=_told(state, reason, succeeded=False))
        case Lit(), Delete():
            return Decision((WentOut(0),))
        case ((Dark() | Lit() | Out()), (Light() | Burned() | Delete() | Cancel())):
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(_state: State, event: Event) -> State:
    match event:
        case Lit():
            return event
        case WentOut(watts):
            return Out(watts)
        case unreachable:
            assert_never(unreachable)


LAMP: machine.Machine[State, Command, Event] = machine.Machine(
    name="lamp",
    initial=Dark(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Out),
    vocabulary=machine.Vocabulary(State, Command, Event, Shine | PublishStatus, Light),
    attributes=machine.Attributes({"watts": int}, lambda state: {"watts": _watts(state)}),
)


def stream(name: str) -> StreamName:
    return parse_stream(f"lamp/{name}")


def _watts(state: State) -> int:
    return 0 if isinstance(state, Dark) else state.watts


def _told(state: Lit, reason: str, *, succeeded: bool) -> tuple[Send, ...]:
    return report(state.parent, stream(state.name), succeeded=succeeded, reason=reason)


def _status(subject: Subject, watts: int) -> PublishStatus:
    ready = Condition("Ready", status=True, reason="Lit", message=f"shines with {watts} W")
    return PublishStatus(subject, 1, 1, {"watts": watts}, (ready,))
