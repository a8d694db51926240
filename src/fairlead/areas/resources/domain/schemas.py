"""The properties of a schema, by path: `properties.subnets[].name`, `tags`, `identity.users.*.id`.

Arrays and maps are walked through, `allOf`, `oneOf` and `anyOf` are joined, and where a
discriminator chooses among subtypes the properties of all of them are there. A path ends where a
definition would contain itself, and after ten names.

Thousands of definitions are reached on tens of thousands of paths, so each is looked at once: an
object knows its members, a member what it says of itself and which objects are behind it.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlead.areas.resources.domain.documents import Documents, Located

DEEPEST = 10
_KEYS = ("name", "id")
_JOINED = ("allOf", "oneOf", "anyOf")
_MEMBERS = (*_JOINED, "properties", "discriminator")
Mutability = frozenset[str]
_Said = tuple[Mapping[str, Any], ...]


class Property(msgspec.Struct, frozen=True):
    """What one schema says of one path."""

    type: str
    enum: tuple[Any, ...] | None = None
    list_key: tuple[str, ...] | None = None
    is_read_only: bool = False
    is_write_only: bool = False
    is_secret: bool = False
    mutability: Mutability | None = None


Properties = Mapping[str, Property]


@dataclass(slots=True)
class _Object:
    """A definition, or an object without a name; its members are found when they are needed."""

    at: Located
    named: Mapping[str, Located] | None = None
    members: "list[_Member] | None" = None


@dataclass(frozen=True, slots=True)
class _Way:
    """From a member to an object behind it."""

    object: _Object
    suffix: str
    """`[]` for each list, `.*` for each map on the way."""

    definitions: frozenset[str]
    """Those that are entered on it; to enter one a second time would be a circle."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    own: Property
    ways: tuple[_Way, ...]
    inherited: dict[tuple[bool, Mutability | None], Property] = field(default_factory=dict)

    def below(self, above: Property) -> Property:
        """The property with what it inherits."""
        if not above.is_read_only and above.mutability is None:
            return self.own
        key = (above.is_read_only, above.mutability)
        found = self.inherited.get(key)
        if found is None:
            found = self.inherited[key] = msgspec.structs.replace(
                self.own,
                is_read_only=self.own.is_read_only or above.is_read_only,
                mutability=self.own.mutability or above.mutability,
            )
        return found


_TOP = Property("object")


class Schemas:
    """Schemas of some documents; `entries` are those in which subtypes are looked for."""

    def __init__(self, documents: Documents, entries: Iterable[str]) -> None:
        self._documents = documents
        self._entries = tuple(entries)
        self._objects: dict[tuple[str, int], _Object] = {}
        self._walked: dict[tuple[str, int], dict[str, Property]] = {}

    def properties(self, schema: Located) -> Properties:
        """By path; the same object for the same definition."""
        target = self._documents.resolved(schema)
        key = (target.file, id(target.node))
        found = self._walked.get(key)
        if found is None:
            found = self._walked[key] = {}
            for way in self._ways(schema, "", frozenset()):
                prefix = f"{way.suffix}.".lstrip(".")
                self._walk(way.object, prefix, (_TOP, 1, way.definitions), found)
        return found

    def _walk(
        self,
        object_: _Object,
        prefix: str,
        where: tuple[Property, int, frozenset[str]],
        found: dict[str, Property],
    ) -> None:
        """Everything in this object, into `found`; `where` is the property, depth and way to it."""
        above, depth, entered = where
        for member in self._members(object_):
            path = prefix + member.name
            found[path] = property_ = member.below(above)
            if depth < DEEPEST:
                for way in member.ways:
                    if entered.isdisjoint(way.definitions):
                        inner = (property_, depth + 1, entered | way.definitions)
                        self._walk(way.object, f"{path}{way.suffix}.", inner, found)

    def _members(self, object_: _Object) -> "list[_Member]":
        if object_.members is None:
            named = self._names(object_)
            object_.members = [self._member(name, at) for name, at in named.items()]
        return object_.members

    def _names(self, object_: _Object) -> Mapping[str, Located]:
        if object_.named is None:
            object_.named = self._named(object_.at, frozenset())
        return object_.named

    def _member(self, name: str, at: Located) -> _Member:
        inner = self._documents.resolved(at)
        said: _Said = (at.node,) if at.node is inner.node else (at.node, inner.node)
        ways = tuple(self._ways(at, "", frozenset()))
        enum = inner.node.get("enum")
        own = Property(
            type=_type(inner.node),
            enum=tuple(enum) if isinstance(enum, list) else None,
            list_key=self._list_key(said, ways) if "items" in inner.node else None,
            is_read_only=_is(said, "readOnly"),
            is_write_only=_is(said, "writeOnly"),
            is_secret=_is(said, "x-ms-secret") or inner.node.get("format") == "password",
            mutability=_mutability(said),
        )
        return _Member(name, own, ways)

    def _ways(self, at: Located, suffix: str, entered: frozenset[str]) -> Iterator[_Way]:
        """The objects behind this place, through lists and maps."""
        target = self._documents.resolved(at)
        if target.pointer in entered:
            return
        if target.pointer:
            entered |= {target.pointer}
        items, values = target.node.get("items"), target.node.get("additionalProperties")
        if isinstance(items, dict):
            yield from self._ways(target.part(items), f"{suffix}[]", entered)
            return
        if any(word in target.node for word in _MEMBERS):
            key = (target.file, id(target.node))
            yield _Way(self._objects.setdefault(key, _Object(target)), suffix, entered)
        if isinstance(values, dict) and values:
            yield from self._ways(target.part(values), f"{suffix}.*", entered)

    def _list_key(self, said: _Said, ways: tuple[_Way, ...]) -> tuple[str, ...] | None:
        """What tells items of a list apart: as it says, or a name or id of its objects."""
        for each in said:
            declared = each.get("x-ms-identifiers")
            if isinstance(declared, list):
                return tuple(str(key).strip("/").replace("/", ".") for key in declared) or None
        if not ways or ways[0].suffix != "[]":
            return None
        names = self._names(ways[0].object)
        return next(((key,) for key in _KEYS if key in names), None)

    def _named(self, target: Located, inside: frozenset[int]) -> dict[str, Located]:
        """Members of one object by name, with those that it inherits or may have."""
        if id(target.node) in inside:
            return {}
        inside |= {id(target.node)}
        joined: dict[str, Located] = {}
        for word in _JOINED:
            for each in target.node.get(word) or ():
                joined |= self._named(self._documents.resolved(target.part(each)), inside)
        own = target.node.get("properties") or {}
        joined |= {str(name): target.part(node) for name, node in own.items()}
        if "discriminator" in target.node:
            for subtype in self._below(target.pointer, frozenset()):
                joined = {**self._named(subtype, inside), **joined}
        return joined

    def _below(self, pointer: str, seen: frozenset[str]) -> Iterator[Located]:
        """Subtypes, and theirs."""
        for subtype in self._subtypes.get(pointer, ()):
            if subtype.pointer not in seen:
                yield subtype
                yield from self._below(subtype.pointer, seen | {subtype.pointer})

    @functools.cached_property
    def _subtypes(self) -> Mapping[str, list[Located]]:
        """By what they are made from."""
        found: dict[str, list[Located]] = {}
        for file in self._entries:
            for subtype in self._definitions(file):
                for each in subtype.node.get("allOf") or ():
                    base = self._documents.resolved(subtype.part(each))
                    found.setdefault(base.pointer, []).append(subtype)
        return found

    def _definitions(self, file: str) -> Iterator[Located]:
        root = self._documents.document(file)
        for place in ("definitions", "components/schemas"):
            node = root.node
            for part in place.split("/"):
                node = node.get(part) or {}
            for name, each in node.items():
                if isinstance(each, dict):
                    yield Located(file, each, f"{file}#/{place}/{name}")


def _is(said: _Said, mark: str) -> bool:
    return said[0].get(mark) is True or said[-1].get(mark) is True


def _mutability(said: _Said) -> Mutability | None:
    for each in said:
        marked = each.get("x-ms-mutability")
        if isinstance(marked, list) and marked:
            return frozenset(str(word) for word in marked)
    return None


def _type(node: Mapping[str, Any]) -> str:
    said = node.get("type")
    if isinstance(said, list):
        # OpenAPI 3.1 writes what may be null as a list.
        said = next((each for each in said if each != "null"), None)
    if isinstance(said, str):
        return said
    return "array" if "items" in node else "object"
