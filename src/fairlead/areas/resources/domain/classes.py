"""Every property of a resource in exactly one class, with where that came from.

Markers decide where there are any. Comparing the methods adds what nobody marked: what only GET
has is read-only, what only a creating POST has is create-only, what GET never shows is write-only.
Which of the writable ones PATCH leaves out says too little to decide anything: of a hundred such
paths six were create-only in the descriptions that were measured.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from fairlead.areas.resources.domain.schemas import Mutability, Properties, Property

Class = Literal["writable", "read-only", "create-only", "write-only"]
CLASSES: tuple[Class, ...] = ("writable", "read-only", "create-only", "write-only")
Provenance = Literal[
    "difference", "readOnly", "writeOnly", "x-ms-mutability", "x-ms-secret", "override"
]
Confidence = Literal["certain", "likely", "assumed"]
Overrides = Mapping[str, Class]
_Said = tuple[Property | None, Property | None, Property | None, Property | None]
_READ, _CREATE, _UPDATE = "read", "create", "update"


class ClassifiedProperty(msgspec.Struct, frozen=True, gc=False, rename={"class_": "class"}):
    """One path of a resource."""

    path: str
    class_: Class
    provenance: Provenance
    confidence: Confidence
    patch: bool
    """Whether PATCH takes it."""

    type: str
    enum: list[object] | None = None
    secret: bool = False
    list_key: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Methods:
    """What each method of one resource takes or shows."""

    get: Properties = field(default_factory=dict)
    put: Properties = field(default_factory=dict)
    post: Properties = field(default_factory=dict)
    """Of a POST that creates, on the collection."""

    patch: Properties = field(default_factory=dict)


class Classifier:
    """Classes of many resources.

    What a path is depends on what is said of it, and most of that is said again and again: by the
    same definition, on other paths and in other resources.
    """

    def __init__(self) -> None:
        # By what is said; that is kept here too, so that no other object gets its number.
        self._known: dict[tuple[object, ...], tuple[ClassifiedProperty, _Said]] = {}

    def classified(self, methods: Methods, overrides: Overrides) -> list[ClassifiedProperty]:
        """All paths, those that can be written first."""
        put, post, patch, get = methods.put, methods.post, methods.patch, methods.get
        has = (bool(put or patch), bool(get))
        found = []
        for path in dict.fromkeys(itertools.chain(put, post, patch, () if get is put else get)):
            said = (put.get(path), post.get(path), patch.get(path), get.get(path))
            key = (has, id(said[0]), id(said[1]), id(said[2]), id(said[3]))
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = (_one(said, methods), said)
            one = known[0]
            found.append(
                ClassifiedProperty(
                    *(path, one.class_, one.provenance, one.confidence, one.patch, one.type),
                    *(one.enum, one.secret, one.list_key),
                )
            )
        return [_overridden(each, overrides) for each in found] if overrides else found


def _overridden(each: ClassifiedProperty, overrides: Overrides) -> ClassifiedProperty:
    class_ = overrides.get(each.path)
    if class_ is None:
        return each
    return msgspec.structs.replace(each, class_=class_, provenance="override", confidence="certain")


def _one(said: _Said, methods: Methods) -> ClassifiedProperty:
    put, post, patch, shown = said
    # Where a property can be written, it is those schemas that say how: GET of a storage account
    # marks everything as read-only, also what PUT takes. What PATCH marks, only PATCH leaves alone.
    telling = [each for each in (put, post) if each is not None]
    telling = telling or [each for each in (patch, shown) if each is not None][:1]
    class_, provenance, confidence = _decided(said, methods, telling)
    enum = next((each.enum for each in telling if each.enum is not None), None)
    key = next((each.list_key for each in telling if each.list_key is not None), None)
    return ClassifiedProperty(
        *("", class_, provenance, confidence, _is_taken(patch), telling[0].type),
        enum=None if enum is None else list(enum),
        secret=any(each is not None and each.is_secret for each in said),
        list_key=None if key is None else list(key),
    )


def _is_taken(patch: Property | None) -> bool:
    return patch is not None and not patch.is_read_only


def _decided(
    said: _Said, methods: Methods, telling: Sequence[Property]
) -> tuple[Class, Provenance, Confidence]:
    if any(each.is_read_only for each in telling):
        return "read-only", "readOnly", "certain"
    marked = next((each.mutability for each in telling if each.mutability is not None), None)
    if marked is not None:
        return _by_mutability(marked), "x-ms-mutability", "certain"
    if any(each.is_write_only for each in telling):
        return "write-only", "writeOnly", "certain"
    if any(each.is_secret for each in telling):
        return "write-only", "x-ms-secret", "likely"
    return _by_difference(said, methods)


def _by_mutability(marked: Mutability) -> Class:
    if not marked & {_CREATE, _UPDATE}:
        return "read-only"
    if _UPDATE not in marked:
        return "create-only"
    return "writable" if _READ in marked else "write-only"


def _by_difference(said: _Said, methods: Methods) -> tuple[Class, Provenance, Confidence]:
    put, post, patch, shown = (each is not None for each in said)
    if post and not (put or patch) and (methods.put or methods.patch):
        return "create-only", "difference", "likely"
    if not (put or patch or post):
        return "read-only", "difference", "likely"
    if methods.get and not shown:
        return "write-only", "difference", "likely"
    return "writable", "difference", "assumed"
