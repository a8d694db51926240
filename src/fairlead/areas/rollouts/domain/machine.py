"""A rollout's life: facts come in, the next part of the way follows from them.

Each command is first taken for what it says; then every part of the way that can be walked from
there is walked, until something must be waited for. What leaves the machine follows from the
events (`outgoing`), so no effect is without its reason.
"""

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import (
    founding,
    homing,
    inquiry,
    intent,
    memory,
    messages,
    moving,
    outgoing,
    outlook,
    promoting,
    queueing,
    shapes,
    states,
    verbs,
    view,
    watching,
)
from fairlead.domain.rollouts.draft import Draft
from fairlead.engine import machine
from fairlead.engine.messages import CancelTimer, Decision, SetTimer

WAKE = "wake"
MOST_PARTS = 32
"""More parts of the way in one decision are a circle, and a fault of ours."""

_WAYS: dict[type, Callable[[Draft], None]] = {
    states.Founding: founding.advance,
    states.Idle: queueing.begin_due,
    states.Queued: queueing.advance,
    states.Moving: moving.advance,
    states.Watching: watching.advance,
    states.Promoting: promoting.advance,
    states.GoingHome: homing.advance,
}


def decide(state: states.State, command: messages.Command, now: datetime) -> Decision:
    draft = Draft(state, now)
    _take(draft, command)
    _walk(draft)
    ticked = isinstance(command, messages.Tick)
    if ticked and not draft.steps and outgoing.wake_at(state, now) is not None:
        draft.tell(told.Woke(now))
    if not draft.steps or outlook.is_passing(state, draft):
        return Decision()
    effects = [each for step in draft.steps for each in outgoing.effects_of(*step)]
    sends = [each for step in draft.steps for each in outgoing.sends_of(*step)]
    shown = _shown(draft, state)
    if view.essence(draft.state) != view.essence(shown) and not _is_over(draft.state):
        book = draft.book
        status = view.status(draft.state)
        effects.append(messages.PublishStatus(book.name, book.serial, status))
    return Decision(draft.events, tuple(effects), tuple(sends), _timers(state, draft, again=ticked))


def ended(state: states.State) -> bool:
    return isinstance(state, states.Gone)


ROLLOUT: machine.Machine[states.State, messages.Command, told.Event] = machine.Machine(
    name="rollout",
    initial=states.Unknown(),
    decide=decide,
    evolve=memory.evolve,
    ended=ended,
    vocabulary=machine.Vocabulary(
        states.State, messages.Command, told.Event, messages.Effect
    ),
)  # fmt: skip


def _take(draft: Draft, command: messages.Command) -> None:
    match command:
        case messages.Want():
            intent.want(draft, command)
        case messages.Observed(sight):
            outlook.observe(draft, sight)
        case messages.Judged(ticket, findings):
            inquiry.answer(draft, ticket, findings)
        case messages.Tick():
            _look_if_due(draft)
        case messages.Delete():
            _delete(draft)
        case messages.Adopt(status):
            _adopt(draft, status)
        case messages.Grant() | messages.GoTogether() | messages.PartWays():
            _hear(draft, command)
        case _:
            verbs.obey(draft, command)


def _walk(draft: Draft) -> None:
    for _ in range(MOST_PARTS):
        before = len(draft.steps)
        way = _WAYS.get(type(draft.state))
        if way is not None:
            way(draft)
        if len(draft.steps) == before:
            return
    raise AssertionError(f"walks in a circle: {draft.events[-4:]}")


def _look_if_due(draft: Draft) -> None:
    due = outgoing.look_at(draft.state)
    if due is None or due > draft.now:
        return
    nth = draft.book.looks + 1
    draft.tell(told.LookAsked(nth, draft.now, draft.now + states.look_pause(nth)))


def _hear(draft: Draft, said: messages.Grant | messages.GoTogether | messages.PartWays) -> None:
    """What the limiter and the group say; out of place it means nothing, and is no error."""
    state = draft.state
    match said:
        case messages.Grant():
            if isinstance(state, states.Queued) and state.run.slot_asked and not state.run.slot:
                draft.tell(told.SlotGranted())
        case messages.GoTogether(gate):
            if isinstance(state, states.Watching) and state.run.gate == gate:
                draft.tell(told.GatePassed(gate))
        case messages.PartWays(why):
            together = isinstance(state, states.Queued | states.Moving | states.Watching)
            if together and isinstance(state, states.Running) and not state.run.straight:
                draft.go_home(why)
        case unreachable:
            assert_never(unreachable)


def _delete(draft: Draft) -> None:
    """Gone at once: whoever owns the children collects them, and nothing is made or changed."""
    state = draft.state
    if not isinstance(state, states.Known):
        return
    if isinstance(state, states.Running):
        # Without its override: there is no object left whose flag could be reset.
        mark = told.RunEnded(told.Ending.TAKEN_BACK, state.run.target, "deleted", draft.now)
        unheard = not isinstance(state, states.GoingHome)
        draft.tell(dataclasses.replace(mark, unheard=unheard, spec=state.run.rules))
    draft.tell(told.Removed(draft.now))


def _adopt(draft: Draft, status: dict[str, object]) -> None:
    """Only a store that knows nothing learns from a status; any other knows better."""
    if not isinstance(draft.state, states.Unknown):
        return
    kept = status.get("memory")
    plain = kept if isinstance(kept, dict) else {}
    if not isinstance(shapes.load(plain), states.Unknown):
        draft.tell(told.Adopted(plain, draft.now))


def _shown(draft: Draft, before: states.State) -> states.State:
    """Where the object's status stands: what was adopted from it need not be written back."""
    first, after = draft.steps[0]
    return after if isinstance(first, told.Adopted) else before


def _is_over(state: states.State) -> bool:
    return isinstance(state, states.Unknown | states.Gone)


def _timers(
    before: states.State, draft: Draft, *, again: bool
) -> tuple[SetTimer | CancelTimer, ...]:
    """One timer, for the next moment that may change something; a tick has used it up."""
    now = draft.now
    due = outgoing.wake_at(draft.state, now)
    was = outgoing.wake_at(before, now)
    if due == was and not again:
        return ()
    if due is None:
        return () if was is None and not again else (CancelTimer(WAKE),)
    return (SetTimer(WAKE, due, messages.Tick()),)
