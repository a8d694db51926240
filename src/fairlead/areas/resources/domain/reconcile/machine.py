"""One resource, brought to what is declared and kept there.

declared ──► Reading ──► nothing to change ─────────────────────────► Ready ──► (later) Reading
                │ a plan                                                ▲
                └──► Writing ──► (Operating, while the API works) ──► Verifying
                        └ refused, throttled, busy, outdated ──► Waiting or Failed ──► Reading

At most one request is on its way, and before each the resource is read: after a crash, what is
there decides what is still to be done. What was applied last is remembered only after a success.
"""

import datetime as dt
from dataclasses import replace
from typing import assert_never

from fairlead import errors
from fairlead.areas.resources.domain.reconcile import events, messages
from fairlead.areas.resources.domain.reconcile.draft import (
    LOOKED_FOR,
    MACHINE,
    VERIFICATIONS,
    Draft,
    busy,
    is_stream,
    refused,
)
from fairlead.areas.resources.domain.reconcile.messages import (
    Command,
    Effect,
    ErrorClass,
    Failure,
    Observation,
    Progress,
)
from fairlead.areas.resources.domain.reconcile.publishing import FINALIZER
from fairlead.areas.resources.domain.reconcile.state import (
    POST,
    SENDING,
    Phase,
    Resource,
    evolve,
)
from fairlead.engine import machine
from fairlead.engine.messages import Cancel, Decision, StreamName
from fairlead.kubernetes.messages import ReleaseObject

_Answer = messages.Seen | messages.Accepted | messages.Outdated | messages.Polled | messages.Failed


def decide(state: Resource, command: Command, now: dt.datetime) -> Decision:
    draft = Draft(state, now)
    match command:
        case messages.Apply() | messages.Adopt() | messages.Remove():
            _told(draft, command)
        case messages.Refresh():
            _refresh(draft)
        case messages.Begin():
            pass
        case Cancel(reason):
            draft.report(succeeded=False, reason=reason or "it was cancelled")
        case messages.Wake(order):
            if order == state.order and state.until is not None:
                _woken(draft)
        case _:
            # Any other is late: it answers what nobody waits for any more.
            if command.order == state.order and state.is_asking:
                _answered(draft, command)
    return draft.decision()


def _told(draft: Draft, command: messages.Apply | messages.Adopt | messages.Remove) -> None:
    match command:
        case messages.Apply():
            _apply(draft, command)
        case messages.Adopt(memory):
            if draft.state == Resource():
                draft.record(events.Adopted(memory))
        case messages.Remove():
            _remove(draft, command)
        case unreachable:
            assert_never(unreachable)


def _refresh(draft: Draft) -> None:
    """At once, but where the API asked us to wait: whoever asks knows no better."""
    state = draft.state
    throttled = state.failure is not None and state.failure.kind is ErrorClass.THROTTLED
    if state.phase in {Phase.READY, Phase.FAILED} or (
        state.phase is Phase.WAITING and not throttled
    ):
        draft.read()


def _apply(draft: Draft, command: messages.Apply) -> None:
    state, told = draft.state, command.declared
    if _is_known(state):
        _check(state, told)
    if command.parent:
        draft.follow(command.parent)
    if told == state.declared and _is_known(state):
        # Whoever waits for it wants to hear how it is now.
        if command.parent and state.phase not in SENDING:
            draft.read()
        return
    draft.record(events.SpecChanged(told, command.by))
    if state.phase not in SENDING:
        draft.read()


def _check(state: Resource, told: messages.Declared) -> None:
    old = state.declared
    assert old is not None
    if state.removing:
        raise errors.Conflict(f"it is being removed: {old.id}", hint="declare it once it is gone")
    if (told.id, told.type.lower()) != (old.id, old.type.lower()):
        raise errors.Rejected(
            f"declared already as {old.type}: {old.id}",
            hint="write its type and id as they were first",
        )


def _is_known(state: Resource) -> bool:
    return state.declared is not None and state.phase is not Phase.GONE


def _remove(draft: Draft, command: messages.Remove) -> None:
    state = draft.state
    if not _is_known(state):
        if command.origin is not None:
            # Nobody knows what it made: it is let go, for nothing would ever come of waiting.
            draft.effects.append(ReleaseObject(command.origin.subject, FINALIZER))
            draft.record(events.Gone(released=True))
        return
    if state.removing:
        return
    draft.record(events.RemovalRequested(command.by, command.retain))
    if state.phase not in SENDING:
        _part(draft)


def _part(draft: Draft) -> None:
    """What we never wrote is not ours to delete, whatever is declared."""
    if draft.declared.retain or not draft.state.ours:
        draft.leave(released=True)
    else:
        draft.read()


def _woken(draft: Draft) -> None:
    state = draft.state
    if state.phase is not Phase.OPERATING:
        draft.read()
    elif state.deadline is not None and draft.now >= state.deadline:
        _drop(draft, "the operation has not ended in time")
    else:
        draft.poll()


def _drop(draft: Draft, why: str) -> None:
    draft.record(events.Dropped(why))
    draft.read()


def _answered(draft: Draft, command: _Answer) -> None:
    match command:
        case messages.Seen(_, observation, given):
            draft.name(given)
            _seen(draft, observation)
        case messages.Accepted() | messages.Outdated():
            if draft.state.phase is Phase.WRITING:
                _taken(draft, command)
        case messages.Polled():
            if draft.state.phase is Phase.OPERATING:
                _polled(draft, command)
        case messages.Failed(_, failure):
            _failed(draft, failure)
        case unreachable:
            assert_never(unreachable)


def _seen(draft: Draft, observation: Observation) -> None:
    if draft.state.phase is Phase.READING:
        _read(draft, observation)
    elif draft.state.phase is Phase.VERIFYING:
        _verified(draft, observation)


def _taken(draft: Draft, command: messages.Accepted | messages.Outdated) -> None:
    if isinstance(command, messages.Outdated):
        _failed(draft, busy(command.why or "it changed since it was read"))
        return
    draft.name(command.given)
    if command.operation is not None:
        draft.operate(command.operation, command.retry_after)
    else:
        _written(draft)


def _read(draft: Draft, seen: Observation) -> None:
    if draft.state.removing and not seen.exists and _wrote_lately(draft):
        # Gone now, it would come to light once the API shows it, and be nobody's.
        draft.back_off(replace(busy("what was written may be shown only later"), unknown=True))
    elif draft.state.removing and not seen.exists:
        draft.leave(released=draft.state.last.creation != 0)
    elif seen.busy:
        draft.back_off(busy(f"the API works on it: {seen.busy}"))
    elif draft.state.removing:
        draft.delete()
    elif seen.plan is None:
        _rest(draft, seen)
    elif seen.plan.method == POST and _may_be_made(draft):
        draft.back_off(replace(busy("it may have been made, and is looked for"), unknown=True))
    elif (unkept := {each.path for each in seen.plan.reasons}) <= {*draft.state.unkept}:
        told = ", ".join(sorted(unkept))
        draft.back_off(refused(f"the API takes a value and does not keep it: {told}"))
    else:
        draft.write(seen.plan, seen)


def _may_be_made(draft: Draft) -> bool:
    """An API that answers from copies may show only later what a request made."""
    last = draft.state.last
    return bool(last.creation or last.given) and _wrote_lately(draft)


def _wrote_lately(draft: Draft) -> bool:
    wrote = draft.state.wrote
    return wrote is not None and draft.now < wrote + LOOKED_FOR


def _rest(draft: Draft, seen: Observation) -> None:
    if seen.broken:
        draft.back_off(refused(seen.broken))
    else:
        draft.converge(seen)


def _verified(draft: Draft, seen: Observation) -> None:
    sent = draft.state.sent
    deletes = sent is not None and sent.plan is None
    if deletes and not seen.exists:
        draft.leave(released=False)
    elif seen.busy:
        draft.await_verification(f"the API works on it: {seen.busy}", is_busy=True)
    elif not deletes and seen.plan is None:
        _rest(draft, seen)
    elif draft.state.differing < VERIFICATIONS:
        draft.await_verification("the API does not show it yet")
    elif deletes:
        draft.back_off(refused("the API took the deletion, and still shows it"))
    elif not seen.exists:
        draft.back_off(refused("the API took it, and does not show it"))
    else:
        draft.settle(seen)
        draft.read()


def _written(draft: Draft) -> None:
    sent = draft.state.sent
    if sent is not None and sent.repeats:
        # What is there may have been made of an older spec: its difference is no whim of the API.
        _drop(draft, "it was asked for twice")
        return
    draft.record(events.Written())
    if draft.state.removing and sent is not None and sent.plan is not None:
        _part(draft)
    else:
        draft.read()


def _polled(draft: Draft, told: messages.Polled) -> None:
    match told.progress:
        case Progress.RUNNING:
            draft.await_operation(told.retry_after)
        case Progress.SUCCEEDED:
            _written(draft)
        case Progress.FAILED:
            failure = told.failure or refused("the operation failed")
            _turn(draft, failure)
        case Progress.UNKNOWN:
            _drop(draft, "the API does not know the operation any more")
        case unreachable:
            assert_never(unreachable)


def _failed(draft: Draft, failure: Failure) -> None:
    match draft.state.phase:
        case Phase.OPERATING:
            draft.await_operation(failure=failure)
        case Phase.VERIFYING:
            draft.await_verification(failure.message, failure)
        case _:
            _turn(draft, failure)


def _turn(draft: Draft, failure: Failure) -> None:
    """What was asked for came to nothing; where something else is wanted by now, that is tried."""
    state, sent = draft.state, draft.state.sent
    writes = sent is not None and sent.plan is not None
    changed = sent is not None and sent.generation != state.generation
    if failure.kind is ErrorClass.REFUSED and writes and (changed or state.removing):
        _drop(draft, failure.message)
    else:
        draft.back_off(failure)


def addressed(name: StreamName, command: Command) -> None:
    if not isinstance(command, messages.Apply):
        return
    told = command.declared
    if not is_stream(name, told.id, told.origin):
        raise errors.Rejected(
            f"not the stream of {command.declared.id[:80]}: {name}",
            hint="name it by the id of the resource",
        )


RESOURCE: machine.Machine[Resource, Command, events.Event] = machine.Machine(
    name=MACHINE,
    initial=Resource(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Resource, Command, events.Event, Effect),
    ended=lambda state: state.phase is Phase.GONE,
    attributes=machine.Attributes(
        {"phase": tuple(each.value for each in Phase), "type": str},
        lambda state: {
            "phase": state.phase.value,
            "type": state.declared.type if state.declared else "",
        },
    ),
    addressed=addressed,
)
