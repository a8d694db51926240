"""What may be written into a row, and whether a row says more than we can read.

JSON has no NaN and no infinity (they would be written as null), and what is nested without
limit can be written by one call and not be read by another that stands deeper in the stack.
Both are refused before anything is kept. And a field that a row has and its type has not was
written by a newer program: to read the row without it, and write it again, would lose it.

Both are asked of every message, so what a type allows is learnt once: only the few places that
can hold such a number or such nesting are looked at, and of a row only the names of its fields.
"""

import dataclasses
import functools
import math
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import msgspec
from msgspec import inspect

MAX_DEPTH = 100
"""Lists and objects inside each other, the message itself counted."""

_MAX_PATH = 200
_UNKNOWN = re.compile(r"unknown field `(?P<name>.*?)`(?: - at `(?P<path>.*)`)?$")
_Finder = Callable[[Any], bool]


class Shape:
    """What a type says about its messages; learnt when the first of them comes."""

    def __init__(self, type_: type) -> None:
        self._type = type_

    @functools.cached_property
    def finder(self) -> "_Finder | None":
        """None where no message of the type can be faulty."""
        return _finder(inspect.type_info(self._type), 1, ())

    @functools.cached_property
    def _open(self) -> bool:
        inner = _inner(inspect.type_info(self._type), ())
        return any(isinstance(each, inspect.AnyType | None) for each in inner)

    @functools.cached_property
    def _names(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(_names(self._type, ()))

    def is_faulty(self, message: object, data: bytes) -> bool:
        """Whether a message, encoded as data, could not be read back as it is."""
        if self.finder is None or not (b"null" in data or (self._open and _may_be_deep(data))):
            return False
        return self.finder(message)

    def surplus(self, data: str) -> str | None:
        """The path of a field of a readable row that its type does not have."""
        try:
            self._names.decode(data)
        except msgspec.ValidationError as error:
            found = _UNKNOWN.search(str(error))
            return f"{found['path'] or '$'}.{found['name']}" if found else None
        return None


def fault(value: object, depth: int = 1) -> str | None:
    """What cannot be kept in a message or in plain data, with its path; None if all can."""
    # Not by recursion: it must also end on what is nested too deep for that.
    todo: list[tuple[object, str, int]] = [(value, "$", depth)]
    while todo:
        value, path, depth = todo.pop()
        if isinstance(value, float):
            if not math.isfinite(value):
                return f"a number that is not finite at {path[:_MAX_PATH]}: {value}"
            continue
        parts = _parts(value)
        if parts is None:
            continue
        if depth > MAX_DEPTH:
            return f"nesting of more than {MAX_DEPTH} levels: {path[:_MAX_PATH]}"
        todo.extend((part, f"{path}{name}", depth + 1) for name, part in parts)
    return None


def essence(value: Any) -> Any:
    """What a message says, without what its defaults add.

    A field that equals its default is left out, wherever it stands: a command that was sent
    before its type gained an optional field says the same after it, and so does one that
    spells a default out. 2.0 and 2 are one number.
    """
    fields = _fields_of(value)
    if fields is not None:
        told = ((field, getattr(value, field.name)) for field in fields)
        return {field.name: essence(each) for field, each in told if not field.is_default(each)}
    match value:
        case dict():
            return {key: essence(each) for key, each in value.items()}
        case list() | tuple():
            return [essence(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    default: Any
    factory: Any

    def is_default(self, value: object) -> bool:
        default = self.default if self.factory is _NONE else self.factory()
        return default is not _NONE and bool(value == default)


_NONE = object()


def _fields_of(value: object) -> tuple[_Field, ...] | None:
    kind: Any = type(value)  # mypy does not know that a class is hashable
    return _defaults(kind)


@functools.cache
def _defaults(type_: type) -> tuple[_Field, ...] | None:
    """The fields of a dataclass or struct; None for any other type."""
    if dataclasses.is_dataclass(type_):
        fields = dataclasses.fields(type_)
        return tuple(_Field(*_known(each, dataclasses.MISSING)) for each in fields)
    if _is_struct(type_):
        told = msgspec.structs.fields(type_)
        return tuple(_Field(*_known(each, msgspec.NODEFAULT)) for each in told)
    return None


def _known(field: Any, missing: object) -> tuple[str, Any, Any]:
    pair = (field.default, field.default_factory)
    default, factory = (_NONE if each is missing else each for each in pair)
    return field.name, default, factory


def _is_struct(type_: type) -> TypeGuard[type[msgspec.Struct]]:
    return issubclass(type_, msgspec.Struct)


def _parts(value: Any) -> Iterator[tuple[str, object]] | None:
    """What is inside a value, each with its step of the path; None where nothing can be."""
    fields = _fields_of(value)
    if fields is not None:
        return ((f".{each.name}", getattr(value, each.name)) for each in fields)
    match value:
        case dict():
            return ((f".{key}", each) for key, each in value.items())
        case list() | tuple() | set() | frozenset():
            return ((f"[{n}]", each) for n, each in enumerate(value))
        case _:
            return None


def _inner(info: inspect.Type, above: tuple[inspect.Type, ...]) -> Iterator[inspect.Type | None]:
    """A type and all types inside it; None where it comes round to itself."""
    if _among(info, above):
        yield None
        return
    yield info
    for each in _children(info):
        yield from _inner(each, (*above, info))


def _among(info: object, above: Sequence[object]) -> bool:
    return any(info is each for each in above)


def _children(info: inspect.Type) -> tuple[inspect.Type, ...]:
    match info:
        case inspect.DataclassType() | inspect.StructType():
            return tuple(field.type for field in info.fields)
        case inspect.UnionType():
            return info.types
        case inspect.TupleType():
            return info.item_types
        case inspect.DictType():
            return info.key_type, info.value_type
        case inspect.CollectionType():
            return (info.item_type,)
        case _:
            return ()


def _finder(info: inspect.Type, depth: int, above: tuple[inspect.Type, ...]) -> _Finder | None:
    """Finds what cannot be kept in values of a type; None where there can be nothing."""
    if _among(info, above):
        return functools.partial(_is_faulty, depth=depth)
    inside = functools.partial(_finder, depth=depth + 1, above=(*above, info))
    match info:
        case inspect.FloatType():
            return _is_not_finite
        case inspect.DataclassType() | inspect.StructType():
            found = ((field.name, inside(field.type)) for field in info.fields)
            return _of_fields([(name, finder) for name, finder in found if finder is not None])
        case inspect.DictType():
            values = inside(info.value_type)
            return None if values is None else lambda value: any(map(values, value.values()))
        case inspect.ListType() | inspect.VarTupleType():
            items = inside(info.item_type)
            return None if items is None else lambda value: any(map(items, value))
        case _:
            return _of_others(info, depth, above)


def _of_others(info: inspect.Type, depth: int, above: tuple[inspect.Type, ...]) -> _Finder | None:
    if isinstance(info, inspect.UnionType):
        found = [_finder(each, depth, above) for each in info.types]
        finders = [each for each in found if each is not None]
        plain = inspect.NoneType | inspect.FloatType
        others = [each for each in info.types if not isinstance(each, plain)]
        if len(finders) == 1 and len(others) <= 1:
            (finder,) = finders
            return lambda value: value is not None and finder(value)
    # Sets, unions of several, anything: rare, or of no known shape.
    kinds = (inspect.AnyType, inspect.FloatType, type(None))
    if any(isinstance(each, kinds) for each in _inner(info, above)):
        return functools.partial(_is_faulty, depth=depth)
    return None


def _of_fields(finders: Sequence[tuple[str, _Finder]]) -> _Finder | None:
    getters = [(operator.attrgetter(name), finder) for name, finder in finders]
    if not getters:
        return None
    return lambda value: any(finder(getter(value)) for getter, finder in getters)


def _is_not_finite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_faulty(value: object, depth: int) -> bool:
    return fault(value, depth) is not None


def _may_be_deep(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH


def _names(type_: Any, above: tuple[type, ...]) -> Any:
    """A type with the names of another's fields, at any depth, that refuses all other names.

    Values are not even parsed. A dataclass within itself is let through.
    """
    if typing.get_args(type_):
        return _names_within(type_, above)
    if not (isinstance(type_, type) and dataclasses.is_dataclass(type_)) or type_ in above:
        return msgspec.Raw
    hints = typing.get_type_hints(type_)
    inside = (*above, type_)
    fields = [(name, _names(hints[name], inside), msgspec.Raw()) for name in _field_names(type_)]
    return msgspec.defstruct(type_.__name__, fields, forbid_unknown_fields=True)


def _names_within(type_: Any, above: tuple[type, ...]) -> Any:
    """The same for lists, mappings, unions and their like; Raw where they hold no dataclass."""
    origin, args = typing.get_origin(type_), typing.get_args(type_)
    names = [_names(each, above) for each in args]
    telling = [each for each in names if each is not msgspec.Raw]
    if not telling:
        return msgspec.Raw
    if origin in (typing.Union, types.UnionType):
        # What is plain stays itself: Raw would take whatever comes, before the others.
        both = zip(args, names, strict=True)
        return functools.reduce(operator.or_, [o if n is msgspec.Raw else n for o, n in both])
    if origin is tuple and args[-1] is not ...:
        return types.GenericAlias(tuple, tuple(names))
    (inner,) = telling
    if len(args) == 1 or args[-1] is ...:
        return types.GenericAlias(list, (inner,))
    return types.GenericAlias(dict, (str, inner))


def _field_names(type_: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(type_)]
