"""What people see of a resource: where it stands, why it waits, what differs, what comes next.

The command, the API and their refusals all come through here. A resource belongs to no project or
namespace, so a caller with a scope sees none.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from fairlead import errors
from fairlead.access import scopes
from fairlead.areas.resources.domain.reconcile.draft import MACHINE, stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import Reason
from fairlead.areas.resources.domain.reconcile.state import Phase, Resource
from fairlead.engine import filters, machine, visibility
from fairlead.engine.store import protocol

_ONLY = machine.Machines([RESOURCE])


@dataclass(frozen=True, slots=True)
class Summary:
    """One resource as it stands."""

    id: str
    type: str
    version: str
    """Of the API by which it is asked for."""

    phase: str
    why: str
    """Why it waits or failed; empty where it does neither."""

    differs: tuple[Reason, ...]
    """What the last write was for, while the resource is not as declared."""

    last_write: dt.datetime | None
    """When a request was decided on last; None where none ever was."""

    next: dt.datetime | None
    """When it is looked at again; None while it is asked for, and where that is never."""

    stream: str
    """By which its events are asked for."""

    updated: dt.datetime


def listed(
    session: protocol.Session,
    limit: int,
    where: str = "",
    scope: str = scopes.EVERYWHERE,
    before: int | None = None,
) -> tuple[Sequence[Summary], int | None]:
    """The newest first, and the number to go on from where there are more."""
    fits = filters.where(where, _ONLY, MACHINE)
    which = visibility.StreamFilter(MACHINE, before=before, limit=limit, scope=scope, where=fits)
    found = visibility.streams(session, which)
    return [summary(each) for each in found], found[-1].number if found.more else None


def read(
    session: protocol.Session, id_: str, now: dt.datetime, scope: str = scopes.EVERYWHERE
) -> Summary:
    """One of them, with the reason why nobody performs what it asks, if nobody does."""
    name = stream(id_)
    found = visibility.find(session, name) if scopes.covers(scope, name) else None
    if found is None:
        raise errors.NotFound(
            f"no such resource: {id_[:200]}", hint="list them with fairlead get resources"
        )
    told = summary(found)
    unserved = visibility.unserved(session, found, now)
    return replace(told, why=unserved) if unserved else told


def summary(found: visibility.StreamView) -> Summary:
    state = msgspec.convert(found.data, Resource)
    told = state.declared
    return Summary(
        id=told.id if told else "",
        type=told.type if told else "",
        version=told.version if told else "",
        phase=state.phase.value,
        why=_why(state),
        differs=state.differs,
        last_write=state.wrote,
        next=state.until,
        stream=found.name,
        updated=found.updated_at,
    )


def _why(state: Resource) -> str:
    why = state.awaited
    if state.failure is not None:
        why = f"{state.failure.kind}: {state.failure.message}"
    if state.removing and state.phase is not Phase.GONE:
        return f"it is being removed: {why}" if why else "it is being removed"
    return why
