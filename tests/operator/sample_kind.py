"""A sample kind and its machine, kept in tests: a bundle owns up to three gadgets.

          Observe             Confirm, Observe (as wanted)
Unseen ───────────► Building ─────────────────────────────► Ready
  ▲ Adopt             │  ▲ ▲ Observe (other spec, or a gadget is not as wanted)  │
  └ (sets counters)   │  │ └───────────────────────────────────────────────────┘
               Refuse ▼  │ Retry
                     Refused                 any ── Delete ──► Sunk

Each gadget is a config map with the cargo. `voyages` counts the versions of the spec that were
launched: it follows from no object, so only store or status can tell it after a restart.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, assert_never

import msgspec

from fairlead.engine import machine
from fairlead.engine.messages import CancelTimer, Decision, SetTimer
from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import Children, Kind, Snapshot
from fairlead.kubernetes.messages import (
    ApplyChildren,
    Condition,
    Confirm,
    HoldObject,
    PublishStatus,
    RecordEvent,
    Refuse,
    ReleaseObject,
    Subject,
)
from fairlead.kubernetes.objects import Object, Resource
from fairlead.kubernetes.schema import Column, KindSchema

Phase = Literal["Building", "Ready", "Refused"]
FINALIZER = "tests.fairlead.dev/bundle"
_LONGEST_RETRY = 60


class BundleSpec(msgspec.Struct):
    """Gadgets that carry the same cargo."""

    cargo: str
    gadgets: Annotated[int, msgspec.Meta(ge=0, le=3)] = 3
    hold: bool = False


class ConditionStatus(msgspec.Struct, rename="camel"):
    """A condition as Kubernetes spells it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class BundleStatus(msgspec.Struct, rename="camel"):
    """Where the bundle stands."""

    round: int = 0
    phase: str = ""
    voyages: int = 0
    generation: int = 0
    conditions: list[ConditionStatus] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the spec asks for."""

    generation: int
    gadgets: int
    cargo: str


@dataclass(frozen=True, slots=True)
class Observe:
    """Command: this is the level."""

    subject: Subject
    plan: Plan
    cargoes: dict[str, str]
    """By gadget; what else somebody put into one is not ours to judge."""

    finalizer: str = ""
    """To be put on, where it is wanted and not there."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Command: the status says that you were here."""

    round: int
    voyages: int
    generation: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Command: the object is going, or gone."""

    subject: Subject | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """Command, from a timer: ask again for what was refused."""

    round: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """Event: the counters come from the status."""

    round: int
    voyages: int
    generation: int


@dataclass(frozen=True, slots=True)
class Planned:
    """Event: the gadgets are asked for."""

    subject: Subject
    plan: Plan
    round: int


@dataclass(frozen=True, slots=True)
class Launched:
    """Event: the gadgets are there."""

    subject: Subject
    plan: Plan
    round: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Event: the gadgets cannot be had now."""

    reason: str
    message: str
    round: int


@dataclass(frozen=True, slots=True)
class Sunk:
    """Event, and state: the object is gone."""


@dataclass(frozen=True, slots=True)
class Unobserved:
    """State: nothing observed yet; the counters may be known."""

    round: int = 0
    voyages: int = 0
    launched: int = 0


@dataclass(frozen=True, slots=True)
class Afloat:
    """State: the object is there."""

    subject: Subject
    plan: Plan
    phase: Phase
    round: int
    voyages: int = 0
    launched: int = 0
    tries: int = 0


State = Unobserved | Afloat | Sunk
Command = Observe | Adopt | Delete | Retry | Confirm | Refuse
Event = Adopted | Planned | Launched | Refused | Sunk
Effect = ApplyChildren | PublishStatus | RecordEvent | HoldObject | ReleaseObject


def decide(state: State, command: Command, now: datetime) -> Decision:
    match command:
        case Delete():
            return _delete(state, command)
        case _ if isinstance(state, Sunk):
            return Decision()
        case Adopt(round_, voyages, generation):
            newer = round_ > state.round
            return Decision((Adopted(round_, voyages, generation),)) if newer else Decision()
        case Observe():
            return _observe(state, command)
        case Confirm() | Refuse() | Retry():
            return _answered(state, command, now)
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case Adopted(round_, voyages, generation):
            # What was asked before is dropped as too old, so nobody waits for its answer.
            return Unobserved(round_, voyages, generation)
        case Planned(subject, plan, round_):
            voyages, launched = _counters(state)
            tries = state.tries if isinstance(state, Afloat) and state.plan == plan else 0
            return Afloat(subject, plan, "Building", round_, voyages, launched, tries)
        case Launched(subject, plan, round_):
            voyages, launched = _counters(state)
            voyages += launched != plan.generation
            return Afloat(subject, plan, "Ready", round_, voyages, plan.generation)
        case Refused(round=round_):
            assert isinstance(state, Afloat)
            return replace(state, phase="Refused", round=round_, tries=state.tries + 1)
        case Sunk():
            return event
        case unreachable:
            assert_never(unreachable)


def _answered(
    state: Unobserved | Afloat, answer: Confirm | Refuse | Retry, now: datetime
) -> Decision:
    if not isinstance(state, Afloat) or state.round != answer.round:
        # Of an earlier round: something newer was asked meanwhile.
        return Decision()
    match answer:
        case Confirm():
            return _launch(state, state.subject, state.plan)
        case Refuse():
            return _refuse(state, answer, now)
        case Retry():
            return _plan(state, state.subject, state.plan)
        case unreachable:
            assert_never(unreachable)


def wanted(subject: Subject, plan: Plan) -> tuple[Object, ...]:
    """The gadgets as config maps."""
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": subject.namespace, "name": f"{subject.name}-{number}"},
            "data": {"cargo": plan.cargo},
        }
        for number in range(plan.gadgets)
    )


def carried(gadgets: Children) -> dict[str, str]:
    return {
        gadget["metadata"]["name"]: (gadget.get("data") or {}).get("cargo", "")
        for gadget in gadgets
    }


def _observe(state: Unobserved | Afloat, seen: Observe) -> Decision:
    as_wanted = seen.cargoes == carried(wanted(seen.subject, seen.plan))
    known = isinstance(state, Afloat) and state.plan == seen.plan
    if known and isinstance(state, Afloat):
        if as_wanted:
            ready = state.phase == "Ready"
            return Decision() if ready else _launch(state, seen.subject, seen.plan)
        if state.phase != "Ready":
            # On its way, or waiting for its next try.
            return Decision()
    if as_wanted and _counters(state)[1] == seen.plan.generation:
        # Adopted, and nothing is to be done: the status says all of it already.
        return Decision((Launched(seen.subject, seen.plan, state.round + 1),))
    decision = _plan(state, seen.subject, seen.plan)
    if seen.finalizer:
        hold = HoldObject(seen.subject, seen.finalizer)
        return replace(decision, effects=(hold, *decision.effects))
    return decision


def _plan(state: Unobserved | Afloat, subject: Subject, plan: Plan) -> Decision:
    round_ = state.round + 1
    children = wanted(subject, plan)
    return Decision(
        (Planned(subject, plan, round_),),
        (ApplyChildren(subject, round_, children),),
        timers=(CancelTimer("retry"),),
    )


def _launch(state: Afloat, subject: Subject, plan: Plan) -> Decision:
    event = Launched(subject, plan, state.round + 1)
    after = evolve(state, event)
    assert isinstance(after, Afloat)
    ready = Condition("Ready", status=True, reason="Launched")
    return Decision((event,), (_status(after, ready),), timers=(CancelTimer("retry"),))


def _refuse(state: Afloat, refusal: Refuse, now: datetime) -> Decision:
    event = Refused(refusal.reason, refusal.message, state.round + 1)
    after = evolve(state, event)
    assert isinstance(after, Afloat)
    condition = Condition("Ready", False, refusal.reason, refusal.message)
    told = RecordEvent(state.subject, refusal.reason, refusal.message, warning=True)
    due = now + timedelta(seconds=min(_LONGEST_RETRY, 2**state.tries))
    return Decision(
        (event,),
        (_status(after, condition), told),
        timers=(SetTimer("retry", due, Retry(after.round)),),
    )


def _status(state: Afloat, condition: Condition) -> PublishStatus:
    status = {"phase": state.phase, "voyages": state.voyages, "generation": state.launched}
    return PublishStatus(
        state.subject, state.round, state.plan.generation, status, conditions=(condition,)
    )


def _delete(state: State, command: Delete) -> Decision:
    if isinstance(state, Sunk):
        return Decision()
    if command.held and command.subject is not None:
        return Decision((Sunk(),), (ReleaseObject(command.subject, FINALIZER),))
    return Decision((Sunk(),), timers=(CancelTimer("retry"),))


def _counters(state: State) -> tuple[int, int]:
    return (0, 0) if isinstance(state, Sunk) else (state.voyages, state.launched)


BUNDLE: machine.Machine[State, Command, Event] = machine.Machine(
    name="bundle",
    initial=Unobserved(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Sunk),
    vocabulary=machine.Vocabulary(State, Command, Event, Effect),
)
BUNDLES = Resource("tests.fairlead.dev", "v1", "bundles", "Bundle")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def observe(obj: Object, snapshot: Snapshot) -> Observe:
    return read(obj, snapshot.children)


def read(obj: Object, children: Children) -> Observe:
    try:
        spec = msgspec.convert(obj.get("spec"), BundleSpec)
    except msgspec.ValidationError as error:
        raise Rejected(f"the spec makes no sense: {error}", hint="kubectl explain it") from error
    if spec.cargo == "contraband":
        raise Rejected(f"not carried: {spec.cargo}", hint="carry something else")
    held = FINALIZER in (obj["metadata"].get("finalizers") or ())
    return Observe(
        KIND.subject(obj),
        Plan(obj["metadata"].get("generation", 0), spec.gadgets, spec.cargo),
        carried(children),
        FINALIZER if spec.hold and not held else "",
    )


def delete(obj: Object | None) -> Delete:
    if obj is None:
        return Delete()
    held = FINALIZER in (obj["metadata"].get("finalizers") or ())
    return Delete(KIND.subject(obj), held)


def adopt(obj: Object) -> Adopt | None:
    status = obj.get("status") or {}
    if not status.get("round"):
        return None
    try:
        read = msgspec.convert(status, BundleStatus)
    except msgspec.ValidationError as error:
        raise Rejected(f"unreadable status: {error}", hint="the level is read instead") from error
    return Adopt(read.round, read.voyages, read.generation)


def review(new: Object, old: Object | None) -> list[tuple[str, str]]:
    """What a schema cannot say: a list of cargoes, and a look at what was before."""
    spec, before = new["spec"], (old or {}).get("spec") or {}
    problems = []
    if spec.get("cargo") == "contraband":
        problems.append(("spec.cargo", "not carried: contraband"))
    if before.get("hold") and spec.get("gadgets", 3) < before.get("gadgets", 3):
        problems.append(("spec.gadgets", f"a held bundle keeps its gadgets: {before['gadgets']}"))
    return problems


KIND = Kind(
    BUNDLES,
    BUNDLE,
    KindSchema(
        BundleSpec,
        BundleStatus,
        short_names=("flo",),
        columns=(Column("Phase", ".status.phase"),),
    ),
    observe=observe,
    delete=delete,
    adopt=adopt,
    children=(CONFIG_MAPS,),
    finalizer=FINALIZER,
    review=review,
)


def bundle(namespace: str, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "tests.fairlead.dev/v1",
        "kind": "Bundle",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"cargo": "tea", **spec},
    }
