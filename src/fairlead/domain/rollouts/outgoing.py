"""From events to what leaves the machine: effects, messages to its bonds, and the next waking."""

import datetime as dt
from collections.abc import Iterator

from fairlead.domain.rollouts import bonds, inquiry, messages, queueing, states, watching
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts.homing import PATIENCE
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.spec import Spec
from fairlead.engine.messages import Send

ASK_AGAIN_FROM = 3
"""From this look on, what was not seen to happen is asked again: the errand may lie dead."""


def effects_of(event: told.Event, after: states.State) -> Iterator[messages.Effect]:
    """What this event asks of the world."""
    if isinstance(after, states.Unknown):
        return
    book = after.book
    match event:
        case told.VersionAsked():
            yield _ensure(book, event.slot)
        case told.RouteAsked(order, route):
            yield messages.SetRoute(book.name, order, route)
        case told.RemovalAsked(order):
            yield messages.RemoveCanary(book.name, order)
        case told.LookAsked() | told.Adopted() | told.RunQueued():
            yield from _look(book, event)
        case told.MeasureAsked():
            assert isinstance(after, states.Queued | states.Watching)
            yield _measure(after, event)
        case told.RunEnded(override=True):
            yield messages.ResetOverride(book.name)
        case told.Removed():
            yield messages.LetGo(book.name, book.order + 1)
        case _:
            pass
    yield from _news(event, book)


def sends_of(event: told.Event, after: states.State) -> Iterator[Send]:
    """What this event tells the limiter and the group."""
    if isinstance(after, states.Unknown):
        return
    name, run = after.book.name, after.run if isinstance(after, states.Running) else None
    match event:
        case told.RunQueued() if run is not None:
            yield from _join(name, run)
        case told.Straightened() if run is not None:
            yield from _excuse(name, run.spec)
        case told.SlotAsked() if run is not None:
            yield from _claim(name, run)
        case told.GateReached() if run is not None:
            yield from _arrive(name, run)
        case told.Adopted() if run is not None:
            # With our memory theirs was lost: they hear again where we stand.
            yield from _claim(name, run)
            yield from _join(name, run) if not isinstance(after, states.GoingHome) else ()
            yield from _arrive(name, run)
        case told.HomeBegan(why) if run is not None and bonds.KEEP not in run.passed:
            yield from _leave(name, run.rules, why)
        case told.RunEnded(spec=Spec() as spec, unheard=unheard, why=why):
            yield from _release(name, spec)
            yield from _leave(name, spec, why) if unheard else ()
        case _:
            pass


def wake_at(state: states.State, now: dt.datetime) -> dt.datetime | None:
    """The next moment that may change something by itself."""
    moments = (moment for moment in _moments(state, now) if moment is not None and moment > now)
    return min(moments, default=None)


def look_at(state: states.State) -> dt.datetime | None:
    """When to look by ourselves, if nobody tells us anything."""
    match state:
        case states.Founding() | states.Moving() | states.Promoting() | states.GoingHome():
            return state.book.look_at or state.book.since + states.FIRST_LOOK
        case states.Queued() if queueing.must_look(state):
            return state.book.look_at or state.book.since + states.FIRST_LOOK
        case states.Watching():
            return (state.book.look_at or state.book.since) + states.SELDOM
        case _:
            return None


def _moments(state: states.State, now: dt.datetime) -> Iterator[dt.datetime | None]:
    look = look_at(state)
    # A look that was due while nobody lived is due soon, not never.
    yield max(look, now + states.FIRST_LOOK) if look is not None and look <= now else look
    if not isinstance(state, states.Running):
        return
    book, run = state.book, state.run
    yield book.opens
    match state:
        case states.Queued():
            if book.paused is None and (run.slot or run.spec.limiter is None):
                yield _next_check(state)
        case states.Moving() | states.Promoting():
            yield max(book.since, book.route_at or book.since) + run.spec.deadline
        case states.GoingHome():
            yield max(book.since, book.route_at or book.since) + run.spec.deadline
            yield book.since + PATIENCE
        case states.Watching():
            yield watching.hold_until(state)
            yield watching.patient_until(state)
            yield watching.gate_until(state) if run.gate else None
            yield _next_check(state)


def _next_check(state: states.Queued | states.Watching) -> dt.datetime | None:
    due = inquiry.next_due(inquiry.at_place(state), state.inquiry)
    return due[1] if due else None


def _ensure(book: states.Book, slot: Slot) -> messages.EnsureVersion:
    ask = _asked(book)[slot]
    assert ask is not None
    return messages.EnsureVersion(
        book.name, ask.order, slot, ask.version, ask.replicas, ask.at_least
    )


def _asked(book: states.Book) -> dict[Slot, states.Ask | None]:
    return {Slot.PRIMARY: book.primary, Slot.CANARY: book.canary, Slot.BASELINE: book.baseline}


def _look(book: states.Book, event: told.Event) -> Iterator[messages.Effect]:
    if isinstance(event, told.RunQueued) and book.replicas is not None:
        return
    if book.looks >= ASK_AGAIN_FROM:
        # Each carries its first order, so one that was performed meanwhile changes nothing.
        for slot, ask in _asked(book).items():
            if ask is not None:
                yield _ensure(book, slot)
        if book.route_order and not book.shown:
            yield messages.SetRoute(book.name, book.route_order, book.route)
        if book.removal is not None:
            yield messages.RemoveCanary(book.name, book.removal)
    yield messages.Look(book.name)


def _measure(state: states.Queued | states.Watching, event: told.MeasureAsked) -> messages.Measure:
    book, run = state.book, state.run
    checks = tuple(check for check in inquiry.at_place(state) if check.name in event.checks)
    control = Slot.BASELINE if book.route.split.baseline else Slot.PRIMARY
    return messages.Measure(
        book.name, event.ticket, checks, book.stable, run.target, book.route.share, book.since,
        control,
    )  # fmt: skip


def _claim(name: str, run: states.Run) -> Iterator[Send]:
    limiter = run.spec.limiter
    if limiter is not None and run.slot_asked:
        yield Send(bonds.limiter_stream(limiter.name), bonds.Claim(name, limiter.cap))


def _release(name: str, spec: Spec) -> Iterator[Send]:
    if spec.limiter is not None:
        yield Send(bonds.limiter_stream(spec.limiter.name), bonds.Release(name))


def _join(name: str, run: states.Run) -> Iterator[Send]:
    group = run.rules.group
    if group is not None and bonds.KEEP not in run.passed:
        join = bonds.Join(group.me or name, name, kept=bonds.FULL in run.passed)
        yield Send(bonds.group_stream(group.name), join)


def _arrive(name: str, run: states.Run) -> Iterator[Send]:
    group = run.rules.group
    if group is not None and run.gate:
        arrive = bonds.Arrive(group.me or name, run.gate, group.members)
        yield Send(bonds.group_stream(group.name), arrive)


def _leave(name: str, spec: Spec, why: str) -> Iterator[Send]:
    if spec.group is not None:
        leave = bonds.Leave(spec.group.me or name, why)
        yield Send(bonds.group_stream(spec.group.name), leave)


def _excuse(name: str, spec: Spec) -> Iterator[Send]:
    if spec.group is not None:
        excuse = bonds.Excuse(spec.group.me or name)
        yield Send(bonds.group_stream(spec.group.name), excuse)


def _news(event: told.Event, book: states.Book) -> Iterator[messages.Notify]:
    """What people want to hear of."""
    match event:
        case told.RunQueued(errand=errand, at=at):
            yield messages.Notify(book.name, "RolloutStarted", errand.why, at)
        case told.StepReached(share=share, at=at):
            yield messages.Notify(book.name, "StepReached", f"the canary has {share} %", at)
        case told.Paused(why=why, at=at):
            yield messages.Notify(book.name, "Paused", why, at)
        case told.Stalled(why=why, at=at):
            yield messages.Notify(book.name, "Stalled", why, at)
        case told.HomeBegan(why=why, at=at):
            yield messages.Notify(book.name, "GoingHome", why, at)
        case told.Drifted(what=what, at=at):
            yield messages.Notify(book.name, "Drifted", what, at)
        case told.RunEnded(ending=ending, why=why, at=at):
            yield messages.Notify(book.name, ending.value, why, at)
        case _:
            pass
