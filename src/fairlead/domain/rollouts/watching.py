"""At a step: times, checks, people and the group decide between on, home and a pause."""

import datetime as dt

from fairlead.domain.analysis.limits import Action, asked
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import inquiry, states
from fairlead.domain.rollouts.bonds import FULL, KEEP
from fairlead.domain.rollouts.draft import Draft, lost


def advance(draft: Draft) -> None:
    state = draft.state
    assert isinstance(state, states.Watching)
    gone = lost(state)
    if gone:
        draft.go_home(gone)
        return
    checks = inquiry.at_place(state)
    over = draft.now >= hold_until(state)
    stands = inquiry.conclusion(checks, state.inquiry, ending=over)
    match asked(stands.phase):
        case Action.ABORT:
            draft.go_home(f"{stands.phase.value} at {state.book.route.share} %: {stands.reason}")
        case Action.PAUSE:
            if state.book.paused is None:
                draft.tell(told.Paused("analysis", stands.reason, draft.now))
        case Action.GO_ON if over and may_pass(state):
            _onward(draft, state)
        case None if state.book.paused is None and draft.now >= patient_until(state):
            draft.tell(told.Paused("analysis", f"no verdict: {stands.reason}", draft.now))
        case _:
            inquiry.ask_if_due(draft, state)


def hold(state: states.Watching) -> dt.timedelta:
    return dt.timedelta() if state.run.straight else state.run.plan[state.step].pause


def hold_until(state: states.Watching) -> dt.datetime:
    return state.book.since + hold(state)


def patient_until(state: states.Watching) -> dt.datetime:
    """After its own time a step may wait so long for a verdict."""
    return state.inquiry.started + hold(state) + state.run.spec.patience


def may_pass(state: states.Watching) -> bool:
    """Whether a person had to agree, and did."""
    return state.run.straight or state.approved or not state.run.plan[state.step].approve


def _onward(draft: Draft, state: states.Watching) -> None:
    run = state.run
    if state.step == run.last:
        if state.book.paused is None and _gate_open(draft, state, KEEP):
            draft.tell(told.PromotionBegan(draft.now))
            draft.ask_primary(run.target)
        return
    step = run.last if run.straight else state.step + 1
    if not draft.held() and (step != run.last or _gate_open(draft, state, FULL)):
        draft.begin_move(step)


def _gate_open(draft: Draft, state: states.Watching, gate: str) -> bool:
    run = state.run
    if run.rules.group is None or gate in run.passed:
        return True
    if run.gate != gate:
        draft.tell(told.GateReached(gate, draft.now))
    elif draft.now >= gate_until(state):
        # Together or not at all: whoever waits too long takes everybody home.
        draft.go_home(f"the group {run.rules.group.name} did not arrive at its gate in time")
    return False


def gate_until(state: states.Watching) -> dt.datetime:
    return hold_until(state) + state.run.spec.patience * 2
