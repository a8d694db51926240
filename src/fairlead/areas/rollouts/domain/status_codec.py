"""A rollout's state as the status of its object remembers it, and back, across releases.

Small, because it is sent with every status: what has its usual value is left out, and a run's
rules too where they are the rollout's own. What was written in an older shape is lifted to the
shape of today step by step, as the store's codec does it with rows.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain import states
from fairlead.areas.rollouts.domain.states import State
from fairlead.engine import machine as machines

SHAPE = 1
"""Raised where `load` could not read what was written before; then `_LIFTS` gets a line."""

_AS_IT_IS = frozenset((str, int, bool, float, type(None)))
_FIELDS: dict[type, tuple[tuple[str, Any], ...]] = {}
STATES = {each.__name__: each for each in machines.members(states.State)}


_LIFTS: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def dump(state: State) -> dict[str, Any]:
    """The state as plain data, without what the next observation brings anyway."""
    if not isinstance(state, states.Unknown):
        unseen = dataclasses.replace(state.rollout, observed=None, observations=0, observe_at=None)
        state = dataclasses.replace(state, rollout=unseen)
    data = _plain(state)
    if isinstance(state, states.Running) and state.run.spec == state.rollout.spec:
        del data["run"]["spec"]
    return {"shape": SHAPE, "state": type(state).__name__, "data": data}


def load(memory: Mapping[str, Any]) -> State:
    """A state from its plain data, or Rejected."""
    kind, shape = STATES.get(str(memory.get("state"))), memory.get("shape")
    if not isinstance(shape, int) or not 1 <= shape <= SHAPE:
        raise _unreadable(
            f"it has shape {shape}, this release reads up to {SHAPE}",
            "run the release that wrote it, or ",
        )
    if kind is None:
        raise _unreadable(f"no such state: {memory.get('state')}")
    try:
        return cast("State", msgspec.convert(_lifted(memory, shape), kind))
    except (msgspec.MsgspecError, errors.Rejected, LookupError, TypeError) as error:
        raise _unreadable(str(error)) from error


def name_in(memory: Mapping[str, Any]) -> str:
    """Whose memory it says it is; empty where it says nothing that can be read."""
    record: Any = memory
    for field in ("data", "rollout", "name"):
        record = record.get(field) if isinstance(record, Mapping) else None
    return record if isinstance(record, str) else ""


def _lifted(memory: Mapping[str, Any], shape: int) -> dict[str, Any]:
    data = dict(memory["data"])
    for older in range(shape, SHAPE):
        data = _LIFTS[older](data)
    run = data.get("run")
    if run is not None and "spec" not in run:
        data["run"] = {**run, "spec": data["rollout"]["spec"]}
    return data


def _unreadable(why: str, instead: str = "") -> errors.Rejected:
    return errors.Rejected(
        f"cannot adopt status: {why}",
        hint=f"{instead}remove the status; the rollout then starts from what runs now",
    )


def _plain(value: Any) -> Any:
    kind: type = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is tuple:
        return [_plain(each) for each in value]
    if kind is dict:
        return {key: _plain(each) for key, each in value.items()}
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = _fields(kind)
    if not fields:
        return msgspec.to_builtins(value)
    held = ((name, getattr(value, name), usual) for name, usual in fields)
    return {name: _plain(one) for name, one, usual in held if one != usual}


def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Each field with its usual value; one that has none is equal to nothing."""
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple((field.name, _usual(field)) for field in dataclasses.fields(kind))


def _usual(field: "dataclasses.Field[Any]") -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()
