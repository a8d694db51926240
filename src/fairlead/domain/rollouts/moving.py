"""To the next step, in the order that loses no request.

Pods ready, then the mesh told of them at weight 0, then known there, then weight, then seen.
Each waits for what was observed; time alone only ends the waiting, and then the way is home.
"""

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import sight, states
from fairlead.domain.rollouts.draft import Draft, is_fresh, lost
from fairlead.domain.traffic.routes import STANDBY, rises


def advance(draft: Draft) -> None:
    state = draft.state
    assert isinstance(state, states.Moving)
    book = state.book
    gone = lost(state)
    if gone:
        draft.go_home(gone)
    elif book.route == state.run.plan[state.step].route:
        _until_shown(draft, state)
    elif _canary_stands(state):
        _give_weight(draft, state)
    elif overdue(draft, state):
        draft.go_home(f"{waiting_for(state)} after {state.run.spec.deadline}")


def overdue(draft: Draft, state: states.Moving | states.Promoting | states.GoingHome) -> bool:
    book = state.book
    since = max(book.since, book.route_at or book.since)
    return draft.now >= since + state.run.spec.deadline


def waiting_for(state: states.Moving) -> str:
    """What the move waits for, in words."""
    pods = state.book.sight.canary if state.book.sight and is_fresh(state.book) else None
    return sight.with_trouble(_waiting_for(state), pods)


def _waiting_for(state: states.Moving) -> str:
    book = state.book
    need = book.canary.at_least if book.canary else 1
    pods = book.sight.canary if book.sight and is_fresh(book) else None
    if not sight.is_ready(pods, state.run.target.revision, need):
        return f"{sight.ready(pods, state.run.target.revision)} of {need} canary pods ready"
    if not book.shown:
        return f"the proxies do not show {book.route.share} % yet"
    known = pods.known if pods else 0
    return f"the mesh knows {known} of {need} canary pods"


def _canary_stands(state: states.Moving) -> bool:
    """Ready, joined and known: only then may it get a share."""
    book = state.book
    need = book.canary.at_least if book.canary else 1
    if book.sight is None or not is_fresh(book):
        return False
    pods, revision = book.sight.canary, state.run.target.revision
    if not book.route.joined:
        return sight.is_ready(pods, revision, need)
    return book.shown and sight.stands(pods, revision, need)


def _give_weight(draft: Draft, state: states.Moving) -> None:
    if not state.book.route.joined:
        draft.ask_route(STANDBY, "the canary is ready and joins at weight 0")
        return
    step = state.run.plan[state.step]
    if not rises(state.book.route, step.route) or not draft.held():
        draft.ask_route(step.route, f"step {state.step + 1} of {len(state.run.plan)}")


def _until_shown(draft: Draft, state: states.Moving) -> None:
    book = state.book
    seen = book.sight.at if book.sight else None
    if book.shown and seen is not None and book.route_at is not None and seen >= book.route_at:
        draft.tell(told.StepReached(state.step, book.route.share, draft.now))
    elif overdue(draft, state):
        draft.go_home(f"{waiting_for(state)} after {state.run.spec.deadline}")
