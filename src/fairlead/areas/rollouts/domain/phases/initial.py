"""The initial rollout: pods first, then the route. There is nothing to compare it with."""

from fairlead.areas.rollouts.domain import events, observation, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, is_fresh
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.traffic.routes import Route


def advance(draft: DecisionBuilder) -> None:
    rollout = draft.rollout
    if not is_fresh(rollout) or rollout.observed is None:
        return
    pods = rollout.observed.primary
    scaled_down = (
        rollout.replicas == 0 and pods is not None and pods.revision == rollout.stable.revision
    )
    if rollout.route_order:
        if rollout.shown and (scaled_down or _stands(rollout)):
            draft.record(events.WentLive(draft.now))
    elif scaled_down or _stands(rollout):
        # A route to nothing is an error page: the pods come first.
        draft.ask_route(_first_route(rollout.observed), "the initial version is ready")


def _first_route(seen: Observation) -> Route:
    """A canary of a run that nobody remembers may have weight, and leaves by way of weight 0."""
    joined, compared = seen.canary is not None, seen.baseline is not None
    return Route(joined=joined or compared, compared=compared)


def _stands(rollout: states.RolloutRecord) -> bool:
    pods = rollout.observed.primary if rollout.observed else None
    return observation.is_ready(pods, rollout.stable.revision, rollout.full)
