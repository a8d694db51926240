"""What is wrong with a spec before anything is asked of an API: by the words of its type."""

from collections.abc import Iterator
from typing import Any

from fairlead.areas.resources.domain import applied as applied_
from fairlead.areas.resources.domain import references
from fairlead.areas.resources.domain.model import (
    NOTHING,
    Json,
    Model,
    Path,
    Place,
    by_key,
    found,
    written,
)
from fairlead.errors import Problem
from fairlead.values import nearest

_PLAIN: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), "a list"),
    "object": ((dict,), "a map"),
}


def mistakes(model: Model, spec: Json) -> Iterator[Problem]:
    """In a spec that has its secrets by name."""
    yield from problems(model, references.resolved(spec, lambda name: name))
    yield from references.problems(model, spec)


def problems(model: Model, spec: Json) -> Iterator[Problem]:
    """Names that the type does not have, values that it does not take."""
    yield from _members(model, Place(), (), spec)


def frozen(
    model: Model, seal: applied_.Seal, spec: Json, applied: Json, observed: Json
) -> Iterator[Problem]:
    """Values that were for the creation only, and changed since.

    One that was left out then may be said later, if it says what the API chose.
    """
    for path, place, value in _leaves(model, Place(), (), spec):
        if place.said is None or place.said.class_ != "create-only":
            continue
        before, shown = found(applied, path), found(observed, path)
        is_same = seal.is_same(value, before) if before is not NOTHING else value == shown
        if not is_same and (before is not NOTHING or shown is not NOTHING):
            yield Problem(
                written(path),
                "fixed once the resource exists",
                "put the old value back, or delete the resource and make it anew",
            )


def _members(model: Model, place: Place, path: Path, value: Json) -> Iterator[Problem]:
    if references.output_of(value) is not None:
        return
    for name, each in value.items():
        inner, at = model.inside(place, name), (*path, name)
        if inner is None:
            meant = nearest(name, model.names(place))
            hint = f"did you mean {meant}?" if meant else "describe the type to see its properties"
            yield Problem(written(at), "no such property", hint)
        elif inner.said is not None and inner.said.class_ == "read-only":
            yield Problem(
                written(at), "read-only: the API alone says it", "remove it; the status shows it"
            )
        else:
            yield from _value(model, inner, at, each)


def _value(model: Model, place: Place, path: Path, value: Any) -> Iterator[Problem]:
    if references.output_of(value) is not None:
        return
    if place.is_declared and place.said is not None and place.said.path == place.path:
        taken, words = _PLAIN.get(place.said.type, ((object,), ""))
        is_other = isinstance(value, bool) and bool not in taken and object not in taken
        if value is not None and (is_other or not isinstance(value, taken)):
            yield Problem(written(path), f"not {words}", f"write {words}")
            return
    if isinstance(value, dict):
        yield from _members(model, place, path, value)
    elif isinstance(value, list):
        yield from _items(model, place, path, value)


def _items(model: Model, place: Place, path: Path, value: list[Any]) -> Iterator[Problem]:
    for number, each in enumerate(value):
        if isinstance(each, dict):
            yield from _members(model, model.item(place), (*path, str(number)), each)


def _leaves(
    model: Model, place: Place, path: Path, value: Any
) -> Iterator[tuple[Path, Place, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            inner = model.inside(place, name)
            if inner is not None:
                yield from _leaves(model, inner, (*path, name), each)
        return
    keyed = by_key(place, value) if isinstance(value, list) else None
    if keyed:
        for key, each in keyed.items():
            yield from _leaves(model, model.item(place), (*path, key), each)
        return
    yield path, place, value
