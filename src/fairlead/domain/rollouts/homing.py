"""The way home: as much traffic as the stable version can carry, at once; then the canary goes.

Nothing holds this way: no pause, no window, no limit. It ends only when it is walked.
"""

import datetime as dt
import math

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import sight, states
from fairlead.domain.rollouts.draft import Draft, canary_gone
from fairlead.domain.rollouts.moving import overdue
from fairlead.domain.traffic.routes import AT_HOME, Route
from fairlead.domain.values import ALL

PATIENCE = dt.timedelta(minutes=1)
"""How long a canary that was given up may help out while the primary grows."""


def advance(draft: Draft) -> None:
    state = draft.state
    assert isinstance(state, states.GoingHome)
    book = state.book
    if _must_prescale(state):
        draft.ask_primary(book.stable, need(state))
        return
    goal = _homeward(state, allowed_share(state, draft.now))
    if book.route.reaches_canary and book.route != goal:
        draft.ask_route(goal, f"going home: {state.why}")
    elif book.route.share == 0 and book.shown:
        _let_canary_go(draft, state)
    if not draft.events and not state.stalled and overdue(draft, state):
        draft.tell(told.Stalled(waiting_for(state), draft.now))


def need(state: states.GoingHome) -> int:
    """How many pods of the stable version carry all traffic."""
    book = state.book
    if book.primary is not None and _prescaled(book):
        return max(book.primary.at_least, book.replicas or 0)
    if book.replicas is not None:
        return max(1, book.replicas)
    return _grown(book)


def allowed_share(state: states.GoingHome, now: dt.datetime) -> int:
    """What the canary keeps for now: only what the stable version cannot carry yet."""
    book = state.book
    share = book.route.share
    if book.sight is None or share == 0:
        return share
    able = able_pods(book)
    helps = sight.ready(book.sight.canary, state.run.target.revision)
    needed = need(state)
    if able >= needed or not helps:
        return 0
    if able == 0:
        return share
    if now >= book.since + PATIENCE:
        return 0
    return min(share, ALL - ALL * able // needed)


def _homeward(state: states.GoingHome, share: int) -> Route:
    book = state.book
    if share and book.route.split.baseline and not able_pods(book):
        # The baseline is the stable version too, and now all of it that may answer.
        return book.route
    return book.route.only(share)


def able_pods(book: states.Book) -> int:
    """Ready pods of the stable version that will stay what they are.

    A promotion that was undone may have left its errand behind: the primary still looks like the
    old version, and is replaced the moment after. So our later errand must be seen performed.
    """
    pods = book.sight.primary if book.sight else None
    if pods is None or pods.order < book.primary_from:
        return 0
    return sight.ready(pods, book.stable.revision)


def waiting_for(state: states.GoingHome) -> str:
    pods = state.book.sight.primary if state.book.sight else None
    return sight.with_trouble(_waiting_for(state), pods)


def _waiting_for(state: states.GoingHome) -> str:
    book = state.book
    able, needed = able_pods(book), need(state)
    if book.route.share and able < needed:
        return f"{able} of {needed} pods of the stable version ready"
    if not book.shown:
        return f"the proxies do not show {book.route.share} % yet"
    return "the canary to leave"


def _prescaled(book: states.Book) -> bool:
    """Whether the stable version was asked for on this very way home."""
    ask = book.primary
    return ask is not None and ask.at >= book.since and ask.version == book.stable


def _must_prescale(state: states.GoingHome) -> bool:
    """Once: if the stable version is not all there, or the primary was to become another."""
    book = state.book
    if _prescaled(book):
        return False
    pods = book.sight.primary if book.sight else None
    changed = book.primary is not None and book.primary.version != book.stable
    return changed or not sight.is_ready(pods, book.stable.revision, need(state))


def _grown(book: states.Book) -> int:
    """The primary's size if the load its canary carries came on top, under an autoscaler."""
    pods = book.sight.primary if book.sight else None
    canary = book.sight.canary if book.sight else None
    share = book.route.split.primary
    if not share:
        return max(1, canary.desired if canary else 1)
    return max(1, math.ceil((pods.desired if pods else 1) * ALL / share))


def _let_canary_go(draft: Draft, state: states.GoingHome) -> None:
    book = state.book
    if book.route.joined:
        draft.ask_route(AT_HOME, "the canary carries nothing and leaves the proxies")
    elif book.removal is None:
        draft.ask_removal()
    elif canary_gone(book):
        draft.end_run(state.ending, state.why)
