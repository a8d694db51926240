"""How a rollout is told: a phase, conditions, one sentence, and the object's status."""

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Any, assert_never

from fairlead.domain.analysis import limits
from fairlead.domain.rollouts import (
    homing,
    inquiry,
    moving,
    promoting,
    shapes,
    sight,
    states,
    watching,
)
from fairlead.domain.rollouts.events import Ending


class Phase(enum.Enum):
    """Where a rollout is, in one word for a column."""

    UNKNOWN = "Unknown"
    STARTING = "Starting"
    STABLE = "Stable"
    TAKEN_BACK = "TakenBack"
    QUEUED = "Queued"
    PROGRESSING = "Progressing"
    AWAITING_APPROVAL = "AwaitingApproval"
    BAKING = "Baking"
    PROMOTING = "Promoting"
    GOING_HOME = "GoingHome"
    PAUSED = "Paused"
    STALLED = "Stalled"
    GONE = "Gone"


@dataclass(frozen=True, slots=True)
class Condition:
    """One question about a rollout with its answer, as objects of Kubernetes carry it."""

    type: str
    status: str
    reason: str
    message: str


def phase(state: states.State) -> Phase:
    if isinstance(state, states.Promoting | states.GoingHome) and state.stalled:
        return Phase.STALLED
    if isinstance(state, states.Idle) and _was_taken_back(state.book):
        return Phase.TAKEN_BACK
    held = isinstance(state, states.Running) and not isinstance(state, states.GoingHome)
    if held and isinstance(state, states.Running) and state.book.paused is not None:
        return Phase.PAUSED
    return _watched(state) if isinstance(state, states.Watching) else _PHASES[type(state)]


_PHASES: dict[type, Phase] = {
    states.Unknown: Phase.UNKNOWN,
    states.Founding: Phase.STARTING,
    states.Idle: Phase.STABLE,
    states.Queued: Phase.QUEUED,
    states.Moving: Phase.PROGRESSING,
    states.Promoting: Phase.PROMOTING,
    states.GoingHome: Phase.GOING_HOME,
    states.Gone: Phase.GONE,
}


def sentence(state: states.State) -> str:
    """Where it is, since when, and what it waits for."""
    if isinstance(state, states.Unknown):
        return "nothing was ever deployed"
    book = state.book
    since = book.since.strftime("%H:%M")
    told = _told(state, since)
    if book.paused is not None and isinstance(state, states.Running):
        told += f"; paused by {book.paused.by}: {book.paused.why}"
    return told


def conditions(state: states.State) -> tuple[Condition, ...]:
    if isinstance(state, states.Unknown):
        return ()
    book, said, now = state.book, sentence(state), phase(state)
    running = isinstance(state, states.Running)
    promoted = {Phase.STABLE: "True", Phase.TAKEN_BACK: "False"}.get(now, "Unknown")
    outcome = book.outcome
    ended = outcome.ending.value if outcome else "FirstVersion"
    why = outcome.why if outcome else said
    halted = book.paused is not None
    stalled = now is Phase.STALLED
    return (
        Condition("Promoted", promoted, ended if not running else now.value, why),
        Condition("Progressing", _yes(running and not halted and not stalled), now.value, said),
        Condition("Paused", _yes(halted), "Paused" if halted else "NotPaused",
                  book.paused.why if book.paused else ""),
        Condition("Stalled", _yes(stalled), now.value, said if stalled else ""),
    )  # fmt: skip


def status(state: states.State) -> dict[str, Any]:
    """What the object shows; `memory` is enough to go on from, on an empty store."""
    if isinstance(state, states.Unknown):
        return {}
    book = state.book
    run = state.run if isinstance(state, states.Running) else None
    share = book.route.share
    step = state.step + 1 if isinstance(state, states.Moving | states.Watching) else 0
    steps = len(run.plan) if run else 0
    return {
        "phase": phase(state).value,
        "message": sentence(state),
        "observedGeneration": book.generation,
        "stableRevision": book.stable.revision,
        "stableVersion": str(book.stable),
        "stableHash": book.stable.template,
        "wantedHash": book.wanted.template,
        "configHash": book.wanted.configs,
        "canaryRevision": run.target.revision if run else "",
        "canaryVersion": str(run.target) if run else "",
        "canaryWeight": share,
        "primaryWeight": book.route.split.primary,
        "baselineWeight": book.route.split.baseline,
        "step": step,
        "steps": steps,
        "progress": f"{step}/{steps}" if step else "",
        "revisions": [version.revision for version in book.kept],
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
            for c in conditions(state)
        ],
        "memory": shapes.dump(state),
    }


def essence(state: states.State) -> tuple[object, ...]:
    """What must be shown anew when it changes; counts of pods and tries are not of it."""
    if isinstance(state, states.Unknown):
        return ()
    book = state.book
    run = state.run if isinstance(state, states.Running) else None
    place = state.step if isinstance(state, states.Moving | states.Watching) else None
    approved = isinstance(state, states.Watching) and state.approved
    wish = (book.spec, book.replicas, book.generation, book.wanted, book.stable, book.due)
    halts = (book.paused, book.outcome, book.override, book.override_spent)
    now = book.sight
    seen = (now.primary, now.canary, now.baseline) if now else ()
    troubles = tuple(pods.trouble if pods else "" for pods in seen)
    return (type(state), phase(state), place, run, approved, wish, halts, troubles)


def _watched(state: states.Watching) -> Phase:
    if not watching.may_pass(state):
        return Phase.AWAITING_APPROVAL
    return Phase.BAKING if state.step == state.run.last else Phase.PROGRESSING


def _told(state: states.Known | states.Gone, since: str) -> str:
    match state:
        case states.Gone():
            told = f"deleted at {since}"
        case states.Founding():
            seen = state.book.sight.primary if state.book.sight else None
            first = f"the first version, {state.book.stable}, is being made since {since}"
            told = sight.with_trouble(first, seen)
        case states.Idle():
            told = _idle(state.book, since)
        case states.Queued():
            told = f"{state.run.target} waits since {since} for {_queue(state)}"
        case states.Moving():
            goal = state.run.plan[state.step].share
            told = f"moving to {goal} % since {since}: {moving.waiting_for(state)}"
        case states.Watching():
            told = f"{state.book.route.share} % since {since}, {_watch(state)}"
        case states.Promoting():
            told = f"promoting {state.run.target} since {since}: {promoting.waiting_for(state)}"
        case states.GoingHome():
            told = f"going home since {since} ({state.why}): {homing.waiting_for(state)}"
        case unreachable:
            assert_never(unreachable)
    return told


def _idle(book: states.Book, since: str) -> str:
    told = f"{book.stable} carries all traffic since {since}"
    outcome = book.outcome
    if outcome is None or outcome.ending is Ending.PROMOTED:
        return told
    return f"{told}; {outcome.target} was taken back: {outcome.why}"


def _queue(state: states.Queued) -> str:
    run, book = state.run, state.book
    if run.spec.limiter is not None and not run.slot:
        return f"room under the limit of {run.spec.limiter.cap} of {run.spec.limiter.name}"
    if book.opens is not None:
        return f"its window, which opens {_moment(book.opens)}"
    return _checks(state, "its turn")


def _watch(state: states.Watching) -> str:
    run = state.run
    parts = [_checks(state, "its checks")] if inquiry.at_place(state) else []
    if watching.hold(state):
        parts.append(f"until {_moment(watching.hold_until(state))} at least")
    if not watching.may_pass(state):
        parts.append("waiting for approval")
    if run.gate and run.spec.group is not None:
        parts.append(f"waiting for the group {run.spec.group.name}")
    if state.book.opens is not None:
        parts.append(f"its window opens {_moment(state.book.opens)}")
    return ", ".join(parts) or "going on"


def _checks(state: states.Queued | states.Watching, otherwise: str) -> str:
    checks = inquiry.at_place(state)
    standings = [inquiry.standing(check, state.inquiry, ending=False) for check in checks]
    open_ = [each for each in standings if each.standing.phase not in limits.DONE]
    if not checks:
        return otherwise
    if not open_:
        return f"all {len(checks)} checks passed"
    return f"waiting for {len(open_)} of {len(checks)} checks"


def _was_taken_back(book: states.Book) -> bool:
    outcome = book.outcome
    ended = outcome is not None and outcome.ending is Ending.TAKEN_BACK
    return ended and book.wanted.meaning != book.stable.meaning


def _moment(at: dt.datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M %Z").strip()


def _yes(answer: bool) -> str:  # noqa: FBT001 - a truth as Kubernetes spells it
    return "True" if answer else "False"
