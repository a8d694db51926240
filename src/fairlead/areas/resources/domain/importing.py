"""From what an API shows to the spec that would change nothing of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairlead.areas.resources.domain import merging, references
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.delta import Change, Differ, Known
from fairlead.areas.resources.domain.hooks import Point
from fairlead.areas.resources.domain.model import NOTHING, Json, Model, Path, Place, written

_PLAIN = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file would say of a resource."""

    properties: Json
    """What may be written and is shown; secrets by name."""

    secrets: dict[str, str]
    """The names that were given, by the place of each."""

    differing: tuple[str, ...]
    """What was left out, since writing what is shown would be a change."""


def imported(model: Model, seal: Seal, name: str, observed: Json) -> Imported:
    """By the name of the resource, which its secrets are called after."""
    walk = _Walk(model, name)
    spec = walk.members(Place(), (), observed)
    spec = model.hooks.spec(Point.IMPORT, name, spec)
    differing: list[Path] = []
    while paths := [*_differing(model, seal, references.resolved(spec, walk.value), observed)]:
        differing += paths
        spec = merging.merged(spec, [Change(path, NOTHING, "") for path in paths])
    named = {place: each for place, (each, _) in walk.secrets.items()}
    return Imported(spec, named, tuple(written(path) for path in differing))


def filled_in(spec: Json, chosen: Json) -> Json:
    """A spec with what the API chose for what it leaves out; what it says stays, lists whole."""
    filled = dict(spec)
    for name, value in chosen.items():
        mine = spec.get(name)
        if name not in spec:
            filled[name] = value
        elif isinstance(mine, dict) and isinstance(value, dict) and not references.is_one(mine):
            filled[name] = filled_in(mine, value)
    return filled


def _differing(model: Model, seal: Seal, spec: Json, observed: Json) -> Iterator[Path]:
    known = Known(seal.sealed(model, spec), observed)
    paths = {merging.whole(each.path) for each in Differ(model, seal).changes(spec, known)}
    yield from sorted(paths)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Through what is shown, taking what may be written."""

    model: Model
    name: str
    secrets: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Name and value, by place."""

    def value(self, name: str) -> Any:
        return next(value for each, value in self.secrets.values() if each == name)

    def members(self, place: Place, path: Path, shown: Json) -> Json:
        inner = {name: self.model.inside(place, name) for name in shown}
        taken = {
            name: self._taken(at, (*path, name), shown[name])
            for name, at in inner.items()
            if at is not None and not (at.said and at.said.class_ == "read-only")
        }
        return {name: each for name, each in taken.items() if each is not NOTHING}

    def _taken(self, place: Place, path: Path, shown: Any) -> Any:
        """NOTHING where nothing of it may be written."""
        if shown is None:
            return NOTHING
        if place.is_secret:
            return self._secret(place, path, shown)
        if isinstance(shown, list):
            item = self.model.item(place)
            items = [self._taken(item, (*path, str(at)), each) for at, each in enumerate(shown)]
            kept: Any = [each for each in items if each is not NOTHING]
        elif isinstance(shown, dict):
            kept = self.members(place, path, shown)
        else:
            return shown
        return kept if kept or not shown else NOTHING

    def _secret(self, place: Place, path: Path, shown: Any) -> Any:
        if not (place.said and place.said.secret) or isinstance(shown, dict | list):
            return NOTHING
        name = "-".join((self.name, *(str(step) for step in path)))
        name = _PLAIN.sub("-", name)[-_LONGEST_NAME:]
        self.secrets[written(path)] = (name, shown)
        return {references.NAME: name}
