"""Changes brought into a body: of a PUT, which says everything, or of a PATCH."""

import copy
import itertools
from collections.abc import Sequence
from typing import Any

from fairlead.areas.resources.domain.delta import Change
from fairlead.areas.resources.domain.model import (
    NOTHING,
    Item,
    Json,
    Model,
    Path,
    Place,
    by_key,
    found,
    has_key,
)

_AGAIN = "never shown, so said again"


def merged(observed: Json, changes: Sequence[Change]) -> Json:
    """What was observed, with the changes; all that nobody named stays."""
    body = copy.deepcopy(observed)
    for change in changes:
        _bring(body, change.path, change.value)
    return body


def patch(body: Json, changes: Sequence[Change]) -> Json:
    """The changes as a merge patch of a body that has them: null removes, a list is sent whole."""
    said: Json = {}
    for change in changes:
        path = whole(change.path)
        inner = said
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        is_part = path != change.path
        value = found(body, path) if is_part else change.value
        inner[path[-1]] = None if value is NOTHING else value
    return said


def whole(path: Path) -> tuple[str, ...]:
    """The part of a path that a merge patch can name: a list has no names for its items."""
    names: list[str] = []
    for step in path:
        if isinstance(step, Item):
            break
        names.append(step)
    return tuple(names)


def taken(model: Model, observed: Json) -> Json:
    """What was observed without what the API alone says."""
    kept = _taken(model, Place(), observed)
    assert isinstance(kept, dict)
    return kept


def unseen(model: Model, spec: Json) -> Sequence[Change]:
    """What no answer ever shows, and so has to be said again by whoever says everything."""
    return tuple(_unseen(model, Place(), (), spec))


def _taken(model: Model, place: Place, value: Any) -> Any:
    if isinstance(value, list):
        item = model.item(place)
        return [_taken(model, item, each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {name: model.inside(place, name) for name in value}
    return {
        name: _taken(model, inner[name] or place, each)
        for name, each in value.items()
        if not _is_read_only(inner[name])
    }


def _is_read_only(place: Place | None) -> bool:
    return place is not None and place.said is not None and place.said.class_ == "read-only"


def _unseen(model: Model, place: Place, path: Path, value: Any) -> list[Change]:
    if place.said is not None and place.said.class_ == "write-only":
        return [Change(path, value, _AGAIN)]
    inner: list[tuple[Place | None, Path, Any]] = []
    if isinstance(value, list):
        item, keyed = model.item(place), by_key(place, value)
        if keyed is None:
            is_unseen = any(_unseen(model, item, path, each) for each in value)
            return [Change(path, value, _AGAIN)] if is_unseen else []
        inner = [(item, (*path, key), each) for key, each in keyed.items()]
    elif isinstance(value, dict):
        inner = [(model.inside(place, name), (*path, name), value[name]) for name in value]
    return [each for at, *rest in inner if at for each in _unseen(model, at, *rest)]


def _bring(body: Json, path: Path, value: Any) -> None:
    at: Any = body
    for step, after in itertools.pairwise(path):
        inner = found(at, (step,))
        if not isinstance(inner, dict | list):
            if value is NOTHING:
                return
            inner = [] if isinstance(after, Item) else {}
            _put(at, step, inner)
        at = inner
    _put(at, path[-1], copy.deepcopy(value))


def _put(at: Any, step: str | Item, value: Any) -> None:
    if not isinstance(step, Item):
        at[step] = value
        if value is NOTHING:
            del at[step]
        return
    there = [number for number, each in enumerate(at) if has_key(each, step)]
    if value is NOTHING:
        at[:] = [each for number, each in enumerate(at) if number not in there]
    elif there:
        at[there[0]] = value
    else:
        at.append(value)
