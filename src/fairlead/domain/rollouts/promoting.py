"""The last part: the primary becomes the new version while the canary carries everything.

Only when the re-made primary stands does traffic go back to it, in steps if so asked; if it
loses its pods on the way, the canary, which is still there, takes everything again.
"""

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import sight, states
from fairlead.domain.rollouts.draft import Draft, canary_gone, is_fresh
from fairlead.domain.rollouts.moving import overdue
from fairlead.domain.traffic.routes import AT_HOME
from fairlead.domain.values import ALL


def advance(draft: Draft) -> None:
    state = draft.state
    assert isinstance(state, states.Promoting)
    book = state.book
    if _must_turn_back(state):
        draft.ask_route(book.route.only(ALL), "the primary lost its pods; the canary still stands")
    elif _canary_fell(state):
        draft.ask_route(book.route.only(0), "the canary lost its pods; the new primary has some")
    elif book.removal is not None:
        if canary_gone(book):
            draft.end_run(told.Ending.PROMOTED, f"{state.run.target} carries all traffic")
    elif book.route.share == 0 and book.shown:
        _let_canary_go(draft)
    elif book.route.share and book.shown and primary_stands(state):
        if book.paused is None:
            draft.ask_route(book.route.only(_next_share(state)), "the new primary stands")
    elif not state.stalled and overdue(draft, state):
        draft.tell(told.Stalled(waiting_for(state), draft.now))


def primary_stands(state: states.Promoting) -> bool:
    book = state.book
    seen = book.sight.primary if book.sight and is_fresh(book) else None
    return sight.stands(seen, state.run.target.revision, book.full)


def waiting_for(state: states.Promoting) -> str:
    pods = state.book.sight.primary if state.book.sight and is_fresh(state.book) else None
    return sight.with_trouble(_waiting_for(state), pods)


def _waiting_for(state: states.Promoting) -> str:
    book = state.book
    if not primary_stands(state):
        pods = book.sight.primary if book.sight and is_fresh(book) else None
        count = sight.ready(pods, state.run.target.revision)
        return f"{count} of {book.full} pods of the new primary ready"
    if not book.shown:
        return f"the proxies do not show {book.route.share} % yet"
    return "the canary to leave"


def _must_turn_back(state: states.Promoting) -> bool:
    book = state.book
    if book.sight is None or not is_fresh(book) or not book.route.joined:
        return False
    if book.route.share == ALL:
        return False
    revision = state.run.target.revision
    primary, canary = book.sight.primary, book.sight.canary
    return not sight.ready(primary, revision) and bool(sight.ready(canary, revision))


def _canary_fell(state: states.Promoting) -> bool:
    book = state.book
    if book.sight is None or not is_fresh(book) or not book.route.share:
        return False
    revision = state.run.target.revision
    primary, canary = book.sight.primary, book.sight.canary
    return not sight.ready(canary, revision) and bool(sight.ready(primary, revision))


def _next_share(state: states.Promoting) -> int:
    shares = [each for each in state.run.spec.strategy.promotion if each < state.book.route.share]
    return shares[0] if shares else 0


def _let_canary_go(draft: Draft) -> None:
    if draft.book.route.joined:
        draft.ask_route(AT_HOME, "the canary carries nothing and leaves the proxies")
    else:
        draft.ask_removal()
