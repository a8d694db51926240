"""What was observed: kept where it matters, put right where somebody else changed what is ours."""

import datetime as dt

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import moving, states
from fairlead.domain.rollouts.draft import Draft, goal, lost
from fairlead.domain.rollouts.intent import primary_version
from fairlead.domain.rollouts.sight import NOTHING, Shown, Sight
from fairlead.domain.traffic.routes import AT_HOME, STANDBY

GRACE = dt.timedelta(seconds=30)
"""So long after a write its absence is a delay; later, somebody undid it."""

LONG_GRACE = dt.timedelta(minutes=10)


def observe(draft: Draft, seen: Sight) -> None:
    state = draft.state
    if not isinstance(state, states.Known):
        return
    book = state.book
    if book.sight is not None and seen.at < book.sight.at:
        # Observations can overtake each other; the older one knows nothing new.
        return
    before = book.sight
    if _worth_keeping(state, seen):
        draft.tell(told.Sighted(seen))
    if seen.route is not None and book.route_at is not None and seen.route.order > book.route_order:
        _remember(draft, state, seen.route)
    elif what := _route_drift(state, before, seen):
        draft.tell(told.Drifted(what, draft.now))
        draft.ask_route(book.route, f"put back: {what}")
    if isinstance(state, states.Idle):
        _mend_idle(draft, seen)


def is_passing(before: states.State, draft: Draft) -> bool:
    """Whether all that came of a command is a sight on which no decision can turn.

    Pods get ready one by one, and proxies show a route before they know the pods: until all of it
    is there, nothing follows, and nothing is written. What people read of it may be as old as the
    last look that was asked for, whose sight is kept.
    """
    if not isinstance(before, states.Moving | states.Watching) or before.book.sight is None:
        return False
    if not isinstance(draft.state, states.Moving | states.Watching) or len(draft.steps) > 1:
        return False
    event, after = draft.steps[0][0], draft.state
    if not isinstance(event, told.Sighted) or after.book.order != before.book.order:
        return False
    asked = _asked_at(before.book)
    if asked is not None and before.book.sight.at < asked <= event.sight.at:
        return False
    return _grounds(before) == _grounds(after)


def _asked_at(book: states.Book) -> dt.datetime | None:
    """When the last look was asked for at this place, if one was."""
    if not book.looks or book.look_at is None:
        return None
    return book.look_at - states.look_pause(book.looks)


def _grounds(state: states.Moving | states.Watching) -> tuple[object, ...]:
    """All of a sight that a decision is made of, here or on the way home from here."""
    seen = state.book.sight
    assert seen is not None
    newcomers = [each or NOTHING for each in (seen.canary, seen.baseline)]
    carried = newcomers[0].desired if state.book.route.reaches_canary else 0
    stands = isinstance(state, states.Moving) and moving.newcomers_stand(state)
    each = tuple((pods.trouble, bool(pods.ready)) for pods in newcomers)
    return (seen.primary, each, carried, lost(state), stands)


def _worth_keeping(state: states.Known, seen: Sight) -> bool:
    """An idle rollout notes nothing; one under way notes changes, and the first look of a place."""
    if isinstance(state, states.Idle):
        mending = state.book.route_at is not None and state.book.route_at > state.book.since
        return seen.order > state.book.order or (mending and not seen.same_as(state.book.sight))
    before = state.book.sight
    if before is None or not seen.same_as(before):
        return True
    book = state.book
    asked = max(book.since, book.route_at or book.since, book.removal_at or book.since)
    return before.at <= asked <= seen.at and before.at < seen.at


def _remember(draft: Draft, state: states.Known, shown: Shown) -> None:
    """The proxies show a later write than we know: we made it and lost our memory since.

    It was decided with more knowledge than we have, so traffic stays where it is or goes home;
    what is asked anew is one write away from what is shown.
    """
    what = f"the route shows a write that is not remembered: {shown.order}"
    book, share = state.book, shown.share
    draft.tell(told.Drifted(what, draft.now))
    match state:
        case states.Promoting() | states.GoingHome():
            route = book.route.only(share) if share else AT_HOME
        case states.Moving() | states.Watching() if share < book.route.share:
            draft.ask_route(book.route.only(share), f"taken over: {what}")
            draft.go_home(f"its traffic was on the way home already: {what}")
            return
        case states.Moving() | states.Watching():
            aim = goal(state)
            route = aim if share and share == aim.share else book.route.holding(aim)
        case _:
            # A canary that has weight leaves by way of weight 0.
            route = book.route.holding(STANDBY) if share else book.route
    draft.ask_route(route, f"taken over: {what}")


def _route_drift(state: states.Known, before: Sight | None, seen: Sight) -> str:
    """What somebody changed in our route, or nothing."""
    book, route = state.book, seen.route
    if book.route_at is None:
        return ""
    if route is None or route.order < book.route_order:
        return "the route was removed or replaced" if _undone(state, before, seen) else ""
    if route.share != book.route.share:
        return f"the canary's weight was set to {route.share} by hand"
    return route.drift


def _undone(state: states.Known, before: Sight | None, seen: Sight) -> bool:
    """Whether our route had been shown and is not any more; a slow mesh undoes nothing."""
    book = state.book
    shown = before.route if before else None
    if shown is not None and shown.order == book.route_order:
        return True
    if not isinstance(state, states.Idle) or book.route_at is None:
        return False
    # Nobody comes here before the route was shown; a mend of it gets its time.
    mending = book.route_at > book.since
    return seen.at > book.route_at + LONG_GRACE if mending else seen.at > book.since


def _mend_idle(draft: Draft, seen: Sight) -> None:
    """With nothing under way, the primary is the stable version and there is no canary."""
    state = draft.state
    assert isinstance(state, states.Idle)
    book = state.book
    if book.route.joined and book.shown:
        draft.ask_route(AT_HOME, "the canary carries nothing and leaves the proxies")
    asked = book.primary.at if book.primary else book.since
    if seen.at > asked + GRACE:
        pods = seen.primary
        missing = pods is None or pods.revision != book.stable.revision
        scaled = pods is not None and book.replicas not in (None, pods.desired)
        if missing or scaled:
            draft.tell(told.Drifted("the primary was changed by hand", draft.now))
            draft.ask_primary(primary_version(state))
    left = "canary" if seen.canary else "baseline" if seen.baseline else ""
    if left and seen.at > (book.removal_at or book.since) + GRACE:
        draft.tell(told.Drifted(f"a {left} was left behind", draft.now))
        draft.ask_removal()
