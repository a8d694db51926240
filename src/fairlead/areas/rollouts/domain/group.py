"""A group's life: members with a rollout pass each gate together, or roll back together.

A member without a change has no rollout, and holds nobody up. But its change may be on its way
(objects are written one after the other, and after a loss of the store all of them come back one
by one), so those who have arrived wait for it a moment.

Members are known by the names that people gave them; a rollout that is called otherwise (on
Kubernetes its name holds a UID) says so when it joins, and is answered under that name.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from fairlead.areas.rollouts.domain.coordination import (
    FULL,
    Arrive,
    Excuse,
    Join,
    Leave,
    rollout_stream,
)
from fairlead.areas.rollouts.domain.messages import LeaveGroup, ProceedTogether
from fairlead.engine import machine
from fairlead.engine.messages import Decision, Send, SetTimer, StreamName

MOMENT = dt.timedelta(minutes=1)
WAKE = "wake"


@dataclass(frozen=True, slots=True)
class Joined:
    """Event: a member is under way; `kept` where it has passed the first gate already."""

    member: str
    rollout: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Arrived:
    """Event: a member waits at a gate."""

    member: str
    gate: str


@dataclass(frozen=True, slots=True)
class Awaited:
    """Event: all who are under way are at this gate; others have a moment to come."""

    gate: str
    until: dt.datetime


@dataclass(frozen=True, slots=True)
class Passed:
    """Event: these were there, and go on."""

    gate: str
    party: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Excused:
    """Event: a member goes its own way; the others go on without it."""

    member: str


@dataclass(frozen=True, slots=True)
class LeftTogether:
    """Event: a member rolled back, and its party with it."""

    member: str
    why: str


@dataclass(frozen=True, slots=True)
class WaitOver:
    """Command: the moment is over."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """State: who is under way, who waits at which gate, and who is bound together."""

    arrived: dict[str, tuple[str, ...]] = field(default_factory=dict)
    under_way: tuple[str, ...] = ()
    """Those who have not passed the first gate."""

    parties: tuple[tuple[str, ...], ...] = ()
    """Those who passed it together, and are kept together."""

    until: Mapping[str, dt.datetime] = field(default_factory=dict)
    rollouts: Mapping[str, str] = field(default_factory=dict)
    """How the rollouts of members are called that go by another name."""

    def stream(self, member: str) -> StreamName:
        return rollout_stream(self.rollouts.get(member, member))

    def party(self, member: str) -> tuple[str, ...]:
        """Everybody who shares this member's fate, itself among them."""
        found = (party for party in self.parties if member in party)
        return next(found, tuple(dict.fromkeys((*self.under_way, member))))


Command = Join | Arrive | Excuse | Leave | WaitOver
Event = Joined | Arrived | Awaited | Passed | Excused | LeftTogether


def decide(state: Gathering, command: Command, now: dt.datetime) -> Decision:
    match command:
        case Join(member, rollout, kept):
            other = rollout if rollout != member else ""
            new = not _knows(state, member) or state.rollouts.get(member, "") != other
            return _settled(state, (Joined(member, other, kept),) if new else (), now)
        case Arrive(member, gate, members):
            joined = () if _knows(state, member) else (Joined(member, kept=gate != FULL),)
            known = member in state.arrived.get(gate, ())
            return _settled(state, () if known else (*joined, Arrived(member, gate)), now, members)
        case Excuse(member):
            return _settled(state, (Excused(member),) if _knows(state, member) else (), now)
        case Leave(member, why):
            # One that is not known has left already: it rolled back with another, or alone.
            return _part(state, member, why) if _knows(state, member) else Decision()
        case WaitOver():
            return _settled(state, (), now, ticked=True)
        case unreachable:
            assert_never(unreachable)


def evolve(state: Gathering, event: Event) -> Gathering:
    match event:
        case Joined():
            return _with(state, event)
        case Arrived(member, gate):
            here = tuple(dict.fromkeys((*state.arrived.get(gate, ()), member)))
            return replace(state, arrived={**state.arrived, gate: here})
        case Awaited(gate, until):
            return replace(state, until={**state.until, gate: until})
        case Passed():
            return _passed(state, event)
        case Excused(member):
            return _without(state, (member,))
        case LeftTogether(member):
            return _without(state, state.party(member))
        case unreachable:
            assert_never(unreachable)


GROUP: machine.Machine[Gathering, Command, Event] = machine.Machine(
    name="group",
    initial=Gathering(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Gathering, Command, Event),
)


def _part(state: Gathering, member: str, why: str) -> Decision:
    reason = f"group member {member} rolled back: {why}"
    others = (each for each in state.party(member) if each != member)
    sends = tuple(Send(state.stream(each), LeaveGroup(reason)) for each in others)
    return Decision((LeftTogether(member, why),), sends=sends)


def _settled(
    state: Gathering,
    news: Iterable[Event],
    now: dt.datetime,
    members: Sequence[str] = (),
    *,
    ticked: bool = False,
) -> Decision:
    """What follows from who is where: some go on, or those who lack get a moment to come."""
    events = list(news)
    for event in events:
        state = evolve(state, event)
    for gate, party in _complete(state):
        everybody = bool(members) and set(party).issuperset(members)
        until = state.until.get(gate)
        if everybody or (until is not None and until <= now):
            events.append(Passed(gate, party))
        elif until is None or ticked:
            events.append(Awaited(gate, until or now + MOMENT))
    sends = (
        Send(state.stream(member), ProceedTogether(event.gate))
        for event in events
        if isinstance(event, Passed)
        for member in event.party
    )
    waits = [event.until for event in events if isinstance(event, Awaited)]
    timers = (SetTimer(WAKE, min(waits), WaitOver()),) if waits else ()
    return Decision(tuple(events), sends=tuple(sends), timers=timers)


def _complete(state: Gathering) -> list[tuple[str, tuple[str, ...]]]:
    """Every gate with the parties of which nobody lacks."""
    return [
        (gate, party)
        for gate, here in state.arrived.items()
        for party in dict.fromkeys(map(state.party, here))
        if set(party) <= set(here)
    ]


def _knows(state: Gathering, member: str) -> bool:
    return member in (*state.under_way, *(each for party in state.parties for each in party))


def _with(state: Gathering, joined: Joined) -> Gathering:
    # One that is made anew under a name that is known has nothing behind it.
    state = _without(state, (joined.member,))
    if joined.rollout:
        state = replace(state, rollouts={**state.rollouts, joined.member: joined.rollout})
    if not joined.kept:
        return replace(state, under_way=(*state.under_way, joined.member))
    # All who come back with the first gate behind them are taken for one party.
    first, *others = state.parties or ((),)
    return replace(state, parties=((*first, joined.member), *others))


def _passed(state: Gathering, event: Passed) -> Gathering:
    after = _without(state, event.party)
    if event.gate != FULL:
        return after
    return replace(after, parties=(*after.parties, event.party), rollouts=state.rollouts)


def _without(state: Gathering, gone: Sequence[str]) -> Gathering:
    """Nobody of these is waited for; nobody at a gate means that nobody waits there."""

    def left(those: Sequence[str]) -> tuple[str, ...]:
        return tuple(each for each in those if each not in gone)

    arrived = {gate: left(here) for gate, here in state.arrived.items() if left(here)}
    return Gathering(
        arrived,
        left(state.under_way),
        tuple(left(party) for party in state.parties if left(party)),
        {gate: until for gate, until in state.until.items() if gate in arrived},
        {member: name for member, name in state.rollouts.items() if member not in gone},
    )
