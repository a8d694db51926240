"""Where a value stands in a resource, and what its type says of that place.

A path names one value: `("properties", "subnets", Item((("name", "a"),)), "addressPrefix")`. A
place is what the description calls all such: `properties.subnets[].addressPrefix`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from fairlead.areas.resources.domain.classes import ClassifiedProperty
from fairlead.areas.resources.domain.hooks import NO_HOOKS, Hooks
from fairlead.areas.resources.domain.reading import ResourceType

Json = dict[str, Any]
_ITEM, _VALUE = "[]", "*"
_DOT = "."


class Nothing(Enum):
    """That there is no value; null is one."""

    NOTHING = "nothing"


NOTHING = Nothing.NOTHING


class Item(NamedTuple):
    """An item of a list, by what tells it apart; its position says nothing."""

    keys: tuple[tuple[str, Any], ...]


Step = str | Item
Path = tuple[Step, ...]


class Place(NamedTuple):
    """What a description says of all values at a path."""

    path: str = ""
    said: ClassifiedProperty | None = None
    """Of the nearest declared property at or above it; None at the top."""

    is_declared: bool = True
    """Otherwise it is a key of a map, or below what is described no further."""

    @property
    def list_key(self) -> tuple[str, ...]:
        own = self.said.list_key if self.said and self.said.path == self.path else None
        return tuple(own or ())

    @property
    def is_secret(self) -> bool:
        """Whether no answer, status or plan may show it."""
        said = self.said
        return said is not None and (said.secret or said.class_ == "write-only")


@dataclass(frozen=True, slots=True)
class Model:
    """One type, to be asked about places."""

    type: ResourceType
    _said: Mapping[str, ClassifiedProperty]
    _names: Mapping[str, Sequence[str]]
    hooks: Hooks = NO_HOOKS

    @classmethod
    def of(cls, type_: ResourceType, hooks: Hooks = NO_HOOKS) -> "Model":
        said = {each.path: each for each in type_.properties}
        names: dict[str, list[str]] = {}
        for path in said:
            # Between a list or map and the names in it, no property is declared.
            parts = path.split(_DOT)
            for end in range(len(parts), 0, -1):
                above, name = _DOT.join(parts[: end - 1]), parts[end - 1]
                beside = names.setdefault(above, [])
                if name.removesuffix(_ITEM) in beside:
                    break
                beside.append(name.removesuffix(_ITEM))
                names.setdefault(_DOT.join(parts[:end]), [])
        return cls(type_, said, names, hooks.of(type_.type))

    def inside(self, place: Place, name: str) -> Place | None:
        """Where a member stands; None where there is none of that name."""
        inner = f"{place.path}{_DOT}{name}".lstrip(_DOT)
        if inner in self._said:
            return Place(inner, self._said[inner])
        names = self._names.get(place.path, ())
        if _VALUE in names:
            return Place(f"{place.path}{_DOT}{_VALUE}", place.said, is_declared=False)
        if names or place.said is None:
            return None
        return Place(inner, place.said, is_declared=False)

    def item(self, place: Place) -> Place:
        return Place(f"{place.path}{_ITEM}", place.said, place.is_declared)

    def names(self, place: Place) -> Sequence[str]:
        """Of the members that are declared there."""
        return [each for each in self._names.get(place.path, ()) if each != _VALUE]

    def place(self, path: Path) -> Place:
        """Of a path that is known to make sense."""
        at = Place()
        for step in path:
            found = self.item(at) if isinstance(step, Item) else self.inside(at, step)
            # Whatever an API returns beyond its description belongs to what it stands in.
            at = found or Place(f"{at.path}{_DOT}{step}".lstrip(_DOT), at.said, is_declared=False)
        return at

    def has_secret(self, place: Place, value: Any) -> bool:
        """Whether anything in the value is one."""
        if place.is_secret:
            return True
        if isinstance(value, list):
            return any(self.has_secret(self.item(place), each) for each in value)
        if isinstance(value, dict):
            inner = ((self.inside(place, name) or place, each) for name, each in value.items())
            return any(self.has_secret(*each) for each in inner)
        return False


def key_of(place: Place, item: Any) -> Item | None:
    """What tells it apart; None where it does not say all of that."""
    if not place.list_key or not isinstance(item, dict):
        return None
    keys = tuple((key, _inner(item, key)) for key in place.list_key)
    return Item(keys) if all(isinstance(value, str | int) for _, value in keys) else None


def has_key(item: Any, key: Item) -> bool:
    return isinstance(item, dict) and all(_inner(item, name) == is_ for name, is_ in key.keys)


def by_key(place: Place, items: Sequence[Any]) -> Mapping[Item, Any] | None:
    """Items by what tells them apart; None where that is not so for each of them."""
    keyed = [(key_of(place, each), each) for each in items]
    items_by_key = {key: each for key, each in keyed if key is not None}
    return items_by_key if len(items_by_key) == len(items) else None


def found(value: Any, path: Path) -> Any:
    """What stands there; NOTHING where nothing does."""
    for step in path:
        if isinstance(step, Item):
            items = value if isinstance(value, list) else ()
            value = next((each for each in items if has_key(each, step)), NOTHING)
        else:
            value = value.get(step, NOTHING) if isinstance(value, dict) else NOTHING
    return value


def written(path: Path) -> str:
    """For people: `tags["a.b"]`, `properties.subnets[name=a].addressPrefix`."""
    return "".join(_written(path)).removeprefix(_DOT)


def _written(path: Path) -> Iterator[str]:
    for step in path:
        if isinstance(step, Item):
            yield f"[{', '.join(f'{key}={value}' for key, value in step.keys)}]"
        else:
            yield f"{_DOT}{step}" if step.replace("_", "").isalnum() else f'["{step}"]'


def _inner(item: Json, key: str) -> Any:
    value: Any = item
    for name in key.split(_DOT):
        value = value.get(name) if isinstance(value, dict) else None
    return value
