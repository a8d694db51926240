"""To the next step, in the order that loses no request.

Pods ready, then the mesh told of them at weight 0, then known there, then weight, then seen.
Each waits for what was observed; time alone only ends the waiting, and then the way is home.
"""

from dataclasses import dataclass

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import sight, states
from fairlead.domain.rollouts.draft import Draft, goal, is_fresh, lost
from fairlead.domain.traffic.routes import rises


def advance(draft: Draft) -> None:
    state = draft.state
    assert isinstance(state, states.Moving)
    book = state.book
    gone = lost(state)
    if gone:
        draft.go_home(gone)
    elif book.route == goal(state):
        _until_shown(draft, state)
    elif newcomers_stand(state):
        _give_weight(draft, state)
    elif overdue(draft, state):
        draft.go_home(f"{waiting_for(state)} after {state.run.spec.deadline}")


def overdue(draft: Draft, state: states.Moving | states.Promoting | states.GoingHome) -> bool:
    book = state.book
    since = max(book.since, book.route_at or book.since)
    return draft.now >= since + state.run.spec.deadline


def waiting_for(state: states.Moving) -> str:
    """What the move waits for, in words."""
    newcomers = _newcomers(state)
    late = next((each for each in newcomers if not each.is_ready), None)
    if late is not None:
        told = f"{late.ready} of {late.need} {late.called} pods ready"
        return sight.with_trouble(told, late.pods)
    book = state.book
    if not book.shown:
        told = f"the proxies do not show {book.route.share} % yet"
        return sight.with_trouble(told, newcomers[0].pods)
    unknown = next((each for each in newcomers if not each.stands), newcomers[0])
    known = unknown.pods.known if unknown.pods else 0
    told = f"the mesh knows {known} of {unknown.need} {unknown.called} pods"
    return sight.with_trouble(told, unknown.pods)


@dataclass(frozen=True, slots=True)
class _Newcomer:
    """A slot that is to get a share: what it must hold, and what is seen of it."""

    called: str
    revision: str
    need: int
    pods: sight.Pods | None

    @property
    def ready(self) -> int:
        return sight.ready(self.pods, self.revision)

    @property
    def is_ready(self) -> bool:
        return sight.is_ready(self.pods, self.revision, self.need)

    @property
    def stands(self) -> bool:
        return sight.stands(self.pods, self.revision, self.need)


def _newcomers(state: states.Moving) -> tuple[_Newcomer, ...]:
    """The canary, and its baseline where this step gives it a share."""
    book = state.book
    seen = book.sight if book.sight and is_fresh(book) else sight.Sight(book.since)
    need = book.canary.at_least if book.canary else 1
    canary = _Newcomer("canary", state.run.target.revision, need, seen.canary)
    if book.baseline is None or not goal(state).split.baseline:
        return (canary,)
    beside = book.baseline
    return canary, _Newcomer("baseline", beside.version.revision, beside.at_least, seen.baseline)


def newcomers_stand(state: states.Moving) -> bool:
    """Ready, joined and known: only then may they get a share."""
    book, newcomers = state.book, _newcomers(state)
    if not book.route.holds(goal(state)):
        return all(each.is_ready for each in newcomers)
    return book.shown and all(each.stands for each in newcomers)


def _give_weight(draft: Draft, state: states.Moving) -> None:
    before, aim = state.book.route, goal(state)
    if not before.holds(aim):
        who = "the canary and its baseline are" if aim.compared else "the canary is"
        draft.ask_route(before.holding(aim), f"{who} ready: joined at weight 0")
    elif not rises(before, aim) or not draft.held():
        draft.ask_route(aim, f"step {state.step + 1} of {len(state.run.plan)}")


def _until_shown(draft: Draft, state: states.Moving) -> None:
    book = state.book
    seen = book.sight.at if book.sight else None
    if book.shown and seen is not None and book.route_at is not None and seen >= book.route_at:
        draft.tell(told.StepReached(state.step, book.route.share, draft.now))
    elif overdue(draft, state):
        draft.go_home(f"{waiting_for(state)} after {state.run.spec.deadline}")
