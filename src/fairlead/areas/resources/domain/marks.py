"""A mark in resources whose ids the API gives, by which ours is found after a lost answer."""

import hashlib

from fairlead.areas.resources.domain import merging
from fairlead.areas.resources.domain.delta import Change
from fairlead.areas.resources.domain.model import Json, Model, Path, Place, found

_MAPS = ("labels", "tags", "metadata")
_KEY = "fairlead-id"


def path(model: Model, said: str) -> Path | None:
    """Where it stands: as it was said, or in a map that anybody may write; None: nowhere."""
    if said:
        return tuple(said.split("."))
    for name in _MAPS:
        place = model.inside(Place(), name)
        inner = model.inside(place, _KEY) if place else None
        is_map = place is not None and inner is not None and not inner.is_declared
        if is_map and place and place.said and place.said.class_ == "writable":
            return name, _KEY
    return None


def of(id_: str) -> str:
    """The same for the same name of ours, and nobody else's."""
    return f"fairlead-{hashlib.sha256(id_.lower().encode()).hexdigest()[:24]}"


def marked(model: Model, said: str, id_: str, spec: Json) -> Json:
    at = path(model, said)
    return spec if at is None else merging.merged(spec, [Change(at, of(id_), "")])


def bears(model: Model, said: str, id_: str, shown: Json) -> bool:
    at = path(model, said)
    return at is not None and found(shown, at) == of(id_)
