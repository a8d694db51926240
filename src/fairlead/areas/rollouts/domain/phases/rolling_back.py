"""Rolling back: as much traffic as the stable version can serve, at once; then the canary goes.

Nothing holds a rollback up: no pause, no window, no limiter. It ends when it is done.
"""

import datetime as dt
import math

from fairlead.areas.rollouts.domain import events, observation, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, canary_gone
from fairlead.areas.rollouts.domain.phases.shifting import overdue
from fairlead.traffic.routes import PRIMARY_ONLY, Route
from fairlead.values import ALL

PATIENCE = dt.timedelta(minutes=1)
"""How long a canary that was given up may help out while the primary grows."""


def advance(draft: DecisionBuilder) -> None:
    state = draft.state
    assert isinstance(state, states.RollingBack)
    rollout = state.rollout
    if _must_prescale(state):
        draft.ask_primary(rollout.stable, need(state))
        return
    goal = _goal(state, allowed_weight(state, draft.now))
    if rollout.route.reaches_canary and rollout.route != goal:
        draft.ask_route(goal, f"rolling back: {state.why}")
    elif rollout.route.weight == 0 and rollout.shown:
        _remove_canary(draft, state)
    if not draft.events and not state.stalled and overdue(draft, state):
        draft.record(events.Stalled(waiting_for(state), draft.now))


def need(state: states.RollingBack) -> int:
    """How many pods of the stable version carry all traffic."""
    rollout = state.rollout
    if rollout.primary is not None and _prescaled(rollout):
        return max(rollout.primary.at_least, rollout.full if rollout.replicas is not None else 0)
    if rollout.replicas is not None:
        return rollout.full
    return _grown(rollout)


def allowed_weight(state: states.RollingBack, now: dt.datetime) -> int:
    """What the canary keeps for now: only what the stable version cannot carry yet."""
    rollout = state.rollout
    weight = rollout.route.weight
    if rollout.observed is None or weight == 0:
        return weight
    able = able_pods(rollout)
    helps = observation.ready(rollout.observed.canary, state.run.target.revision)
    needed = need(state)
    if able >= needed or not helps or _grows_no_more(rollout, able):
        return 0
    if able == 0:
        return weight
    if now >= rollout.since + PATIENCE:
        return 0
    return min(weight, ALL - ALL * able // needed)


def _grows_no_more(rollout: states.RolloutRecord, able: int) -> bool:
    """Whether an autoscaler, which measures the load, holds the primary below what we asked for."""
    ask, pods = rollout.primary, rollout.observed.primary if rollout.observed else None
    if rollout.replicas is not None or ask is None or pods is None or not _prescaled(rollout):
        return False
    return pods.order >= ask.order and 0 < pods.desired <= able


def _goal(state: states.RollingBack, weight: int) -> Route:
    rollout = state.rollout
    if weight and rollout.route.split.baseline and not able_pods(rollout):
        # The baseline is the stable version too, and now all of it that may answer.
        return rollout.route
    return rollout.route.only(weight)


def able_pods(rollout: states.RolloutRecord) -> int:
    """Ready pods of the stable version that will stay what they are.

    A promotion that was undone may have left its effect behind: the primary still looks like the
    old version, and is replaced the moment after. So our later order must be observed as done.
    """
    pods = rollout.observed.primary if rollout.observed else None
    if pods is None or pods.order < rollout.primary_from:
        return 0
    return observation.ready(pods, rollout.stable.revision)


def waiting_for(state: states.RollingBack) -> str:
    pods = state.rollout.observed.primary if state.rollout.observed else None
    return observation.with_trouble(_waiting_for(state), pods)


def _waiting_for(state: states.RollingBack) -> str:
    rollout = state.rollout
    able, needed = able_pods(rollout), need(state)
    if rollout.route.weight and able < needed:
        return f"{able} of {needed} pods of the stable version ready"
    if not rollout.shown:
        return f"proxies have not applied weight {rollout.route.weight} % yet"
    return "canary not removed yet"


def _prescaled(rollout: states.RolloutRecord) -> bool:
    """Whether the stable version was requested during this very rollback."""
    ask = rollout.primary
    return ask is not None and ask.at >= rollout.since and ask.version == rollout.stable


def _must_prescale(state: states.RollingBack) -> bool:
    """Once: if the stable version is not all there, or the primary was to become another."""
    rollout = state.rollout
    if _prescaled(rollout):
        return False
    pods = rollout.observed.primary if rollout.observed else None
    changed = rollout.primary is not None and rollout.primary.version != rollout.stable
    return changed or not observation.is_ready(pods, rollout.stable.revision, need(state))


def _grown(rollout: states.RolloutRecord) -> int:
    """The primary's size if the load its canary carries came on top, under an autoscaler."""
    pods = rollout.observed.primary if rollout.observed else None
    canary = rollout.observed.canary if rollout.observed else None
    weight = rollout.route.split.primary
    if not weight:
        return max(1, canary.desired if canary else 1)
    return max(1, math.ceil((pods.desired if pods else 1) * ALL / weight))


def _remove_canary(draft: DecisionBuilder, state: states.RollingBack) -> None:
    rollout = state.rollout
    if rollout.route.joined:
        draft.ask_route(PRIMARY_ONLY, "the canary has no traffic and leaves the route")
    elif rollout.removal is None:
        draft.ask_removal()
    elif canary_gone(rollout):
        draft.end_run(state.ending, state.why)
