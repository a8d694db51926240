"""A rollout for people and tools: a phase, conditions, one sentence, and the object's status."""

import datetime as dt
import enum
from typing import assert_never

import msgspec

from fairlead.analysis import limits
from fairlead.analysis.conditions import Phase as CheckPhase
from fairlead.areas.rollouts.domain import (
    check_rounds,
    names,
    observation,
    states,
    status_codec,
    wording,
)
from fairlead.areas.rollouts.domain import status as status_module
from fairlead.areas.rollouts.domain.events import Ending
from fairlead.areas.rollouts.domain.phases import analysing, promoting, rolling_back, shifting
from fairlead.areas.rollouts.domain.status import Condition, RolloutStatus, Said
from fairlead.engine.machine import AttributeKind, AttributeValue


class Phase(enum.Enum):
    """Where a rollout is, in one word for a column."""

    UNKNOWN = "Unknown"
    STARTING = "Starting"
    STABLE = "Stable"
    ROLLED_BACK = "RolledBack"
    QUEUED = "Queued"
    PROGRESSING = "Progressing"
    AWAITING_APPROVAL = "AwaitingApproval"
    BAKING = "Baking"
    PROMOTING = "Promoting"
    ROLLING_BACK = "RollingBack"
    PAUSED = "Paused"
    STALLED = "Stalled"
    GONE = "Gone"


def phase(state: states.State) -> Phase:
    if isinstance(state, states.Promoting | states.RollingBack) and state.stalled:
        return Phase.STALLED
    if isinstance(state, states.Idle) and _was_rolled_back(state.rollout):
        return Phase.ROLLED_BACK
    held = isinstance(state, states.Running) and not isinstance(state, states.RollingBack)
    if held and isinstance(state, states.Running) and state.rollout.paused is not None:
        return Phase.PAUSED
    return _analysing(state) if isinstance(state, states.Analysing) else _PHASES[type(state)]


_PHASES: dict[type, Phase] = {
    states.Unknown: Phase.UNKNOWN,
    states.Initializing: Phase.STARTING,
    states.Idle: Phase.STABLE,
    states.Queued: Phase.QUEUED,
    states.Shifting: Phase.PROGRESSING,
    states.Promoting: Phase.PROMOTING,
    states.RollingBack: Phase.ROLLING_BACK,
    states.Gone: Phase.GONE,
}


_READY = {Phase.STABLE: "True", Phase.ROLLED_BACK: "False", Phase.STALLED: "False"}
"""Whether the desired version has all traffic; while one is on its way, that is not known."""

_HALTED = (Phase.PAUSED, Phase.STALLED)
WAITING = (Phase.AWAITING_APPROVAL, Phase.STALLED, Phase.PAUSED)
"""Nothing goes on until a person does something."""


def sentence(state: states.State, now: dt.datetime | None = None) -> str:
    """Where it is, since when, and what it waits for; by `now`, what is over is left out."""
    if isinstance(state, states.Unknown):
        return "nothing deployed yet"
    rollout = state.rollout
    said = _sentence(state, wording.clock(rollout.since), now or rollout.since)
    if rollout.paused is not None and isinstance(state, states.Running | states.Idle):
        next_one = "the next rollout is " if isinstance(state, states.Idle) else ""
        said += f"; {next_one}{paused(rollout.paused)}"
    if rollout.replicas == 0 and isinstance(state, states.Running):
        said += "; scaling to 0 replicas waits until the run ends"
    return said


def paused(halt: states.Halt) -> str:
    return f"paused by {halt.by}: {halt.why}" if halt.why else f"paused by {halt.by}"


def conditions(state: states.State, at: dt.datetime | None = None) -> tuple[Condition, ...]:
    if isinstance(state, states.Unknown):
        return ()
    said, now = sentence(state, at), phase(state)
    degraded, stalled = _degraded(state), now is Phase.STALLED
    moving = isinstance(state, states.Initializing | states.Running)
    return (
        Condition("Ready", _READY.get(now, "Unknown"), now.value, said),
        Condition("Progressing", _yes(moving and now not in _HALTED), now.value, said),
        Condition("Stalled", _yes(stalled), now.value, said if stalled else ""),
        Condition("Degraded", _yes(bool(degraded)), degraded or "AsDesired",
                  said if degraded else ""),
    )  # fmt: skip


def status(state: states.State, now: dt.datetime | None = None) -> RolloutStatus:
    """What is published; its `memory` is enough to go on from, on an empty store."""
    return msgspec.structs.replace(shown(state, now), memory=status_codec.dump(state))


def shown(state: states.State, now: dt.datetime | None = None) -> RolloutStatus:
    """The status without its memory: what lists and pages show."""
    if isinstance(state, states.Unknown):
        return RolloutStatus()
    said = Said(phase(state).value, sentence(state, now), list(conditions(state, now)))
    return status_module.of(state, said)


ATTRIBUTES: dict[str, AttributeKind] = {
    "phase": tuple(each.value for each in Phase),
    "namespace": str,
    "stable": str,
    "canary": str,
    "waiting": bool,
}
"""What rollouts are found by; each changes at most a few times a run, for each is a row."""


def attributes(state: states.State) -> dict[str, AttributeValue]:
    """Of one that nothing was requested of, only the phase."""
    now = phase(state)
    if isinstance(state, states.Unknown):
        return {"phase": now.value}
    return {
        "phase": now.value,
        "namespace": names.scope(state.rollout.name),
        "stable": str(state.rollout.stable),
        "canary": str(state.run.target) if isinstance(state, states.Running) else "",
        "waiting": now in WAITING,
    }


def essence(state: states.State) -> tuple[object, ...]:
    """What must be shown anew when it changes; counts of pods and tries are not of it."""
    if isinstance(state, states.Unknown):
        return ()
    rollout = state.rollout
    run = state.run if isinstance(state, states.Running) else None
    place = state.step if isinstance(state, states.Shifting | states.Analysing) else None
    approved = isinstance(state, states.Analysing) and state.approved
    desired = (
        rollout.spec,
        rollout.replicas,
        rollout.generation,
        rollout.desired,
        rollout.stable,
        rollout.due,
    )
    halts = (rollout.paused, rollout.outcome, rollout.override, rollout.override_spent)
    now = rollout.observed
    slots = (now.primary, now.canary, now.baseline) if now else ()
    troubles = tuple(pods.trouble if pods else "" for pods in slots)
    return (type(state), phase(state), place, run, approved, desired, halts, troubles, _open(state))


def is_outdated(state: states.State, now: dt.datetime) -> bool:
    """Whether a time that the sentence named has passed since the last observation."""
    if not isinstance(state, states.Analysing):
        return False
    rollout = state.rollout
    since = rollout.observed.at if rollout.observed else rollout.since
    named = (analysing.hold_until(state) if analysing.hold(state) else None, rollout.opens)
    return any(moment is not None and since < moment <= now for moment in named)


def _analysing(state: states.Analysing) -> Phase:
    if not analysing.may_pass(state):
        return Phase.AWAITING_APPROVAL
    return Phase.BAKING if state.step == state.run.last else Phase.PROGRESSING


def _sentence(state: states.Known | states.Gone, since: str, now: dt.datetime) -> str:
    match state:
        case states.Gone():
            said = f"deleted at {since}"
        case states.Initializing():
            pods = state.rollout.observed.primary if state.rollout.observed else None
            initial = f"initial rollout of {state.rollout.stable} since {since}"
            said = observation.with_trouble(initial, pods)
        case states.Idle():
            said = _idle(state.rollout, since)
        case states.Queued():
            said = f"{state.run.target} queued since {since}, {_queue(state, now)}"
        case states.Shifting():
            weight = state.run.plan[state.step].weight
            said = f"shifting to {weight} % since {since}: {shifting.waiting_for(state)}"
        case states.Analysing():
            said = f"at {state.rollout.route.weight} % since {since}, {_analysis(state, now)}"
        case states.Promoting():
            said = f"promoting {state.run.target} since {since}: {promoting.waiting_for(state)}"
        case states.RollingBack():
            said = f"rolling back since {since} ({state.why}): {rolling_back.waiting_for(state)}"
        case unreachable:
            assert_never(unreachable)
    return said


def _idle(rollout: states.RolloutRecord, since: str) -> str:
    said = f"{rollout.stable} has had all traffic since {since}"
    outcome = rollout.outcome
    if outcome is None or outcome.ending is Ending.PROMOTED:
        return said
    return f"{said}; {outcome.target} was {_ENDED[outcome.ending]}: {outcome.why}"


_ENDED = {
    Ending.PROMOTED: "promoted",
    Ending.ROLLED_BACK: "rolled back",
    Ending.SUPERSEDED: "superseded",
    Ending.REVERTED: "reverted",
}


def _queue(state: states.Queued, now: dt.datetime) -> str:
    run, rollout = state.run, state.rollout
    if run.spec.limiter is not None and not run.slot:
        limiter = run.spec.limiter
        return f"waiting for a slot of limiter {limiter.name} ({limiter.cap} at a time)"
    if rollout.opens is not None and rollout.opens > now:
        return f"waiting for its window, which opens {wording.moment(rollout.opens)}"
    return _checks(state, "about to start")


def _analysis(state: states.Analysing, now: dt.datetime) -> str:
    run, opens = state.run, state.rollout.opens
    parts = [_checks(state, "")] if check_rounds.at_place(state) else []
    hold = analysing.hold_until(state)
    if hold > now:
        parts.append(f"holding until {wording.until(hold, state.rollout.since)} at least")
    if not analysing.may_pass(state):
        parts.append("waiting for approval")
    if run.gate and run.spec.group is not None:
        parts.append(f"waiting for group {run.spec.group.name}")
    if opens is not None and opens > now:
        parts.append(f"window opens {wording.moment(opens)}")
    return ", ".join(parts) or "ready to continue"


def _checks(state: states.Queued | states.Analysing, otherwise: str) -> str:
    checks = check_rounds.at_place(state)
    if not checks:
        return otherwise
    phases = _at_the_end(state)
    if open_ := _open(state):
        return f"waiting for {open_} of {len(checks)} checks"
    good = sum(each is CheckPhase.SUCCESSFUL for each in phases)
    now = [check_rounds.standing(check, state.round, ending=False) for check in checks]
    over = all(each.standing.phase in limits.DONE for each in now)
    return f"{good} of {len(checks)} checks {'passed' if over else 'good so far'}"


def _open(state: states.State) -> int:
    """How many checks are still waited for here."""
    if not isinstance(state, states.Queued | states.Analysing):
        return 0
    return sum(each not in limits.DONE for each in _at_the_end(state))


def _at_the_end(state: states.Queued | states.Analysing) -> list[CheckPhase]:
    """One without a count of its own ends with its place: once measured, it is not waited for."""
    checks = check_rounds.at_place(state)
    last = (check_rounds.standing(check, state.round, ending=True) for check in checks)
    return [each.standing.phase for each in last]


def _was_rolled_back(rollout: states.RolloutRecord) -> bool:
    outcome = rollout.outcome
    ended = outcome is not None and outcome.ending is Ending.ROLLED_BACK
    return ended and rollout.desired.meaning != rollout.stable.meaning


def _degraded(state: states.Known | states.Gone) -> str:
    """Why less runs than is desired, in one word; empty where nothing is amiss."""
    now = phase(state)
    if now in (Phase.STALLED, Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        return str(now.value)
    observed = state.rollout.observed
    pods = observed.primary if observed else None
    return "PodsNotReady" if pods is not None and pods.trouble else ""


def _yes(answer: bool) -> str:  # noqa: FBT001 - a truth as Kubernetes spells it
    return "True" if answer else "False"
