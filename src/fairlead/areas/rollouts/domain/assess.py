"""What was observed: recorded where it matters, restored where somebody changed what is ours."""

import datetime as dt

from fairlead.areas.rollouts.domain import events, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, goal, lost
from fairlead.areas.rollouts.domain.observation import (
    NOTHING,
    UNMARKED,
    Observation,
    ObservedRoute,
)
from fairlead.areas.rollouts.domain.phases import shifting
from fairlead.areas.rollouts.domain.spec_change import primary_version
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY

GRACE = dt.timedelta(seconds=30)
"""So long after a write its absence is a delay; later, somebody undid it."""

LONG_GRACE = dt.timedelta(minutes=10)


def observe(draft: DecisionBuilder, seen: Observation) -> None:
    state = draft.state
    if not isinstance(state, states.Known):
        return
    rollout = state.rollout
    if rollout.observed is not None and seen.at < rollout.observed.at:
        # Observations can overtake each other; the older one knows nothing new.
        return
    before = rollout.observed
    if _worth_keeping(state, seen):
        draft.record(events.ObservationRecorded(seen))
    if (
        seen.route is not None
        and rollout.route_at is not None
        and seen.route.order > rollout.route_order
    ):
        _adopt_route(draft, state, seen.route)
    elif what := _route_drift(state, before, seen):
        draft.record(events.Drifted(what, draft.now))
        draft.ask_route(rollout.route, f"restoring: {what}")
    if isinstance(state, states.Idle):
        _mend_idle(draft, seen)


def is_passing(before: states.State, draft: DecisionBuilder) -> bool:
    """Whether all that came of a command is an observation that no decision depends on.

    Pods get ready one by one, and proxies show a route before they know the pods: until all of it
    is there, nothing follows, and nothing is written. What people read may be as old as the last
    observation that was requested, which is always recorded.
    """
    if (
        not isinstance(before, states.Shifting | states.Analysing)
        or before.rollout.observed is None
    ):
        return False
    if not isinstance(draft.state, states.Shifting | states.Analysing) or len(draft.steps) > 1:
        return False
    event, after = draft.steps[0][0], draft.state
    if (
        not isinstance(event, events.ObservationRecorded)
        or after.rollout.order != before.rollout.order
    ):
        return False
    asked = _asked_at(before.rollout)
    if asked is not None and before.rollout.observed.at < asked <= event.observed.at:
        return False
    return _grounds(before) == _grounds(after)


def _asked_at(rollout: states.RolloutRecord) -> dt.datetime | None:
    """When the last observation was requested in this phase, if one was."""
    if not rollout.observations or rollout.observe_at is None:
        return None
    return rollout.observe_at - states.observation_pause(rollout.observations)


def _grounds(state: states.Shifting | states.Analysing) -> tuple[object, ...]:
    """All of an observation that decides anything, here or in a rollback from here."""
    seen = state.rollout.observed
    assert seen is not None
    newcomers = [each or NOTHING for each in (seen.canary, seen.baseline)]
    carried = newcomers[0].desired if state.rollout.route.reaches_canary else 0
    stands = isinstance(state, states.Shifting) and shifting.newcomers_stand(state)
    each = tuple((pods.trouble, bool(pods.ready)) for pods in newcomers)
    return (seen.primary, each, carried, lost(state), stands)


def _worth_keeping(state: states.Known, seen: Observation) -> bool:
    """An idle rollout records nothing; a running one records changes, and each phase's first."""
    if isinstance(state, states.Idle):
        mending = state.rollout.follower is not None or (
            state.rollout.route_at is not None and state.rollout.route_at > state.rollout.since
        )
        return seen.order > state.rollout.order or (
            mending and not seen.same_as(state.rollout.observed)
        )
    before = state.rollout.observed
    if before is None or not seen.same_as(before):
        return True
    rollout = state.rollout
    asked = max(
        rollout.since, rollout.route_at or rollout.since, rollout.removal_at or rollout.since
    )
    return before.at <= asked <= seen.at and before.at < seen.at


def _adopt_route(draft: DecisionBuilder, state: states.Known, shown: ObservedRoute) -> None:
    """The proxies show a later write than we know: we made it and lost our memory since.

    It was decided with more knowledge than we have, so traffic stays where it is or rolls back;
    what is requested anew is one write away from what is shown.
    """
    what = f"the route carries a later write than this store knows: {shown.order}"
    rollout, weight = state.rollout, shown.weight
    draft.record(events.Drifted(what, draft.now))
    match state:
        case states.Promoting() | states.RollingBack():
            route = rollout.route.only(weight) if weight else PRIMARY_ONLY
        case states.Shifting() | states.Analysing() if weight < rollout.route.weight:
            draft.ask_route(rollout.route.only(weight), f"adopted: {what}")
            draft.start_rollback(f"a rollback had already started: {what}")
            return
        case states.Shifting() | states.Analysing():
            aim = goal(state)
            route = aim if weight and weight == aim.weight else rollout.route.holding(aim)
        case _:
            # A canary that has weight leaves by way of weight 0.
            route = rollout.route.holding(STANDBY) if weight else rollout.route
    draft.ask_route(route, f"adopted: {what}")


def _route_drift(state: states.Known, before: Observation | None, seen: Observation) -> str:
    """What somebody changed in our route, or nothing."""
    rollout, route = state.rollout, seen.route
    if rollout.route_at is None:
        return ""
    if route is None or route.order < rollout.route_order:
        return "the route was removed or replaced" if _undone(state, before, seen) else ""
    if route.weight != rollout.route.weight:
        return f"something else set the canary weight to {route.weight} %"
    return route.drift


def _undone(state: states.Known, before: Observation | None, seen: Observation) -> bool:
    """Whether our route had been shown and is not any more; a slow mesh undoes nothing."""
    rollout = state.rollout
    shown = before.route if before else None
    if shown is not None and shown.order == rollout.route_order:
        return True
    if seen.route == UNMARKED and not isinstance(state, states.Initializing):
        # It was ours once: somebody deleted it, and made it again just now or while we were away.
        asked = rollout.route_at or rollout.since
        return shown != UNMARKED or seen.at > asked + GRACE
    if not isinstance(state, states.Idle) or rollout.route_at is None:
        return False
    # Nobody comes here before the route was shown; a mend of it gets its time.
    mending = rollout.route_at > rollout.since
    return seen.at > rollout.route_at + LONG_GRACE if mending else seen.at > rollout.since


def _mend_idle(draft: DecisionBuilder, seen: Observation) -> None:
    """With nothing under way, the primary is the stable version and there is no canary."""
    state = draft.state
    assert isinstance(state, states.Idle)
    rollout = state.rollout
    if rollout.route.joined and rollout.shown:
        draft.ask_route(PRIMARY_ONLY, "the canary has no traffic and leaves the route")
    asked = rollout.primary.at if rollout.primary else rollout.since
    if seen.at > asked + GRACE:
        pods = seen.primary
        missing = pods is None or pods.revision != rollout.stable.revision
        scaled = pods is not None and rollout.replicas not in (None, pods.desired)
        if missing or scaled:
            draft.record(events.Drifted("something else changed the primary", draft.now))
            draft.ask_primary(primary_version(state))
    left = "canary" if seen.canary else "baseline" if seen.baseline else ""
    if left and seen.at > (rollout.removal_at or rollout.since) + GRACE:
        draft.record(events.Drifted(f"a {left} was left over", draft.now))
        draft.ask_removal()
