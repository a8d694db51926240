"""What an API shows, held against what is declared: the observation, and the request for it.

Whoever reads and whoever writes ask the same: a request is sent only if it comes out again.
"""

from typing import NamedTuple

import msgspec

from fairlead.areas.resources.domain import requests, urls, validation
from fairlead.areas.resources.domain.applied import Seal, with_attempted
from fairlead.areas.resources.domain.delta import Differ, Known
from fairlead.areas.resources.domain.hooks import Occasion, Point
from fairlead.areas.resources.domain.model import Json, Model, found
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    LastApplied,
    Observation,
    Plan,
    Reason,
)
from fairlead.areas.resources.domain.requests import Request

_NAMELESS = "it does not exist, and the API gives the id: end resourceId in {NAME} to make one"
_STATE = ("properties", "provisioningState")
_FAILED = frozenset({"failed", "canceled"})
_DONE = _FAILED | {"succeeded"}
_ABSENT = "NotFound: there is no such resource to attach to"


class Planned(NamedTuple):
    """What is told of it, and what would be sent."""

    observation: Observation
    request: Request | None = None


def planned(
    model: Model, seal: Seal, declared: Declared, last: LastApplied, observed: Json | None
) -> Planned:
    """By a declaration whose secrets were put in."""
    spec = model.hooks.spec(Point.BEFORE_DIFF, declared.id, declared.properties)
    sealed = seal.sealed(model, spec)
    if observed is None:
        if declared.attaches and last.applied is None:
            return Planned(Observation(exists=False, plan=None, sealed=sealed, broken=_ABSENT))
        if not urls.is_unmade(declared.id) and "PUT" not in model.type.verbs:
            return Planned(Observation(exists=False, plan=None, sealed=sealed, broken=_NAMELESS))
        first = _mutated(model, requests.create(model, declared.id, spec, declared.mark))
        return Planned(Observation(exists=False, plan=_plan(seal, first), sealed=sealed), first)
    # Where nothing was applied yet, it takes over what is there: only differences count.
    applied = sealed if last.applied is None else last.applied
    for attempted in last.attempted:
        applied = with_attempted(model, spec, applied, attempted)
    known = Known(applied, observed, last.settled)
    differ = Differ(model, seal, declared.policies)
    changes = differ.changes(spec, known)
    state = _state(observed)
    broken = _frozen(model, seal, spec, last, observed)
    at = last.given or declared.id
    request = None if broken else requests.update(model, at, spec, observed, changes)
    request = None if request is None else _mutated(model, request)
    if request is None and state.lower() in _FAILED:
        broken = broken or f"the API could not bring it there: {state}"
    if request is None and not broken:
        model.hooks.run(Occasion(Point.AFTER_SUCCESS, declared.type, at, spec, observed))
    observation = Observation(
        exists=True,
        plan=None if request is None else _plan(seal, request),
        sealed=sealed,
        settled=differ.settled(spec, observed),
        busy=_busy(state),
        shown=seal.digest(observed),
        broken=broken,
    )
    return Planned(observation, request)


def _mutated(model: Model, request: Request) -> Request:
    body = model.hooks.body(request.url, request.body)
    return msgspec.structs.replace(request, body=body)


def looked(observed: Json | None) -> Observation:
    """Of what is to go: whether it is there, and may be asked for."""
    busy = "" if observed is None else _busy(_state(observed))
    return Observation(exists=observed is not None, plan=None, sealed={}, busy=busy)


def _state(observed: Json) -> str:
    state = found(observed, _STATE)
    return state if isinstance(state, str) else ""


def _busy(state: str) -> str:
    return state if state and state.lower() not in _DONE else ""


def _frozen(model: Model, seal: Seal, spec: Json, last: LastApplied, observed: Json) -> str:
    problems = validation.frozen(model, seal, spec, last.applied or {}, observed)
    return "; ".join(str(each) for each in problems)


def _plan(seal: Seal, request: Request) -> Plan:
    reasons = tuple(Reason(each.path, each.why) for each in request.reasons)
    # Its ETag may change while the request stays the same: it is that of the last read.
    whole = msgspec.structs.replace(request, if_match="", reasons=[])
    return Plan(request.method, reasons, seal.digest(msgspec.to_builtins(whole)))
