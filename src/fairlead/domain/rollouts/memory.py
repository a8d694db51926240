"""How a rollout remembers: each event's mark on the state."""

import dataclasses
from collections.abc import Callable
from typing import Any

from fairlead.domain.analysis.limits import Tally
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import shapes, states
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.states import Book, Inquiry, Run, State
from fairlead.domain.traffic.routes import AT_HOME

replace = dataclasses.replace


def evolve(state: State, event: told.Event) -> State:
    """The state after this event."""
    after = _MARKS[type(event)](state, event)
    if isinstance(after, states.Unknown):
        return after
    return _noted(after, serial=after.book.serial + 1)


def _noted(state: State, **changes: Any) -> State:
    assert not isinstance(state, states.Unknown)
    return replace(state, book=replace(state.book, **changes))


def _book(state: State) -> Book:
    assert not isinstance(state, states.Unknown)
    return state.book


def _run(state: State) -> Run:
    assert isinstance(state, states.Running)
    return state.run


def _arrived(state: State, at: Any, **changes: Any) -> Book:
    """The book on entering a new place: looking starts over."""
    fresh: dict[str, Any] = {"since": at, "looks": 0, "look_at": None, "opens": None}
    return replace(_book(state), **(fresh | changes))


def _founded(_: State, event: told.Founded) -> State:
    return states.Founding(
        Book(
            event.name, event.spec, event.version, event.version, event.at,
            event.replicas, event.generation,
        )
    )  # fmt: skip


def _refounded(state: State, event: told.Refounded) -> State:
    before = _book(state)
    kept = before.kept if isinstance(state, states.Founding) else (before.stable, *before.kept)
    changes = {"stable": event.version, "wanted": event.version, "kept": kept[: before.spec.keep]}
    return states.Founding(_arrived(state, event.at, **changes))


def _went_live(state: State, event: told.WentLive) -> State:
    return states.Idle(_arrived(state, event.at))


def _respecified(state: State, event: told.Respecified) -> State:
    return _noted(state, spec=event.spec, replicas=event.replicas, generation=event.generation)


def _override_seen(state: State, event: told.OverrideSeen) -> State:
    spent = _book(state).override_spent and event.on
    return _noted(state, override=event.on, override_spent=spent)


def _wanted(state: State, event: told.Wanted) -> State:
    errand = told.Errand(event.version, event.why, event.override, event.override)
    return _noted(state, wanted=event.version, due=errand if event.due else None)


def _run_due(state: State, event: told.RunDue) -> State:
    return _noted(state, due=event.errand)


def _run_queued(state: State, event: told.RunQueued) -> State:
    errand = event.errand
    spent = _book(state).override_spent or errand.override
    book = _arrived(
        state, event.at, runs=event.number, due=None, override_spent=spent, removal=None
    )
    run = Run(
        event.number, errand.version, errand.why, event.spec, event.at,
        errand.straight, errand.override,
    )  # fmt: skip
    return states.Queued(book, run, Inquiry(event.at))


def _slot_asked(state: State, _: told.SlotAsked) -> State:
    return _with_run(state, slot_asked=True)


def _slot_granted(state: State, _: told.SlotGranted) -> State:
    return _with_run(state, slot=True)


def _with_run(state: State, **changes: Any) -> State:
    assert isinstance(state, states.Running)
    return replace(state, run=replace(state.run, **changes))


def _window_awaited(state: State, event: told.WindowAwaited) -> State:
    return _noted(state, opens=event.until)


def _move_began(state: State, event: told.MoveBegan) -> State:
    return states.Moving(_arrived(state, event.at), _run(state), event.step)


def _step_reached(state: State, event: told.StepReached) -> State:
    book = _arrived(state, event.at)
    return states.Watching(book, _run(state), event.step, Inquiry(event.at))


def _measure_asked(state: State, event: told.MeasureAsked) -> State:
    assert isinstance(state, states.Queued | states.Watching)
    inquiry = replace(state.inquiry, ticket=event.ticket, asked=event.at)
    return replace(state, inquiry=inquiry)


def _measured(state: State, event: told.Measured) -> State:
    assert isinstance(state, states.Queued | states.Watching)
    before = state.inquiry
    tallies, measured, heard = dict(before.tallies), dict(before.measured), dict(before.told)
    for finding in event.findings:
        tally = tallies.get(finding.check, Tally())
        tallies[finding.check] = tally.add(finding.phase) if finding.phase else tally
        measured[finding.check] = event.at
        heard[finding.check] = finding.reason
    inquiry = replace(before, asked=None, tallies=tallies, measured=measured, told=heard)
    return replace(state, inquiry=inquiry)


def _approved(state: State, _: told.Approved) -> State:
    assert isinstance(state, states.Watching)
    return replace(state, approved=True)


def _straightened(state: State, event: told.Straightened) -> State:
    if event.override:
        state = _noted(state, override_spent=True)
    return _with_run(state, straight=True, override=_run(state).override or event.override)


def _gate_reached(state: State, event: told.GateReached) -> State:
    return _with_run(state, gate=event.gate)


def _gate_passed(state: State, event: told.GatePassed) -> State:
    return _with_run(state, gate="", passed=(*_run(state).passed, event.gate))


def _promotion_began(state: State, event: told.PromotionBegan) -> State:
    return states.Promoting(_arrived(state, event.at), _run(state))


def _stalled(state: State, event: told.Stalled) -> State:
    assert isinstance(state, states.Promoting | states.GoingHome)
    return replace(state, stalled=event.why)


def _home_began(state: State, event: told.HomeBegan) -> State:
    # A way home needs no window and no fresh look to begin: what was seen last must do.
    return states.GoingHome(_arrived(state, event.at), _run(state), event.why, event.ending)


def _version_asked(state: State, event: told.VersionAsked) -> State:
    ask = states.Ask(event.order, event.version, event.replicas, event.at_least, event.at)
    changes: dict[str, Any] = {event.slot.value: ask}
    before = _book(state).primary
    if event.slot is Slot.PRIMARY and (before is None or before.version != event.version):
        changes["primary_from"] = event.order
    look_at = event.at + states.FIRST_LOOK
    return _noted(state, order=event.order, looks=0, look_at=look_at, **changes)


def _route_asked(state: State, event: told.RouteAsked) -> State:
    if isinstance(state, states.Promoting):
        fell = event.route.share < _book(state).route.share
        rose = event.route.share > _book(state).route.share
        state = replace(state, back=0 if rose else state.back + fell)
    return _noted(
        state,
        order=event.order,
        route=event.route,
        route_order=event.order,
        route_at=event.at,
        looks=0,
        look_at=event.at + states.FIRST_LOOK,
    )


def _removal_asked(state: State, event: told.RemovalAsked) -> State:
    return _noted(
        state,
        order=event.order,
        removal=event.order,
        removal_at=event.at,
        canary=None,
        baseline=None,
        looks=0,
        look_at=event.at + states.FIRST_LOOK,
    )


def _look_asked(state: State, event: told.LookAsked) -> State:
    return _noted(state, looks=event.nth, look_at=event.next)


def _sighted(state: State, event: told.Sighted) -> State:
    # Orders are never used twice, even by a rollout that forgot some in a crash.
    return _noted(state, sight=event.sight, order=max(_book(state).order, event.sight.order))


def _drifted(state: State, _: told.Drifted) -> State:
    return state


def _paused(state: State, event: told.Paused) -> State:
    return _noted(state, paused=states.Halt(event.by, event.why, event.at))


def _resumed(state: State, event: told.Resumed) -> State:
    after = _noted(state, paused=None)
    if isinstance(after, states.Watching | states.Queued):
        # What could not be told is asked anew, with new patience.
        ticket = after.inquiry.ticket
        return replace(after, inquiry=Inquiry(event.at, ticket))
    return after


def _run_ended(state: State, event: told.RunEnded) -> State:
    book = _book(state)
    changes: dict[str, Any] = {
        "outcome": states.Outcome(event.ending, event.target, event.why, event.at),
        "canary": None,
        "baseline": None,
        "removal": None,
        "route": AT_HOME,
    }
    if event.ending is told.Ending.PROMOTED:
        kept = (book.stable, *(each for each in book.kept if each != book.stable))
        kept = tuple(each for each in kept if each.revision != event.target.revision)
        changes |= {"stable": event.target, "kept": kept[: book.spec.keep]}
    return states.Idle(_arrived(state, event.at, **changes))


def _woke(state: State, _: told.Woke) -> State:
    return state


def _adopted(_: State, event: told.Adopted) -> State:
    return shapes.load(event.memory)


def _removed(state: State, event: told.Removed) -> State:
    return states.Gone(_arrived(state, event.at))


_MARKS: dict[type, Callable[[State, Any], State]] = {
    told.Founded: _founded,
    told.Refounded: _refounded,
    told.WentLive: _went_live,
    told.Respecified: _respecified,
    told.OverrideSeen: _override_seen,
    told.Wanted: _wanted,
    told.RunDue: _run_due,
    told.RunQueued: _run_queued,
    told.SlotAsked: _slot_asked,
    told.SlotGranted: _slot_granted,
    told.WindowAwaited: _window_awaited,
    told.MoveBegan: _move_began,
    told.StepReached: _step_reached,
    told.MeasureAsked: _measure_asked,
    told.Measured: _measured,
    told.Approved: _approved,
    told.Straightened: _straightened,
    told.GateReached: _gate_reached,
    told.GatePassed: _gate_passed,
    told.PromotionBegan: _promotion_began,
    told.Stalled: _stalled,
    told.HomeBegan: _home_began,
    told.VersionAsked: _version_asked,
    told.RouteAsked: _route_asked,
    told.RemovalAsked: _removal_asked,
    told.LookAsked: _look_asked,
    told.Sighted: _sighted,
    told.Drifted: _drifted,
    told.Paused: _paused,
    told.Resumed: _resumed,
    told.RunEnded: _run_ended,
    told.Woke: _woke,
    told.Adopted: _adopted,
    told.Removed: _removed,
}
