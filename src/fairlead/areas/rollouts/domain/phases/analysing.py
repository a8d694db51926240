"""At a step: times, checks, people and the group decide: continue, roll back or pause."""

import datetime as dt

from fairlead.analysis.limits import Action, asked
from fairlead.areas.rollouts.domain import check_rounds, events, states, wording
from fairlead.areas.rollouts.domain.coordination import FULL, KEEP
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder, lost


def advance(draft: DecisionBuilder) -> None:
    state = draft.state
    assert isinstance(state, states.Analysing)
    gone = lost(state)
    if gone:
        draft.start_rollback(gone)
        return
    checks = check_rounds.at_place(state)
    over = draft.now >= hold_until(state)
    stands = check_rounds.conclusion(checks, state.round, ending=over)
    match asked(stands.phase):
        case Action.ABORT:
            draft.start_rollback(
                f"{stands.phase.value.lower()} at {state.rollout.route.weight} %: {stands.reason}"
            )
        case Action.PAUSE:
            if state.rollout.paused is None:
                draft.record(events.Paused("analysis", stands.reason, draft.now))
        case Action.GO_ON if over and may_pass(state):
            _onward(draft, state)
        case None if state.rollout.paused is None and draft.now >= patient_until(state):
            draft.record(
                events.Paused(
                    "analysis", f"no verdict after {_waited(state)}: {stands.reason}", draft.now
                )
            )
        case _:
            check_rounds.ask_if_due(draft, state)


def hold(state: states.Analysing) -> dt.timedelta:
    return dt.timedelta() if state.run.skip_steps else state.run.plan[state.step].pause


def hold_until(state: states.Analysing) -> dt.datetime:
    return state.rollout.since + hold(state)


def patient_until(state: states.Analysing) -> dt.datetime:
    """After its own time a step may wait so long for a verdict."""
    return state.round.started + hold(state) + state.run.spec.patience


def _waited(state: states.Analysing) -> str:
    return wording.span(patient_until(state) - state.round.started)


def may_pass(state: states.Analysing) -> bool:
    """Whether a person had to agree, and did."""
    return state.run.skip_steps or state.approved or not state.run.plan[state.step].approve


def _onward(draft: DecisionBuilder, state: states.Analysing) -> None:
    run = state.run
    if state.step == run.last:
        if state.rollout.paused is None and _gate_open(draft, state, KEEP):
            draft.record(events.PromotionStarted(draft.now))
            draft.ask_primary(run.target, max(1, state.rollout.peak))
        return
    step = run.last if run.skip_steps else state.step + 1
    if not draft.held() and (step != run.last or _gate_open(draft, state, FULL)):
        draft.begin_move(step)


def _gate_open(draft: DecisionBuilder, state: states.Analysing, gate: str) -> bool:
    run = state.run
    if run.rules.group is None or gate in run.passed:
        return True
    if run.gate != gate:
        draft.record(events.GateReached(gate, draft.now))
    elif draft.now >= gate_until(state):
        # Together or not at all: whoever waits too long rolls everybody back.
        draft.start_rollback(f"group {run.rules.group.name} did not reach its gate in time")
    return False


def gate_until(state: states.Analysing) -> dt.datetime:
    return hold_until(state) + state.run.spec.patience * 2
