"""Where a resource stands, and what each event makes of it."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile import events
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    ErrorClass,
    Failure,
    LastApplied,
    Operation,
    Plan,
    Reason,
)

_MOST_ATTEMPTED = 4
POST = "POST"


class Phase(StrEnum):
    """What is done at the moment."""

    IDLE = "Idle"
    """Nothing was declared yet."""

    READING = "Reading"
    WRITING = "Writing"
    OPERATING = "Operating"
    """The API works on what it was asked for."""

    VERIFYING = "Verifying"
    READY = "Ready"
    WAITING = "Waiting"
    """It is tried again by itself."""

    FAILED = "Failed"
    """Somebody has to change something; it is tried again at a slow pace."""

    GONE = "Gone"


SENDING = frozenset({Phase.WRITING, Phase.OPERATING})
"""A request is on its way or being worked on: no other one may overlap it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The request that is on its way."""

    plan: Plan | None
    """None: it is a deletion."""

    generation: int
    sealed: Json = field(default_factory=dict)
    repeats: bool = False
    """Whether an earlier creation may be what the API then answers with."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource."""

    phase: Phase = Phase.IDLE
    declared: Declared | None = None
    generation: int = 0
    converged: int = 0
    """The generation that the resource was brought to last."""

    removing: bool = False
    ours: bool = False
    """Whether we may have made or changed it; what never was is left alone for ever."""

    last: LastApplied = field(default_factory=LastApplied)
    unkept: tuple[str, ...] = ()
    """What the API took last, and does not show; the same is not written again."""

    order: int = 0
    """Of the last thing that was asked for or is waited for; answers to earlier ones are late."""

    until: dt.datetime | None = None
    """When it wakes; None while an answer is awaited, and where nothing ever is."""

    tries: int = 0
    """How often in a row it did not work."""

    differing: int = 0
    """How often in a row the API showed something else than it took."""

    sent: Sent | None = None
    """Kept until what it made was verified."""

    operation: Operation | None = None
    deadline: dt.datetime | None = None
    failure: Failure | None = None
    awaited: str = ""
    """What the API has to show before what was written counts as done."""

    differs: tuple[Reason, ...] = ()
    """What the last write was for, until the resource is as declared."""

    shown: str = ""
    """A digest of what the API showed last, as it was as declared."""

    wrote: dt.datetime | None = None
    """When a request was decided on last."""

    parent: str = ""
    """Who waits to hear how this comes out."""

    @property
    def is_asking(self) -> bool:
        """Whether the answer to an effect is awaited."""
        asking = (Phase.READING, Phase.WRITING, Phase.OPERATING, Phase.VERIFYING)
        return self.until is None and self.phase in asking

    @property
    def verifies(self) -> bool:
        """Whether what is read next is held against what was sent; not if more is wanted by now."""
        if self.phase is not Phase.VERIFYING or self.sent is None:
            return False
        deletes = self.sent.plan is None
        return deletes or (self.sent.generation == self.generation and not self.removing)


def evolve(state: Resource, event: events.Event) -> Resource:  # noqa: PLR0911 - one for each kind
    match event:
        case events.SpecChanged() | events.Adopted() | events.RemovalRequested() | events.Gone():
            return _owned(state, event)
        case events.ReadStarted(order):
            if state.verifies:
                return replace(state, order=order, until=None)
            reading = replace(state, phase=Phase.READING, sent=None, awaited="")
            return replace(reading, order=order, until=None)
        case events.WriteStarted() | events.DeletionStarted():
            return _sent(state, event)
        case events.Written() | events.Settled():
            return _written(state, event)
        case events.Followed(parent):
            return replace(state, parent=parent)
        case events.Named(given):
            return replace(state, last=replace(state.last, given=given, creation=0))
        case events.Converged() | events.BackedOff() | events.VerificationAwaited():
            return _resting(state, event)
        case _:
            return _operating(state, event)


def _owned(
    state: Resource,
    event: events.SpecChanged | events.Adopted | events.RemovalRequested | events.Gone,
) -> Resource:
    match event:
        case events.SpecChanged(declared):
            old = Resource(order=state.order, generation=state.generation, parent=state.parent)
            old = old if state.phase is Phase.GONE else replace(state, unkept=())
            tries = old.tries if old.phase in SENDING else 0
            return replace(old, declared=declared, generation=old.generation + 1, tries=tries)
        case events.Adopted(memory):
            # Asleep until its declaration comes: what the memory has of it lacks the properties.
            return Resource(
                declared=memory.declared,
                generation=memory.generation,
                ours=memory.ours,
                last=memory.last,
                unkept=memory.unkept,
                order=memory.order,
            )
        case events.RemovalRequested(_, retain):
            told = state.declared
            if retain and told is not None:
                told = replace(told, retain=True)
            return replace(state, removing=True, declared=told)
        case events.Gone():
            return Resource(
                Phase.GONE, state.declared, state.generation, state.converged, order=state.order
            )
        case unreachable:
            assert_never(unreachable)


def _sent(state: Resource, event: events.WriteStarted | events.DeletionStarted) -> Resource:
    match event:
        case events.WriteStarted(order, plan, sealed, at):
            repeats = plan.method == POST and state.last.creation != 0
            sent = Sent(plan, state.generation, sealed, repeats)
            state = replace(state, differs=plan.reasons)
            if plan.method == POST and not state.last.creation:
                state = replace(state, last=replace(state.last, creation=order))
            if sealed not in state.last.attempted:
                attempted = (*state.last.attempted, sealed)[-_MOST_ATTEMPTED:]
                state = replace(state, last=replace(state.last, attempted=attempted))
        case events.DeletionStarted(order, at):
            sent = Sent(None, state.generation)
            state = replace(state, differs=())
        case unreachable:
            assert_never(unreachable)
    return replace(
        state,
        phase=Phase.WRITING,
        order=order,
        until=None,
        sent=sent,
        ours=True,
        differing=0,
        wrote=at,
    )


def _written(state: Resource, event: events.Written | events.Settled) -> Resource:
    if isinstance(event, events.Settled):
        last = replace(state.last, settled=event.settled)
        return replace(state, last=last, unkept=event.paths, phase=Phase.READING, sent=None)
    done = replace(
        state, phase=Phase.VERIFYING, operation=None, deadline=None, tries=0, failure=None
    )
    if state.sent is None or state.sent.plan is None:
        return done
    # What was made of an older value says nothing of the new one.
    paths = [each.path for each in state.sent.plan.reasons]
    settled = {path: made for path, made in state.last.settled.items() if not below(path, paths)}
    # Until it is seen to be gone, what was there before is remembered: a removal may be ignored.
    before = () if state.last.applied is None else (state.last.applied,)
    attempted = (*state.last.attempted, *before)[-_MOST_ATTEMPTED:]
    last = replace(state.last, applied=state.sent.sealed, attempted=attempted, settled=settled)
    return replace(done, last=last)


def below(path: str, paths: Iterable[str]) -> bool:
    """Whether it is one of these, as they are written, or stands in one; empty is the whole."""
    return any(
        not each or path == each or path.startswith((f"{each}.", f"{each}[")) for each in paths
    )


def _resting(
    state: Resource, event: events.Converged | events.BackedOff | events.VerificationAwaited
) -> Resource:
    match event:
        case events.Converged(order, applied, until, shown):
            known = state.last.applied if applied is None else applied
            last = replace(state.last, applied=known, attempted=())
            rest = replace(state, phase=Phase.READY, last=last, tries=0, failure=None)
            rest = replace(rest, converged=state.generation, unkept=(), ours=True, differs=())
            rest = replace(rest, shown=shown)
        case events.BackedOff(order, failure, until):
            phase = Phase.FAILED if failure.kind is ErrorClass.REFUSED else Phase.WAITING
            if not failure.unknown and state.last.creation == state.order:
                # The first try of it, and it is known to have made nothing.
                state = replace(state, last=replace(state.last, creation=0))
            rest = replace(state, phase=phase, tries=state.tries + 1, failure=failure)
        case events.VerificationAwaited(order, until, why, differs):
            count = state.differing + differs
            waits = replace(state, tries=state.tries + 1, differing=count, awaited=why)
            return replace(waits, order=order, until=until)
        case unreachable:
            assert_never(unreachable)
    rest = replace(rest, sent=None, operation=None, deadline=None, awaited="")
    return replace(rest, order=order, until=until)


def _operating(
    state: Resource,
    event: (
        events.OperationStarted | events.PollStarted | events.OperationAwaited | events.Dropped
    ),
) -> Resource:
    match event:
        case events.OperationStarted(order, operation, until, deadline):
            return replace(
                state,
                phase=Phase.OPERATING,
                order=order,
                operation=operation,
                until=until,
                deadline=deadline,
                tries=0,
                failure=None,
            )
        case events.PollStarted(order):
            return replace(state, order=order, until=None)
        case events.OperationAwaited(order, until, failure):
            tries = state.tries + 1
            return replace(state, order=order, until=until, tries=tries, failure=failure)
        case events.Dropped():
            return replace(state, phase=Phase.READING, operation=None, deadline=None, sent=None)
        case unreachable:
            assert_never(unreachable)
