"""A rollout's life: facts come in, the next part of the way follows from them.

Each command is first taken for what it says; then every part of the way that can be walked from
there is walked, until something must be waited for. What leaves the machine follows from the
events (`emit`), so no effect is without its reason.
"""

from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from fairlead import errors
from fairlead.areas.rollouts.domain import (
    assess,
    check_rounds,
    coordination,
    emit,
    events,
    evolve,
    following,
    messages,
    spec_change,
    states,
    status_codec,
    verbs,
    view,
)
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder
from fairlead.areas.rollouts.domain.phases import (
    analysing,
    initial,
    promoting,
    queued,
    rolling_back,
    shifting,
)
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.engine import machine
from fairlead.engine.messages import CancelTimer, Decision, SetTimer, StreamName

WAKE = "wake"
MOST_PARTS = 32
"""More parts of the way in one decision are a circle, and a fault of ours."""

_WAYS: dict[type, Callable[[DecisionBuilder], None]] = {
    states.Initializing: initial.advance,
    states.Idle: queued.begin_due,
    states.Queued: queued.advance,
    states.Shifting: shifting.advance,
    states.Analysing: analysing.advance,
    states.Promoting: promoting.advance,
    states.RollingBack: rolling_back.advance,
}


def decide(state: states.State, command: messages.Command, now: datetime) -> Decision:
    draft = DecisionBuilder(state, now)
    _take(draft, command)
    draft.rescale()
    _walk(draft)
    following.settle(draft)
    ticked = isinstance(command, messages.Tick)
    if ticked and not draft.steps and emit.wake_at(state, now) is not None:
        draft.record(events.TimerFired(now))
    if not draft.steps or assess.is_passing(state, draft):
        return Decision()
    effects = [each for step in draft.steps for each in emit.effects_of(*step)]
    sends = [each for step in draft.steps for each in emit.sends_of(*step)]
    if _tells(draft, state, ticked=ticked):
        status = view.status(draft.state, now)
        effects.append(messages.PublishStatus(draft.rollout.name, status))
    return Decision(draft.events, tuple(effects), tuple(sends), _timers(state, draft, again=ticked))


def ended(state: states.State) -> bool:
    return isinstance(state, states.Gone)


def addressed(stream: StreamName, command: messages.Command) -> None:
    """Effects and sends go by the name, so it is the key of the stream and no other."""
    key = coordination.key_of(stream)
    match command:
        case messages.Request(name=name) | messages.Follow(messages.Request(name=name)):
            said = name
        case messages.Adopt(status):
            # One without a name is refused where it is read.
            said = status_codec.name_in(status.memory or {}) or key
        case _:
            return
    if said != key:
        raise errors.Rejected(
            f"{key} is told to be another rollout: {said[:80]}",
            hint="name it by the key of its stream, and remove a status that is of another one",
        )


ROLLOUT: machine.Machine[states.State, messages.Command, events.Event] = machine.Machine(
    name="rollout",
    initial=states.Unknown(),
    decide=decide,
    evolve=evolve.evolve,
    ended=ended,
    vocabulary=machine.Vocabulary(
        states.State, messages.Command, events.Event, messages.Effect, verbs.SteeringCommand
    ),
    attributes=machine.Attributes(view.ATTRIBUTES, view.attributes),
    addressed=addressed,
)  # fmt: skip


def _take(draft: DecisionBuilder, command: messages.Command) -> None:
    match command:
        case messages.Request():
            spec_change.request(draft, command)
        case messages.Observed(observed):
            assess.observe(draft, observed)
        case messages.Judged():
            check_rounds.answer(draft, command)
        case messages.Tick():
            _observe_if_due(draft)
        case messages.Delete(by=""):
            verbs.remove(draft, "")
        case messages.Adopt(status):
            _adopt(draft, status)
        case messages.Follow() | messages.FallAsleep() | messages.Abandon():
            following.take(draft, command)
        case messages.Grant() | messages.ProceedTogether() | messages.LeaveGroup():
            _hear(draft, command)
        case _:
            verbs.obey(draft, command)


def _walk(draft: DecisionBuilder) -> None:
    for _ in range(MOST_PARTS):
        before = len(draft.steps)
        way = _WAYS.get(type(draft.state))
        if way is not None:
            way(draft)
        if len(draft.steps) == before:
            return
    raise AssertionError(f"walks in a circle: {draft.events[-4:]}")


def _observe_if_due(draft: DecisionBuilder) -> None:
    due = emit.observe_at(draft.state)
    if due is None or due > draft.now:
        return
    nth = draft.rollout.observations + 1
    draft.record(
        events.ObservationRequested(nth, draft.now, draft.now + states.observation_pause(nth))
    )


def _hear(
    draft: DecisionBuilder, said: messages.Grant | messages.ProceedTogether | messages.LeaveGroup
) -> None:
    """What the limiter and the group say; out of place it means nothing, and is no error."""
    state = draft.state
    match said:
        case messages.Grant():
            if isinstance(state, states.Queued) and state.run.slot_asked and not state.run.slot:
                draft.record(events.SlotGranted())
        case messages.ProceedTogether(gate):
            if isinstance(state, states.Analysing) and state.run.gate == gate:
                draft.record(events.GatePassed(gate))
        case messages.LeaveGroup(why):
            together = isinstance(state, states.Queued | states.Shifting | states.Analysing)
            if together and isinstance(state, states.Running) and not state.run.skip_steps:
                draft.start_rollback(why)
        case unreachable:
            assert_never(unreachable)


def _adopt(draft: DecisionBuilder, status: RolloutStatus) -> None:
    """Only a store that knows nothing learns from a status; any other knows better."""
    if not isinstance(draft.state, states.Unknown):
        return
    memory = status.memory or {}
    if not isinstance(status_codec.load(memory), states.Unknown):
        draft.record(events.Adopted(memory, draft.now))


def _tells(draft: DecisionBuilder, before: states.State, *, ticked: bool) -> bool:
    """Whether the object's status says something new."""
    if _is_over(draft.state):
        return False
    first, after = draft.steps[0]
    # What was adopted from it need not be written back.
    shown = after if isinstance(first, events.Adopted) else before
    if view.essence(draft.state) != view.essence(shown):
        return True
    return ticked and view.is_outdated(shown, draft.now)


def _is_over(state: states.State) -> bool:
    return isinstance(state, states.Unknown | states.Gone)


def _timers(
    before: states.State, draft: DecisionBuilder, *, again: bool
) -> tuple[SetTimer | CancelTimer, ...]:
    """One timer, for the next moment that may change something; a tick has used it up."""
    now = draft.now
    due = emit.wake_at(draft.state, now)
    was = emit.wake_at(before, now)
    if due == was and not again:
        return ()
    if due is None:
        return () if was is None and not again else (CancelTimer(WAKE),)
    return (SetTimer(WAKE, due, messages.Tick()),)
