"""The last part: the primary becomes the new version while the canary has all traffic.

Only when the new primary is ready does traffic return to it, in steps where the strategy says so;
if it loses its pods meanwhile, the canary, which still runs, takes all traffic again.
"""

from fairlead.areas.rollouts.domain import events, observation, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, canary_gone, is_fresh
from fairlead.areas.rollouts.domain.phases.shifting import overdue
from fairlead.traffic.routes import PRIMARY_ONLY
from fairlead.values import ALL


def advance(draft: DecisionBuilder) -> None:
    state = draft.state
    assert isinstance(state, states.Promoting)
    rollout = state.rollout
    if _must_turn_back(state):
        draft.ask_route(
            rollout.route.only(ALL), "the primary has no ready pod; the canary has some"
        )
    elif _canary_lost_pods(state):
        draft.ask_route(rollout.route.only(0), "the canary has no ready pod; the primary has some")
    elif rollout.removal is not None:
        if canary_gone(rollout):
            draft.end_run(events.Ending.PROMOTED, f"{state.run.target} has all traffic")
    elif rollout.route.weight == 0 and rollout.shown:
        _remove_canary(draft)
    elif _may_return(state) and rollout.paused is None:
        draft.ask_route(rollout.route.only(_next_weight(state)), "the new primary is ready")
    elif _may_return(state):
        pass
    elif not state.stalled and overdue(draft, state):
        draft.record(events.Stalled(waiting_for(state), draft.now))


def _may_return(state: states.Promoting) -> bool:
    weight = state.rollout.route.weight
    return bool(
        weight and state.rollout.shown and primary_is_ready(state) and _next_weight(state) < weight
    )


def primary_is_ready(state: states.Promoting) -> bool:
    rollout = state.rollout
    pods = rollout.observed.primary if rollout.observed and is_fresh(rollout) else None
    return observation.stands(pods, state.run.target.revision, rollout.full)


def waiting_for(state: states.Promoting) -> str:
    pods = (
        state.rollout.observed.primary
        if state.rollout.observed and is_fresh(state.rollout)
        else None
    )
    return observation.with_trouble(_waiting_for(state), pods)


def _waiting_for(state: states.Promoting) -> str:
    rollout = state.rollout
    if not primary_is_ready(state):
        pods = rollout.observed.primary if rollout.observed and is_fresh(rollout) else None
        count = observation.ready(pods, state.run.target.revision)
        return f"{count} of {rollout.full} pods of the new primary ready"
    if not rollout.shown:
        return f"proxies have not applied weight {rollout.route.weight} % yet"
    if rollout.route.weight:
        return f"{rollout.full} of {rollout.peak} pods that carry all traffic"
    return "canary not removed yet"


def _must_turn_back(state: states.Promoting) -> bool:
    rollout = state.rollout
    if rollout.observed is None or not is_fresh(rollout) or not rollout.route.joined:
        return False
    if rollout.route.weight == ALL:
        return False
    revision = state.run.target.revision
    primary, canary = rollout.observed.primary, rollout.observed.canary
    return not observation.ready(primary, revision) and bool(observation.ready(canary, revision))


def _canary_lost_pods(state: states.Promoting) -> bool:
    rollout = state.rollout
    if rollout.observed is None or not is_fresh(rollout) or not rollout.route.weight:
        return False
    revision = state.run.target.revision
    primary, canary = rollout.observed.primary, rollout.observed.canary
    return not observation.ready(canary, revision) and bool(observation.ready(primary, revision))


def _next_weight(state: states.Promoting) -> int:
    rollout = state.rollout
    planned = [each for each in state.run.spec.strategy.promotion if each < rollout.route.weight]
    return max(planned[0] if planned else 0, _beyond(rollout))


def _beyond(rollout: states.RolloutRecord) -> int:
    """The weight that the primary's pods cannot carry yet, where an autoscaler made it smaller.

    Each may get a quarter more than it had: with no more than that, no autoscaler adds any.
    """
    pods = rollout.observed.primary if rollout.observed else None
    if rollout.replicas is not None or pods is None or pods.known >= rollout.peak:
        return 0
    return max(0, ALL - ALL * pods.known * 5 // (4 * rollout.peak))


def _remove_canary(draft: DecisionBuilder) -> None:
    if draft.rollout.route.joined:
        draft.ask_route(PRIMARY_ONLY, "the canary has no traffic and leaves the route")
    else:
        draft.ask_removal()
