"""What the object of a cluster says of its resource: told when it changes, and never the body."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile.messages import (
    Adopt,
    Effect,
    ErrorClass,
    Memory,
    Origin,
    Publish,
)
from fairlead.areas.resources.domain.reconcile.state import Phase, Resource
from fairlead.kubernetes.messages import Condition, PublishStatus, ReleaseObject

FINALIZER = "resources.fairlead.dev/cloud-resource"


def told(before: Resource, after: Resource) -> Iterator[Effect]:
    """What a decision brings for the object."""
    if after.declared is None or after.declared.origin is None or before == after:
        return
    origin = after.declared.origin
    if after.phase is Phase.GONE:
        if before.phase is not Phase.GONE:
            yield ReleaseObject(origin.subject, FINALIZER)
        return
    shown_now = _shown(after)
    if shown_now is not None and shown_now != _shown(before):
        # Both grow, and never shrink: what is older is known by it.
        round_ = after.order + after.generation
        status, conditions = _status(after), _conditions(after)
        shown = PublishStatus(origin.subject, round_, origin.generation, status, conditions)
        yield Publish(shown, _memory(after, origin))


def words(effect: Publish) -> Json:
    """What is remembered, as it comes back from an API server."""
    found = msgspec.json.decode(msgspec.json.encode(effect.memory))
    assert isinstance(found, dict)
    return found


def remembered(status: Json) -> Json | None:
    """What a status has of such words."""
    found = status.get("memory")
    return found if isinstance(found, dict) and found else None


def adopted(found: Json) -> Adopt:
    return Adopt(msgspec.convert(found, Memory))


def why(state: Resource) -> str:
    """Why it waits or failed; empty where it does neither."""
    if state.failure is not None:
        return state.failure.message
    return state.awaited


def _shown(state: Resource) -> object:
    if state.declared is None or state.declared.origin is None or state.phase is Phase.IDLE:
        return None
    memory = _memory(state, state.declared.origin)
    # Every read has a number; the newest is remembered with what else is told.
    origin = state.declared.origin
    return _status(state), _conditions(state), origin, state.shown, replace(memory, order=0)


def _memory(state: Resource, origin: Origin) -> Memory:
    assert state.declared is not None
    bare = replace(state.declared, properties={}, origin=Origin(origin.subject))
    return Memory(bare, state.last, state.ours, state.order, state.generation, state.unkept)


def _phase(state: Resource) -> Phase:
    """Without the looks at what stands still, which would be news each time."""
    if state.phase is not Phase.READING:
        return state.phase
    if state.failure is not None:
        refused = state.failure.kind is ErrorClass.REFUSED
        return Phase.FAILED if refused else Phase.WAITING
    return Phase.READY if state.converged == state.generation else state.phase


def _status(state: Resource) -> Json:
    assert state.declared is not None
    said: Json = {
        "resourceId": state.last.given or state.declared.id,
        "apiVersion": state.declared.version,
        "phase": "Deleting" if state.removing else _phase(state).value,
        "message": why(state),
        "differs": [msgspec.to_builtins(each) for each in state.differs],
    }
    return {name: value for name, value in said.items() if value}


def _conditions(state: Resource) -> tuple[Condition, ...]:
    phase, message = _phase(state), why(state)
    failed = phase is Phase.FAILED
    if phase is Phase.READY and not state.removing:
        reason, message = "Succeeded", ""
    elif state.failure is not None:
        reason = state.failure.kind.value
    else:
        reason = "Deleting" if state.removing else phase.value
    ready = phase is Phase.READY and not state.removing
    return (
        Condition("Ready", ready, reason, message),
        Condition("Progressing", not ready and not failed, reason, message),
        Condition("Stalled", failed, reason, message),
    )
