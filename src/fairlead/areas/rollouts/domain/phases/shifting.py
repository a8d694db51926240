"""To the next step, in the order that loses no request.

Pods ready, then in the route at weight 0, then known to the proxies, then weight, then observed.
Each waits for an observation; a deadline that passes starts a rollback.
"""

import datetime as dt
from dataclasses import dataclass

from fairlead.areas.rollouts.domain import events, observation, states, wording
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, goal, is_fresh, lost
from fairlead.traffic.routes import rises


def advance(draft: DecisionBuilder) -> None:
    state = draft.state
    assert isinstance(state, states.Shifting)
    rollout = state.rollout
    gone = lost(state)
    if gone:
        draft.start_rollback(gone)
    elif rollout.route == goal(state):
        _until_shown(draft, state)
    elif newcomers_stand(state):
        _give_weight(draft, state)
    elif overdue(draft, state):
        draft.start_rollback(f"{waiting_for(state)} after {wording.span(state.run.spec.deadline)}")


def overdue(
    draft: DecisionBuilder, state: states.Shifting | states.Promoting | states.RollingBack
) -> bool:
    return draft.now >= due_at(state)


def due_at(state: states.Shifting | states.Promoting | states.RollingBack) -> dt.datetime:
    """When what is waited for takes too long: counted from when it was last asked for."""
    rollout = state.rollout
    asked = [rollout.since, rollout.route_at or rollout.since]
    if isinstance(state, states.Shifting) and rollout.canary is not None:
        # A step that grows in mid-shift has more pods to wait for.
        asked.append(rollout.canary.at)
    return max(asked) + state.run.spec.deadline


def waiting_for(state: states.Shifting) -> str:
    """What the shift waits for, in words."""
    rollout, newcomers = state.rollout, _newcomers(state, _fresh(state))
    late = next((each for each in newcomers if not each.is_ready), None)
    if late is not None:
        # Before the first observation of this step the last one tells: pods with traffic are some.
        told = next(each for each in _newcomers(state) if each.called == late.called)
        if told.is_ready:
            return f"observing the {told.called} pods"
        said = f"{told.ready} of {told.need} {told.called} pods ready"
        return observation.with_trouble(said, told.pods)
    if not rollout.shown:
        said = f"proxies have not applied weight {rollout.route.weight} % yet"
        return observation.with_trouble(said, newcomers[0].pods)
    unknown = next((each for each in newcomers if not each.stands), newcomers[0])
    known = unknown.pods.known if unknown.pods else 0
    said = f"proxies know {known} of {unknown.need} {unknown.called} pods"
    return observation.with_trouble(said, unknown.pods)


@dataclass(frozen=True, slots=True)
class _Newcomer:
    """A slot that is to get weight: what it must hold, and what is observed of it."""

    called: str
    revision: str
    need: int
    pods: observation.Pods | None

    @property
    def ready(self) -> int:
        return observation.ready(self.pods, self.revision)

    @property
    def is_ready(self) -> bool:
        return observation.is_ready(self.pods, self.revision, self.need)

    @property
    def stands(self) -> bool:
        return observation.stands(self.pods, self.revision, self.need)


def _fresh(state: states.Shifting) -> observation.Observation:
    """Nothing, until something was observed since the pods were requested."""
    rollout = state.rollout
    fresh = rollout.observed if is_fresh(rollout) else None
    return fresh or observation.Observation(rollout.since)


def _newcomers(
    state: states.Shifting, seen: observation.Observation | None = None
) -> tuple[_Newcomer, ...]:
    """The canary, and its baseline where this step gives it weight, as last observed."""
    rollout = state.rollout
    seen = seen or rollout.observed or observation.Observation(rollout.since)
    need = rollout.canary.at_least if rollout.canary else 1
    canary = _Newcomer("canary", state.run.target.revision, need, seen.canary)
    if rollout.baseline is None or not goal(state).split.baseline:
        return (canary,)
    beside = rollout.baseline
    return canary, _Newcomer("baseline", beside.version.revision, beside.at_least, seen.baseline)


def newcomers_stand(state: states.Shifting) -> bool:
    """Ready, in the route and known to the proxies: only then may they get weight."""
    rollout, newcomers = state.rollout, _newcomers(state, _fresh(state))
    if not rollout.route.holds(goal(state)):
        return all(each.is_ready for each in newcomers)
    return rollout.shown and all(each.stands for each in newcomers)


def _give_weight(draft: DecisionBuilder, state: states.Shifting) -> None:
    before, aim = state.rollout.route, goal(state)
    if not before.holds(aim):
        who = "the canary and its baseline are" if aim.compared else "the canary is"
        draft.ask_route(before.holding(aim), f"{who} ready: added at weight 0")
    elif not rises(before, aim) or not draft.held():
        draft.ask_route(aim, f"step {state.step + 1} of {len(state.run.plan)}")


def _until_shown(draft: DecisionBuilder, state: states.Shifting) -> None:
    rollout = state.rollout
    seen = rollout.observed.at if rollout.observed else None
    if (
        rollout.shown
        and seen is not None
        and rollout.route_at is not None
        and seen >= rollout.route_at
    ):
        draft.record(events.StepReached(state.step, rollout.route.weight, draft.now))
    elif overdue(draft, state):
        draft.start_rollback(f"{waiting_for(state)} after {wording.span(state.run.spec.deadline)}")
