"""A decision while it is being made: events so far, and the state they lead to.

Every part of the way tells events here; `machine` turns them into effects, sends and timers.
"""

import dataclasses
import datetime as dt

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import memory, sight, states, steps, windows
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.spec import Version
from fairlead.domain.traffic.routes import Route


class Draft:
    """Events and where they lead."""

    def __init__(self, state: states.State, now: dt.datetime) -> None:
        self.state = state
        self.now = now
        self.steps: list[tuple[told.Event, states.State]] = []
        """Each event with the state it led to."""

    @property
    def events(self) -> tuple[told.Event, ...]:
        return tuple(event for event, _ in self.steps)

    @property
    def book(self) -> states.Book:
        assert not isinstance(self.state, states.Unknown)
        return self.state.book

    def tell(self, *events: told.Event) -> None:
        for event in events:
            self.state = memory.evolve(self.state, event)
            self.steps.append((event, self.state))

    def ask_route(self, route: Route, why: str) -> None:
        self.tell(told.RouteAsked(self.book.order + 1, route, why, self.now))

    def ask_primary(self, version: Version, at_least: int = 1) -> None:
        book, replicas = self.book, self.book.replicas
        if replicas == 0 and isinstance(self.state, states.Running):
            # Nothing is put to sleep while a run shares traffic out; it sleeps once that ends.
            replicas = 1
        self.tell(
            told.VersionAsked(book.order + 1, Slot.PRIMARY, version, replicas, at_least, self.now)
        )

    def ask_canary(self, version: Version, replicas: int) -> None:
        self.tell(
            told.VersionAsked(
                self.book.order + 1, Slot.CANARY, version, replicas, replicas, self.now
            )
        )  # fmt: skip

    def ask_baseline(self, replicas: int) -> None:
        """The stable version once more, beside the canary."""
        book = self.book
        asked = told.VersionAsked(
            book.order + 1, Slot.BASELINE, book.stable, replicas, replicas, self.now
        )
        self.tell(asked)

    def ask_removal(self) -> None:
        self.tell(told.RemovalAsked(self.book.order + 1, self.now))

    def begin_move(self, step: int) -> None:
        """On to a step: first the pods it needs, at the scale of its load."""
        assert isinstance(self.state, states.Running)
        run = self.state.run
        place = run.plan[step]
        self.tell(told.MoveBegan(step, place.share, self.now))
        scale, carries = run.spec.strategy.scale, self.book.route.reaches_canary
        need = steps.pods(scale, place.load, self.book.full)
        self.ask_canary(run.target, _no_smaller(need, self.book.canary if carries else None))
        share = place.route.split.baseline
        if share:
            carries = bool(self.book.route.split.baseline)
            need = steps.pods(scale, share, self.book.full)
            self.ask_baseline(_no_smaller(need, self.book.baseline if carries else None))

    def go_home(self, why: str, ending: told.Ending = told.Ending.TAKEN_BACK) -> None:
        """Give the canary up; before anything moved there is nothing to bring home."""
        if isinstance(self.state, states.Queued):
            self.end_run(ending, why)
        else:
            self.tell(told.HomeBegan(why, ending, self.now))

    def end_run(self, ending: told.Ending, why: str) -> None:
        assert isinstance(self.state, states.Running)
        run, unheard = self.state.run, isinstance(self.state, states.Queued)
        mark = told.RunEnded(ending, run.target, why, self.now, run.override)
        self.tell(dataclasses.replace(mark, unheard=unheard, spec=run.rules))

    def held(self) -> bool:
        """Whether a step up must wait: for a person, or for the window."""
        assert isinstance(self.state, states.Running)
        if self.book.paused is not None:
            return True
        if self.state.run.straight:
            return False
        until = windows.next_opening(self.state.run.spec.windows, self.now)
        if until is not None and until != self.book.opens:
            self.tell(told.WindowAwaited(until))
        return until is not None


def _no_smaller(need: int, before: states.Ask | None) -> int:
    """What carries traffic is never made smaller."""
    return max(need, before.at_least) if before is not None else need


def lost(state: states.Moving | states.Watching) -> str:
    """Why the canary or its baseline cannot keep what it has, or nothing."""
    book = state.book
    if not book.route.reaches_canary or book.sight is None:
        return ""
    if book.route_at is not None and book.sight.at < book.route_at:
        return ""
    if not sight.ready(book.sight.canary, state.run.target.revision):
        told = f"the canary has no ready pod at {book.route.share} %"
        return sight.with_trouble(told, book.sight.canary)
    share = book.route.split.baseline
    if share and not sight.ready(book.sight.baseline, book.stable.revision):
        told = f"the baseline has no ready pod at {share} %"
        return sight.with_trouble(told, book.sight.baseline)
    return ""


def goal(state: states.Moving | states.Watching) -> Route:
    """The step's route; a baseline that has joined stays so until the run is over."""
    route = state.run.plan[state.step].route
    return dataclasses.replace(route, compared=route.compared or state.book.route.compared)


def is_fresh(book: states.Book) -> bool:
    """Whether something was seen since we came here."""
    return book.sight is not None and book.sight.at >= book.since


def canary_gone(book: states.Book) -> bool:
    """Whether the slots of canary and baseline were seen empty after we asked for that."""
    if book.sight is None or book.removal_at is None:
        return False
    # What was seen in the very moment of asking was seen before it was done.
    empty = book.sight.canary is None and book.sight.baseline is None
    return book.sight.at > book.removal_at and empty
