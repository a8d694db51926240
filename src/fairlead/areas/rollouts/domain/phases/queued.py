"""Before a run starts: a slot of the limiter, an open window, start checks, no pause."""

from fairlead.analysis.limits import Action, asked
from fairlead.areas.rollouts.domain import check_rounds, events, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, is_fresh


def begin_due(draft: DecisionBuilder) -> None:
    """From Idle: what is due gets a run of its own; without one, what is to sleep may do so."""
    rollout = draft.rollout
    if rollout.due is not None:
        draft.record(events.RunQueued(rollout.runs + 1, rollout.due, rollout.spec, draft.now))
    elif rollout.replicas == 0 and rollout.primary is not None and rollout.primary.replicas:
        draft.ask_primary(rollout.stable)


def advance(draft: DecisionBuilder) -> None:
    state = draft.state
    assert isinstance(state, states.Queued)
    if not _has_room(draft, state) or draft.held() or must_observe(state):
        return
    checks = check_rounds.at_place(state)
    stands = check_rounds.conclusion(checks, state.round)
    match asked(stands.phase):
        case Action.GO_ON:
            draft.begin_move(state.run.last if state.run.skip_steps else 0)
        case Action.ABORT:
            draft.end_run(events.Ending.ROLLED_BACK, f"start checks failed: {stands.reason}")
        case Action.PAUSE:
            draft.record(events.Paused("analysis", stands.reason, draft.now))
        case None:
            check_rounds.ask_if_due(draft, state)


def must_observe(state: states.Queued) -> bool:
    """Under an autoscaler, only an observation shows how many pods serve all traffic today."""
    return state.rollout.replicas is None and not is_fresh(state.rollout)


def _has_room(draft: DecisionBuilder, state: states.Queued) -> bool:
    limiter = state.run.spec.limiter
    if limiter is None or state.run.slot:
        return True
    if not state.run.slot_asked:
        draft.record(events.SlotRequested(limiter.name))
    return False
