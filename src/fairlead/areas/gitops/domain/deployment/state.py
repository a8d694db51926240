"""Where a deployment from git stands, and what each event makes of it."""

import datetime as dt
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from fairlead.areas.gitops.domain.deployment import events
from fairlead.areas.gitops.domain.messages import (
    Intent,
    ObjectRef,
    Observed,
    Operation,
    SyncStatus,
    Times,
)
from fairlead.kubernetes.messages import Subject


class Phase(StrEnum):
    """What is done at the moment."""

    IDLE = "Idle"
    """Nothing was declared yet."""

    REFUSED = "Refused"
    """The intent is no valid work; the next one may be."""

    GATHERING = "Gathering"
    RENDERING = "Rendering"
    APPLYING = "Applying"
    WAITING = "Waiting"
    """Until it is time to look, or to try, again."""

    REMOVING = "Removing"
    STUCK = "Stuck"
    """A removal failed and is tried again."""

    GONE = "Gone"


ASKING = frozenset({Phase.GATHERING, Phase.RENDERING, Phase.APPLYING, Phase.REMOVING})
"""An effect is on its way, and its answer is awaited."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment from git."""

    phase: Phase = Phase.IDLE
    round: int = 0
    order: int = 0
    """The number of the effect or wait whose answer counts; all others are late."""

    subject: Subject | None = None
    intent: Intent | None = None
    generation: int = 0
    removing: bool = False
    workspace_id: str = ""
    gitops_depl_id: str = ""
    operation: Operation | None = None
    operations: int = 0
    """How many were recorded so far."""

    operated: int = 0
    """The generation that the last operation was recorded for."""

    revision: str = ""
    rendered: tuple[ObjectRef, ...] = ()
    inventory: tuple[ObjectRef, ...] = ()
    """Whatever may have been applied, and is not known to be gone."""

    objects: tuple[Observed, ...] = ()
    dry: bool = False
    sync_asked: bool = False
    error: str = ""
    tries: int = 0
    times: Times = Times()
    until: dt.datetime | None = None

    @property
    def is_asking(self) -> bool:
        return self.phase in ASKING


def evolve(state: Deployment, event: events.Event) -> Deployment:
    return replace(_evolve(state, event), round=_round(state, event))


def _round(state: Deployment, event: events.Event) -> int:
    found = event.round if isinstance(event, events.StatusAdopted) else 0
    return max(state.round, found) + 1


_Asked = (
    events.IntentChanged
    | events.IntentRefused
    | events.StatusAdopted
    | events.SyncRequested
    | events.RemovalRequested
)
_Kept = events.AnswerOverdue | events.OperationRecorded | events.Gone


def _evolve(state: Deployment, event: events.Event) -> Deployment:
    if isinstance(event, _Asked):
        return _asked(state, event)
    return _kept(state, event) if isinstance(event, _Kept) else _worked(state, event)


def _asked(state: Deployment, event: _Asked) -> Deployment:
    match event:
        case events.IntentChanged(subject, generation, intent):
            return replace(state, subject=subject, generation=generation, intent=intent, tries=0)
        case events.IntentRefused(error):
            return replace(state, phase=Phase.REFUSED, error=error, until=None)
        case events.StatusAdopted(_, inventory):
            return replace(state, inventory=_joined(state.inventory, inventory))
        case events.SyncRequested():
            return replace(state, sync_asked=True)
        case events.RemovalRequested(subject):
            kept = state.subject if state.subject is not None else subject
            return replace(state, removing=True, subject=kept, tries=0)
        case unreachable:
            assert_never(unreachable)


def _kept(state: Deployment, event: _Kept) -> Deployment:
    match event:
        case events.AnswerOverdue(error):
            return replace(state, error=error)
        case events.OperationRecorded(workspace_id, gitops_depl_id, operation):
            return replace(
                state,
                workspace_id=workspace_id,
                gitops_depl_id=gitops_depl_id,
                operation=operation,
                operations=state.operations + 1,
                operated=state.generation,
            )
        case events.Gone():
            return replace(state, phase=Phase.GONE, inventory=(), until=None)
        case unreachable:
            assert_never(unreachable)


_Work = (
    events.GatheringStarted
    | events.PassStarted
    | events.RevisionRendered
    | events.PassCompleted
    | events.PassFailed
    | events.RemovalStarted
)


def _worked(state: Deployment, event: _Work) -> Deployment:
    match event:
        case events.GatheringStarted(order):
            return replace(state, phase=Phase.GATHERING, order=order, until=None)
        case events.PassStarted(order, at, fresh):
            times = Times(at) if fresh else state.times
            return replace(state, phase=Phase.RENDERING, order=order, times=times, until=None)
        case events.RevisionRendered(order, revision, objects, dry):
            kept = state.inventory if dry else _joined(state.inventory, objects)
            return replace(
                state,
                phase=Phase.APPLYING,
                order=order,
                revision=revision,
                rendered=objects,
                inventory=kept,
                dry=dry,
                sync_asked=state.sync_asked and dry,
            )
        case events.PassCompleted(objects, at, until):
            # What was obsolete is gone, or is told among the objects as it could not be pruned.
            told = tuple(each.ref for each in objects)
            return replace(
                state,
                phase=Phase.WAITING,
                order=state.order + 1,
                objects=objects,
                inventory=state.inventory if state.dry else told,
                error="",
                tries=state.tries + 1 if _is_moving(objects) else 0,
                times=_finished(state, at),
                until=until,
            )
        case events.PassFailed(error, at, until):
            return replace(
                state,
                phase=Phase.STUCK if state.phase is Phase.REMOVING else Phase.WAITING,
                order=state.order + 1,
                error=error,
                tries=state.tries + 1,
                times=_finished(state, at),
                until=until,
            )
        case events.RemovalStarted(order):
            return replace(state, phase=Phase.REMOVING, order=order, until=None)
        case unreachable:
            assert_never(unreachable)


def _is_moving(objects: tuple[Observed, ...]) -> bool:
    return any(each.health == "Progressing" for each in objects)


def _finished(state: Deployment, at: dt.datetime) -> Times:
    """Of a pass that nobody asked for and that changes nothing, no time is told."""
    known = None if state.error else state.times.finished
    return replace(state.times, finished=known or at)


def is_out_of_sync(state: Deployment) -> bool:
    return any(each.sync is not SyncStatus.SYNCED for each in state.objects)


def _joined(one: tuple[ObjectRef, ...], other: tuple[ObjectRef, ...]) -> tuple[ObjectRef, ...]:
    """Both, each object once, by the newer spelling of its version."""
    return tuple({each.place: each for each in (*one, *other)}.values())
