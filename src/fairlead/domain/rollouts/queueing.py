"""Before a run begins: room under the limiter, an open window, start checks, nobody's pause."""

from fairlead.domain.analysis.limits import Action, asked
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import inquiry, states
from fairlead.domain.rollouts.draft import Draft, is_fresh


def begin_due(draft: Draft) -> None:
    """From Idle: what is due gets a run of its own."""
    book = draft.book
    if book.due is not None:
        draft.tell(told.RunQueued(book.runs + 1, book.due, book.spec, draft.now))


def advance(draft: Draft) -> None:
    state = draft.state
    assert isinstance(state, states.Queued)
    if not _has_room(draft, state) or draft.held() or must_look(state):
        return
    checks = inquiry.at_place(state)
    stands = inquiry.conclusion(checks, state.inquiry)
    match asked(stands.phase):
        case Action.GO_ON:
            draft.begin_move(state.run.last if state.run.straight else 0)
        case Action.ABORT:
            draft.end_run(told.Ending.TAKEN_BACK, f"refused before it began: {stands.reason}")
        case Action.PAUSE:
            draft.tell(told.Paused("analysis", stands.reason, draft.now))
        case None:
            inquiry.ask_if_due(draft, state)


def must_look(state: states.Queued) -> bool:
    """Under an autoscaler, only a look tells how many pods carry all traffic today."""
    return state.book.replicas is None and not is_fresh(state.book)


def _has_room(draft: Draft, state: states.Queued) -> bool:
    limiter = state.run.spec.limiter
    if limiter is None or state.run.slot:
        return True
    if not state.run.slot_asked:
        draft.tell(told.SlotAsked(limiter.name))
    return False
