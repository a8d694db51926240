"""The state after each event."""

import dataclasses
from collections.abc import Callable
from typing import Any

from fairlead.analysis.limits import Tally
from fairlead.areas.rollouts.domain import events, states, status_codec
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.states import CheckRound, RolloutRecord, Run, State
from fairlead.traffic.routes import PRIMARY_ONLY

replace = dataclasses.replace


def evolve(state: State, event: events.Event) -> State:
    """The state after this event."""
    after = _MARKS[type(event)](state, event)
    if isinstance(after, states.Unknown):
        return after
    return _noted(after, serial=after.rollout.serial + 1)


def _noted(state: State, **changes: Any) -> State:
    assert not isinstance(state, states.Unknown)
    return replace(state, rollout=replace(state.rollout, **changes))


def _rollout(state: State) -> RolloutRecord:
    assert not isinstance(state, states.Unknown)
    return state.rollout


def _run(state: State) -> Run:
    assert isinstance(state, states.Running)
    return state.run


def _arrived(state: State, at: Any, **changes: Any) -> RolloutRecord:
    """The record on entering a new phase: observing starts over."""
    fresh: dict[str, Any] = {"since": at, "observations": 0, "observe_at": None, "opens": None}
    return replace(_rollout(state), **(fresh | changes))


def _initialized(_: State, event: events.Initialized) -> State:
    return states.Initializing(
        RolloutRecord(
            event.name, event.spec, event.version, event.version, event.at,
            event.replicas, event.generation,
        )
    )  # fmt: skip


def _reinitialized(state: State, event: events.Reinitialized) -> State:
    before = _rollout(state)
    kept = before.kept if isinstance(state, states.Initializing) else (before.stable, *before.kept)
    changes = {"stable": event.version, "desired": event.version, "kept": kept[: before.spec.keep]}
    return states.Initializing(_arrived(state, event.at, **changes))


def _went_live(state: State, event: events.WentLive) -> State:
    return states.Idle(_arrived(state, event.at))


def _respecified(state: State, event: events.Respecified) -> State:
    peak = event.replicas or _rollout(state).peak
    return _noted(
        state, spec=event.spec, replicas=event.replicas, peak=peak, generation=event.generation
    )


def _override_changed(state: State, event: events.OverrideChanged) -> State:
    spent = _rollout(state).override_spent and event.on
    return _noted(state, override=event.on, override_spent=spent)


def _requested(state: State, event: events.Requested) -> State:
    pending = events.PendingRun(event.version, event.why, event.override, event.override)
    return _noted(state, desired=event.version, due=pending if event.due else None)


def _run_due(state: State, event: events.RunDue) -> State:
    return _noted(state, due=event.pending)


def _run_queued(state: State, event: events.RunQueued) -> State:
    pending = event.pending
    before = _rollout(state)
    rollout = _arrived(
        state,
        event.at,
        runs=event.number,
        due=None,
        override_spent=before.override_spent or pending.override,
        removal=None,
        peak=before.replicas or 0,
    )
    run = Run(
        event.number, pending.version, pending.why, event.spec, event.at,
        pending.skip_steps, pending.override,
    )  # fmt: skip
    return states.Queued(rollout, run, CheckRound(event.at))


def _slot_requested(state: State, _: events.SlotRequested) -> State:
    return _with_run(state, slot_asked=True)


def _slot_granted(state: State, _: events.SlotGranted) -> State:
    return _with_run(state, slot=True)


def _with_run(state: State, **changes: Any) -> State:
    assert isinstance(state, states.Running)
    return replace(state, run=replace(state.run, **changes))


def _window_awaited(state: State, event: events.WindowAwaited) -> State:
    return _noted(state, opens=event.until)


def _shift_started(state: State, event: events.ShiftStarted) -> State:
    return states.Shifting(_arrived(state, event.at), _run(state), event.step)


def _step_reached(state: State, event: events.StepReached) -> State:
    rollout = _arrived(state, event.at)
    return states.Analysing(rollout, _run(state), event.step, CheckRound(event.at))


def _measurement_requested(state: State, event: events.MeasurementRequested) -> State:
    assert isinstance(state, states.Queued | states.Analysing)
    current = replace(state.round, ticket=event.ticket, asked=event.at)
    return replace(state, round=current)


def _measured(state: State, event: events.Measured) -> State:
    assert isinstance(state, states.Queued | states.Analysing)
    before = state.round
    tallies, measured, heard = dict(before.tallies), dict(before.measured), dict(before.reasons)
    for finding in event.findings:
        tally = tallies.get(finding.check, Tally())
        tallies[finding.check] = tally.add(finding.phase) if finding.phase else tally
        measured[finding.check] = event.at
        heard[finding.check] = finding.reason
    current = replace(before, asked=None, tallies=tallies, measured=measured, reasons=heard)
    return replace(state, round=current)


def _approved(state: State, _: events.Approved) -> State:
    assert isinstance(state, states.Analysing)
    return replace(state, approved=True)


def _steps_skipped(state: State, event: events.StepsSkipped) -> State:
    if event.override:
        state = _noted(state, override_spent=True)
    return _with_run(state, skip_steps=True, override=_run(state).override or event.override)


def _gate_reached(state: State, event: events.GateReached) -> State:
    return _with_run(state, gate=event.gate)


def _gate_passed(state: State, event: events.GatePassed) -> State:
    return _with_run(state, gate="", passed=(*_run(state).passed, event.gate))


def _promotion_started(state: State, event: events.PromotionStarted) -> State:
    return states.Promoting(_arrived(state, event.at), _run(state))


def _stalled(state: State, event: events.Stalled) -> State:
    assert isinstance(state, states.Promoting | states.RollingBack)
    return replace(state, stalled=event.why)


def _rollback_started(state: State, event: events.RollbackStarted) -> State:
    # A rollback needs no window and no fresh observation to start: the last one must do.
    return states.RollingBack(_arrived(state, event.at), _run(state), event.why, event.ending)


def _version_requested(state: State, event: events.VersionRequested) -> State:
    ask = states.Ask(event.order, event.version, event.replicas, event.at_least, event.at)
    changes: dict[str, Any] = {event.slot.value: ask}
    before = _rollout(state).primary
    if event.slot is Slot.PRIMARY and (before is None or before.version != event.version):
        changes["primary_from"] = event.order
    observe_at = event.at + states.FIRST_OBSERVATION
    return _noted(state, order=event.order, observations=0, observe_at=observe_at, **changes)


def _route_requested(state: State, event: events.RouteRequested) -> State:
    if isinstance(state, states.Promoting):
        fell = event.route.weight < _rollout(state).route.weight
        rose = event.route.weight > _rollout(state).route.weight
        state = replace(state, back=0 if rose else state.back + fell)
    return _noted(
        state,
        order=event.order,
        route=event.route,
        route_order=event.order,
        route_at=event.at,
        observations=0,
        observe_at=event.at + states.FIRST_OBSERVATION,
    )


def _removal_requested(state: State, event: events.RemovalRequested) -> State:
    return _noted(
        state,
        order=event.order,
        removal=event.order,
        removal_at=event.at,
        canary=None,
        baseline=None,
        observations=0,
        observe_at=event.at + states.FIRST_OBSERVATION,
    )


def _observation_requested(state: State, event: events.ObservationRequested) -> State:
    return _noted(state, observations=event.nth, observe_at=event.next)


def _observation_recorded(state: State, event: events.ObservationRecorded) -> State:
    rollout, primary = _rollout(state), event.observed.primary
    peak = rollout.peak
    if rollout.replicas is None and primary is not None and isinstance(state, states.Running):
        peak = max(peak, primary.desired)
    # Orders are never used twice, even by a rollout that forgot some in a crash.
    order = max(rollout.order, event.observed.order)
    return _noted(state, observed=event.observed, order=order, peak=peak)


def _drifted(state: State, _: events.Drifted) -> State:
    return state


def _paused(state: State, event: events.Paused) -> State:
    return _noted(state, paused=states.Halt(event.by, event.why, event.at))


def _resumed(state: State, event: events.Resumed) -> State:
    after = _noted(state, paused=None)
    if isinstance(after, states.Analysing | states.Queued):
        # What had no verdict is measured anew, with new patience.
        ticket = after.round.ticket
        return replace(after, round=CheckRound(event.at, ticket))
    return after


def _run_ended(state: State, event: events.RunEnded) -> State:
    rollout = _rollout(state)
    changes: dict[str, Any] = {
        "outcome": states.Outcome(event.ending, event.target, event.why, event.at),
        "canary": None,
        "baseline": None,
        "removal": None,
        "route": PRIMARY_ONLY,
    }
    if event.ending is events.Ending.PROMOTED:
        kept = (rollout.stable, *(each for each in rollout.kept if each != rollout.stable))
        kept = tuple(each for each in kept if each.revision != event.target.revision)
        changes |= {"stable": event.target, "kept": kept[: rollout.spec.keep]}
    return states.Idle(_arrived(state, event.at, **changes))


def _followed(state: State, event: events.Followed) -> State:
    return _noted(state, follower=states.Follower(event.follower, event.version))


def _follow_ended(state: State, event: events.FollowEnded) -> State:
    kept = _rollout(state).follower
    # Another one may have taken its place.
    return _noted(state, follower=None) if kept and kept.stream == event.follower else state


def _timer_fired(state: State, _: events.TimerFired) -> State:
    return state


def _adopted(_: State, event: events.Adopted) -> State:
    return status_codec.load(event.memory)


def _removed(state: State, event: events.Removed) -> State:
    return states.Gone(_arrived(state, event.at))


_MARKS: dict[type, Callable[[State, Any], State]] = {
    events.Initialized: _initialized,
    events.Reinitialized: _reinitialized,
    events.WentLive: _went_live,
    events.Respecified: _respecified,
    events.OverrideChanged: _override_changed,
    events.Requested: _requested,
    events.RunDue: _run_due,
    events.RunQueued: _run_queued,
    events.SlotRequested: _slot_requested,
    events.SlotGranted: _slot_granted,
    events.WindowAwaited: _window_awaited,
    events.ShiftStarted: _shift_started,
    events.StepReached: _step_reached,
    events.MeasurementRequested: _measurement_requested,
    events.Measured: _measured,
    events.Approved: _approved,
    events.StepsSkipped: _steps_skipped,
    events.GateReached: _gate_reached,
    events.GatePassed: _gate_passed,
    events.PromotionStarted: _promotion_started,
    events.Stalled: _stalled,
    events.RollbackStarted: _rollback_started,
    events.VersionRequested: _version_requested,
    events.RouteRequested: _route_requested,
    events.RemovalRequested: _removal_requested,
    events.ObservationRequested: _observation_requested,
    events.ObservationRecorded: _observation_recorded,
    events.Drifted: _drifted,
    events.Paused: _paused,
    events.Resumed: _resumed,
    events.RunEnded: _run_ended,
    events.Followed: _followed,
    events.FollowEnded: _follow_ended,
    events.TimerFired: _timer_fired,
    events.Adopted: _adopted,
    events.Removed: _removed,
}
