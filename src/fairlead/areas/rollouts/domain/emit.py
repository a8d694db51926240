"""From events to what leaves the machine: effects, messages to limiter and group, the timer."""

import datetime as dt
from collections.abc import Iterator

from fairlead.areas.rollouts.domain import check_rounds, coordination, events, messages, states
from fairlead.areas.rollouts.domain.phases import analysing, queued, shifting
from fairlead.areas.rollouts.domain.phases.rolling_back import PATIENCE
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.checks.spec import judgements
from fairlead.engine.messages import Send
from fairlead.values import ALL

ASK_AGAIN_FROM = 3
"""From this observation on, what is still missing is asked again: its effect may be dead."""


def effects_of(event: events.Event, after: states.State) -> Iterator[messages.Effect]:
    """What this event asks of the world."""
    if isinstance(after, states.Unknown):
        return
    rollout = after.rollout
    match event:
        case events.VersionRequested():
            yield _ensure(rollout, event.slot)
        case events.RouteRequested(order, route):
            yield messages.SetRoute(rollout.name, order, route)
        case events.RemovalRequested(order):
            yield messages.RemoveCanary(rollout.name, order)
        case events.ObservationRequested() | events.Adopted() | events.RunQueued():
            yield from _observe(rollout, event)
        case events.MeasurementRequested():
            assert isinstance(after, states.Queued | states.Analysing)
            yield _measure(after, event)
        case events.RunEnded(override=True):
            yield messages.ResetOverride(rollout.name)
        case events.Removed():
            yield messages.ReleaseResources(rollout.name, rollout.order + 1)
        case _:
            pass
    yield from _news(event, rollout)


def sends_of(event: events.Event, after: states.State) -> Iterator[Send]:
    """What this event sends to the limiter, the group and the step that follows."""
    if isinstance(after, states.Unknown):
        return
    name, run = after.rollout.name, after.run if isinstance(after, states.Running) else None
    match event:
        case events.RunQueued() if run is not None:
            yield from _join(name, run)
        case events.StepsSkipped() if run is not None:
            yield from _excuse(name, run.spec)
        case events.SlotRequested() if run is not None:
            yield from _claim(name, run)
        case events.GateReached() if run is not None:
            yield from _arrive(name, run)
        case events.Adopted() if run is not None:
            # With our memory theirs was lost: send them our place again.
            yield from _claim(name, run)
            yield from _join(name, run) if not isinstance(after, states.RollingBack) else ()
            yield from _arrive(name, run)
        case events.RollbackStarted(why) if run is not None and coordination.KEEP not in run.passed:
            yield from _leave(name, run.rules, why)
        case events.RunEnded(spec=Spec() as spec, unheard=unheard, why=why):
            yield from _release(name, spec)
            yield from _leave(name, spec, why) if unheard else ()
        case events.FollowEnded(follower, succeeded, reason):
            yield coordination.to_follower(follower, coordination.ReportVersion(succeeded, reason))
        case _:
            pass


def wake_at(state: states.State, now: dt.datetime) -> dt.datetime | None:
    """The next moment that may change something by itself."""
    moments = (moment for moment in _moments(state, now) if moment is not None and moment > now)
    return min(moments, default=None)


def observe_at(state: states.State) -> dt.datetime | None:
    """When to observe by ourselves, if nobody reports anything."""
    match state:
        case states.Initializing() | states.Shifting() | states.Promoting() | states.RollingBack():
            return state.rollout.observe_at or state.rollout.since + states.FIRST_OBSERVATION
        case states.Queued() if queued.must_observe(state):
            return state.rollout.observe_at or state.rollout.since + states.FIRST_OBSERVATION
        case states.Analysing():
            return (state.rollout.observe_at or state.rollout.since) + states.SELDOM
        case states.Idle() if state.rollout.follower is not None:
            return state.rollout.observe_at
        case _:
            return None


def _moments(state: states.State, now: dt.datetime) -> Iterator[dt.datetime | None]:
    due = observe_at(state)
    # An observation that was due while no worker lived is due soon, not never.
    yield max(due, now + states.FIRST_OBSERVATION) if due is not None and due <= now else due
    if not isinstance(state, states.Running):
        return
    rollout, run = state.rollout, state.run
    yield rollout.opens
    match state:
        case states.Queued():
            if rollout.paused is None and (run.slot or run.spec.limiter is None):
                yield _next_check(state)
        case states.Shifting() | states.Promoting():
            yield shifting.due_at(state)
        case states.RollingBack():
            yield shifting.due_at(state)
            yield rollout.since + PATIENCE
        case states.Analysing():
            yield analysing.hold_until(state)
            yield analysing.patient_until(state)
            yield analysing.gate_until(state) if run.gate else None
            yield _next_check(state)


def _next_check(state: states.Queued | states.Analysing) -> dt.datetime | None:
    due = check_rounds.next_due(check_rounds.at_place(state), state.round)
    return due[1] if due else None


def _ensure(rollout: states.RolloutRecord, slot: Slot) -> messages.EnsureVersion:
    ask = _asked(rollout)[slot]
    assert ask is not None
    return messages.EnsureVersion(
        rollout.name, ask.order, slot, ask.version, ask.replicas, ask.at_least
    )


def _asked(rollout: states.RolloutRecord) -> dict[Slot, states.Ask | None]:
    return {
        Slot.PRIMARY: rollout.primary,
        Slot.CANARY: rollout.canary,
        Slot.BASELINE: rollout.baseline,
    }


def _observe(rollout: states.RolloutRecord, event: events.Event) -> Iterator[messages.Effect]:
    if isinstance(event, events.RunQueued) and rollout.replicas is not None:
        return
    if rollout.observations >= ASK_AGAIN_FROM:
        # Each carries its first order, so one that was performed meanwhile changes nothing.
        for slot, ask in _asked(rollout).items():
            if ask is not None:
                yield _ensure(rollout, slot)
        if rollout.route_order and not rollout.shown:
            yield messages.SetRoute(rollout.name, rollout.route_order, rollout.route)
        if rollout.removal is not None:
            yield messages.RemoveCanary(rollout.name, rollout.removal)
    yield messages.Observe(rollout.name)


def _measure(
    state: states.Queued | states.Analysing, event: events.MeasurementRequested
) -> messages.Measure:
    rollout, run = state.rollout, state.run
    checks = tuple(check for check in check_rounds.at_place(state) if check.name in event.checks)
    hold = analysing.hold(state) if isinstance(state, states.Analysing) else dt.timedelta()
    return messages.Measure(
        rollout.name, event.ticket, checks, rollout.stable, run.target, rollout.route.weight,
        rollout.since, _control(state), hold, judgements(run.spec.checks, len(run.plan)),
    )  # fmt: skip


def _control(state: states.Queued | states.Analysing) -> Slot:
    """Who has requests beside the canary; once it has all of them, who had some before that."""
    split = state.rollout.route.split
    if isinstance(state, states.Analysing) and split.canary == ALL and state.step > 0:
        # Not the primary, which was there all along: it is warm, and the canary may not be yet.
        split = state.run.plan[state.step - 1].route.split
    return Slot.BASELINE if split.baseline else Slot.PRIMARY


def _claim(name: str, run: states.Run) -> Iterator[Send]:
    limiter = run.spec.limiter
    if limiter is not None and run.slot_asked:
        yield coordination.to_limiter(limiter.name, coordination.Claim(name, limiter.cap))


def _release(name: str, spec: Spec) -> Iterator[Send]:
    if spec.limiter is not None:
        yield coordination.to_limiter(spec.limiter.name, coordination.Release(name))


def _join(name: str, run: states.Run) -> Iterator[Send]:
    group = run.rules.group
    if group is not None and coordination.KEEP not in run.passed:
        join = coordination.Join(group.me or name, name, kept=coordination.FULL in run.passed)
        yield coordination.to_group(group.name, join)


def _arrive(name: str, run: states.Run) -> Iterator[Send]:
    group = run.rules.group
    if group is not None and run.gate:
        arrive = coordination.Arrive(group.me or name, run.gate, group.members)
        yield coordination.to_group(group.name, arrive)


def _leave(name: str, spec: Spec, why: str) -> Iterator[Send]:
    if spec.group is not None:
        leave = coordination.Leave(spec.group.me or name, why)
        yield coordination.to_group(spec.group.name, leave)


def _excuse(name: str, spec: Spec) -> Iterator[Send]:
    if spec.group is not None:
        excuse = coordination.Excuse(spec.group.me or name)
        yield coordination.to_group(spec.group.name, excuse)


def _news(event: events.Event, rollout: states.RolloutRecord) -> Iterator[messages.Notify]:
    """What people are notified of."""
    match event:
        case events.RunQueued(pending=pending, at=at):
            yield messages.Notify(rollout.name, "RolloutStarted", pending.why, at)
        case events.StepReached(weight=weight, at=at):
            yield messages.Notify(rollout.name, "StepReached", f"canary weight is {weight} %", at)
        case events.Paused(by, why, at):
            yield messages.Notify(rollout.name, "Paused", why or f"paused by {by}", at)
        case events.Stalled(why=why, at=at):
            yield messages.Notify(rollout.name, "Stalled", why, at)
        case events.RollbackStarted(why=why, at=at):
            yield messages.Notify(rollout.name, "RollingBack", why, at)
        case events.Drifted(what=what, at=at):
            yield messages.Notify(rollout.name, "Drifted", what, at)
        case events.RunEnded(ending=ending, why=why, at=at):
            yield messages.Notify(rollout.name, ending.value, why, at)
        case _:
            pass
