"""A group's life: all members pass each gate together, or all go home together."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from fairlead.domain.rollouts.bonds import Arrive, Leave, rollout_stream
from fairlead.domain.rollouts.messages import GoTogether, PartWays
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send


@dataclass(frozen=True, slots=True)
class Arrived:
    """Event: a member waits at a gate."""

    member: str
    gate: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Event: everybody was there; all go on."""

    gate: str


@dataclass(frozen=True, slots=True)
class Parted:
    """Event: a member went home, and takes the others with it."""

    member: str
    why: str


@dataclass(frozen=True, slots=True)
class Gathering:
    """State: who waits at which gate."""

    arrived: dict[str, tuple[str, ...]] = field(default_factory=dict)


Command = Arrive | Leave
Event = Arrived | Passed | Parted


def decide(state: Gathering, command: Command, _now: datetime) -> Decision:
    match command:
        case Arrive(member, gate, members):
            here = {*state.arrived.get(gate, ()), member}
            if not here.issuperset(members):
                known = member in state.arrived.get(gate, ())
                return Decision() if known else Decision((Arrived(member, gate),))
            sends = tuple(Send(rollout_stream(each), GoTogether(gate)) for each in members)
            return Decision((Arrived(member, gate), Passed(gate)), sends=sends)
        case Leave(member, why, members):
            told = f"{member} of the group went home: {why}"
            others = (each for each in members if each != member)
            sends = tuple(Send(rollout_stream(each), PartWays(told)) for each in others)
            return Decision((Parted(member, why),), sends=sends)
        case unreachable:
            assert_never(unreachable)


def evolve(state: Gathering, event: Event) -> Gathering:
    match event:
        case Arrived(member, gate):
            here = tuple(dict.fromkeys((*state.arrived.get(gate, ()), member)))
            return Gathering({**state.arrived, gate: here})
        case Passed(gate):
            return Gathering({each: who for each, who in state.arrived.items() if each != gate})
        case Parted():
            return Gathering()
        case unreachable:
            assert_never(unreachable)


GROUP: machine.Machine[Gathering, Command, Event] = machine.Machine(
    name="group",
    initial=Gathering(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Gathering, Command, Event),
)
