"""What has to change so that a resource is as its spec says: a three-way difference, pure.

The spec is held against what was applied last: what differs was changed by its owner. Where both
agree, what was observed tells a drift, which is written back where the policy says so. Whatever the
spec does not name belongs to others and stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlead.areas.resources.domain import applied as applied_
from fairlead.areas.resources.domain.model import (
    NOTHING,
    Item,
    Json,
    Model,
    Path,
    Place,
    by_key,
    found,
    written,
)

Policy = Literal["enforce", "ignore", "init-only"]
"""Of a path whose value differs though its spec did not change: written back, left alone, or
written at creation only, whatever the spec says later."""

_SCALED_BY_OTHERS = {"sku.capacity": "ignore"}


@dataclass(frozen=True, slots=True)
class Change:
    """One value to be written or removed."""

    path: Path
    value: Any
    """NOTHING where it is removed."""

    why: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a resource beside its spec."""

    applied: Json
    """What was written last, sealed."""

    observed: Json | None = None
    settled: Mapping[str, Any] = field(default_factory=dict)
    """What the API made of values that were written, by their path: different, and no drift."""


@dataclass(frozen=True, slots=True)
class Differ:
    """Compares by the words of one type."""

    model: Model
    seal: applied_.Seal
    policies: Mapping[str, str] = field(default_factory=dict)
    """By place; what is below follows."""

    def changes(self, spec: Json, known: Known) -> Sequence[Change]:
        """Nothing to write where it is empty."""
        top = _At((), Place(), known)
        return tuple(self._members(top, spec, known.applied, known.observed or {}))

    def settled(self, spec: Json, observed: Json) -> Mapping[str, Any]:
        """What an API made of a spec that it took."""
        made: dict[str, Any] = {}
        # Held against nothing but the answer, every difference is a drift.
        known = Known(self.seal.sealed(self.model, spec), observed)
        for change in Differ(self.model, self.seal).changes(spec, known):
            shown = found(observed, change.path)
            place = self.model.place(change.path)
            made[written(change.path)] = (
                None if shown is NOTHING else self.seal.kept(self.model, place, shown)
            )
        return made

    def _value(self, at: "_At", spec: Any, before: Any, shown: Any) -> Iterator[Change]:
        if self._policy(at.place) == "init-only" and shown is not NOTHING:
            return
        if isinstance(spec, dict) and (spec or isinstance(before, dict)):
            yield from self._members(at, spec, _dict(before), _dict(shown))
            return
        if isinstance(spec, list):
            items = by_key(at.place, spec)
            if items is not None and (spec or before is not NOTHING):
                yield from self._items(at, items, before, shown)
                return
        if not self.seal.is_same(spec, before):
            if shown is not NOTHING and applied_.are_alike(spec, shown):
                return
            why = "not written yet" if before is NOTHING else "changed in the spec"
            yield Change(at.path, spec, why)
        elif self._drifted(at, spec, shown):
            yield Change(at.path, spec, f"drifted: {_told(at.place, shown)}")

    def _members(self, at: "_At", spec: Json, before: Json, shown: Json) -> Iterator[Change]:
        for name, value in spec.items():
            inner = at.inside(self.model, name)
            old, seen = before.get(name, NOTHING), shown.get(name, NOTHING)
            yield from self._value(inner, value, old, seen)
        for name in before.keys() - spec.keys():
            inner = at.inside(self.model, name)
            # A key of a map is removed; a property that is left out is handed over as it is.
            is_there = at.known.observed is None or name in shown
            if not inner.place.is_declared and is_there:
                yield Change(inner.path, NOTHING, "removed from the spec")

    def _items(
        self, at: "_At", spec: Mapping[Item, Any], before: Any, shown: Any
    ) -> Iterator[Change]:
        old = by_key(at.place, before) if isinstance(before, list) else {}
        seen = (by_key(at.place, shown) if isinstance(shown, list) else None) or {}
        for key, value in spec.items():
            inner = at.item(self.model, key)
            if key not in (old or {}):
                yield Change(inner.path, value, "added to the spec")
            elif at.known.observed is not None and key not in seen:
                if self._is_enforced(at.place):
                    yield Change(inner.path, value, "drifted: it is gone")
            else:
                assert old is not None
                yield from self._value(inner, value, old[key], seen.get(key, NOTHING))
        there = (
            (old or {}).keys() if at.known.observed is None else seen.keys() & (old or {}).keys()
        )
        for key in there - spec.keys():
            yield Change(at.item(self.model, key).path, NOTHING, "removed from the spec")

    def _drifted(self, at: "_At", spec: Any, shown: Any) -> bool:
        if at.known.observed is None or not self._is_enforced(at.place):
            return False
        if shown is not NOTHING and applied_.are_alike(spec, shown):
            return False
        name = written(at.path)
        if name not in at.known.settled:
            return True
        settled = at.known.settled[name]
        if shown is NOTHING:
            return settled is not None
        return not self.seal.is_same(shown, settled)

    def _is_enforced(self, place: Place) -> bool:
        is_shown = place.said is None or place.said.class_ != "write-only"
        return is_shown and self._policy(place) == "enforce"

    def _policy(self, place: Place) -> str:
        """The nearest one at or above the place."""
        every = {**_SCALED_BY_OTHERS, **self.policies}
        path = place.path
        while path:
            if path in every:
                return every[path]
            path = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
        return "enforce"


@dataclass(frozen=True, slots=True)
class _At:
    """A value on the walk."""

    path: Path
    place: Place
    known: Known

    def inside(self, model: Model, name: str) -> "_At":
        path = (*self.path, name)
        return _At(path, model.inside(self.place, name) or model.place(path), self.known)

    def item(self, model: Model, key: Item) -> "_At":
        return _At((*self.path, key), model.item(self.place), self.known)


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _told(place: Place, shown: Any) -> str:
    if place.is_secret:
        return "it differs"
    return "it is gone" if shown is NOTHING else f"it is {shown!r:.60}"
