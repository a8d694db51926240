"""Plain data into typed values, with all that is wrong told at once.

msgspec stops at the first mistake. Where it refuses, the type is walked beside the data, and each
mistake on the way is told with the path of its field and with what was probably meant.
"""

import contextlib
import copy
import dataclasses
import datetime as dt
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import inspect as types

from fairlead import errors
from fairlead.errors import Problem
from fairlead.values import one_of

T = TypeVar("T")
MOST = 50
"""More mistakes than a person reads; the rest is told once these are mended."""

QUOTE = "put it in quotes"
_LONGEST = 40
_PART = re.compile(r"[^.\[\]]+")
_ITEMS = re.compile(r"(\[[0-9]+\])+$")
_EXPECTED: dict[type[types.Type], str] = {
    types.StrType: "text",
    types.IntType: "a whole number",
    types.FloatType: "a number",
    types.BoolType: "true or false",
    types.ListType: "a list",
    types.DictType: "a map",
    types.StructType: "a map",
}
# A boolean is an int to Python, a moment a date: the narrower kind stands first.
_GOT: tuple[tuple[type, str], ...] = (
    (type(None), "nothing"),
    (str, "text"),
    (bool, "a boolean"),
    (int, "a number"),
    (float, "a number"),
    (dt.date, "a date"),
    (list, "a list"),
    (dict, "a map"),
)
_PLAIN: dict[type[types.Type], tuple[type, ...]] = {
    types.StrType: (str,),
    types.IntType: (int,),
    types.FloatType: (int, float),
    types.BoolType: (bool,),
    types.ListType: (list,),
    types.DictType: (dict,),
    types.StructType: (dict,),
}


_FILLERS: dict[type[types.Type], object] = {
    types.StrType: "x",
    types.FloatType: 0.0,
    types.BoolType: False,
    types.DictType: {},
}


def hinted(hint: str) -> msgspec.Meta:
    """For `Annotated`: what to write in a field whose value is of the wrong kind."""
    return msgspec.Meta(extra={"hint": hint})


def convert(content: object, to: type[T], at: str = "", *, about: str) -> T:
    """The data as this type; Invalid with every mistake, and `about` where no hint is better."""
    try:
        return msgspec.convert(content, to)
    except msgspec.ValidationError as error:
        found = _Walk(about).problems(types.type_info(to), content, at)
        raise errors.Invalid(
            list(itertools.islice(found, MOST)) or [_told(error, at, about)]
        ) from error
    except UnicodeEncodeError as error:
        # JSON and YAML may escape half of a character; it has no bytes, so it is no text.
        raise refusal(at, "text that is not Unicode", "remove the broken character") from error


def refusal(at: str, problem: str, hint: str) -> errors.Invalid:
    """One mistake that a type cannot tell."""
    return errors.Invalid([Problem(at, problem, hint)])


def without(content: object, paths: Iterable[str]) -> object:
    """A copy without the fields at these paths; of a list's item, without the list."""
    rest: Any = copy.deepcopy(content)
    for path in paths:
        *above, name = _PART.findall(_ITEMS.sub("", path)) or [""]
        # A name with a dot in it leads nowhere, and its field stays.
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
            functools.reduce(_below, above, rest).pop(name, None)
    return rest


def completed(content: object, to: object) -> object:
    """A copy with something in every field that is missing, so that all others can be judged."""
    return _completed(types.type_info(to), content)


def _completed(info: types.Type, value: object) -> object:
    match info, value:
        case types.Metadata(type=below), _:
            return _completed(below, value)
        case types.UnionType(types=members), _:
            able = (each for each in members if type(each) in _PLAIN and _fits(each, value))
            return next((_completed(each, value) for each in able), value)
        case types.StructType(fields=fields), dict():
            kinds = {each.encode_name: each.type for each in fields}
            missing = {each.encode_name: each.type for each in fields if each.required}
            return {name: _filler(kind) for name, kind in missing.items()} | {
                name: _completed(kinds[name], each) if name in kinds else each
                for name, each in value.items()
            }
        case types.ListType(item_type=below), list():
            return [_completed(below, each) for each in value]
        case _:
            return value


def _filler(info: types.Type) -> object:
    """Of its kind, and as harmless as can be."""
    match info:
        case types.Metadata(type=below):
            return _filler(below)
        case types.StructType():
            return _completed(info, {})
        case types.ListType(item_type=below):
            return [_filler(below)]
        case types.IntType(ge=least):
            return least or 0
        case _:
            return _FILLERS.get(type(info))


def _below(place: Any, part: str) -> Any:
    return place[int(part)] if isinstance(place, list) else place[part]


class Gathered:
    """What several parts of one thing refuse, so that all of it is told at once."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        try:
            yield
        except errors.Invalid as error:
            self._problems += error.problems

    def settle(self) -> None:
        """Invalid where any part was refused."""
        if self._problems:
            raise errors.Invalid(self._problems)


@dataclasses.dataclass(frozen=True, slots=True)
class _Walk:
    """One way through a type beside the data for it."""

    about: str
    hint: str = ""
    """Of the type itself, where it has one."""

    def problems(self, info: types.Type, value: object, at: str) -> Iterator[Problem]:
        match info:
            case types.Metadata(type=below, extra=extra):
                hint = str((extra or {}).get("hint", ""))
                yield from dataclasses.replace(self, hint=hint).problems(below, value, at)
            case types.UnionType(types=members):
                yield from self._union(members, value, at)
            case types.LiteralType(values=values):
                yield from self._choice(values, value, at)
            case _ if type(info) not in _PLAIN:
                return
            case _ if not _fits(info, value):
                yield self._wrong_kind(info, value, at)
            case types.StructType():
                yield from self._struct(info, value, at)
            case types.DictType(value_type=below):
                yield from self._map(below, value, at)
            case types.ListType(item_type=below):
                for n, item in enumerate(_as(list, value)):
                    yield from _Walk(self.about).problems(below, item, f"{at}[{n}]")
            case _:
                yield from self._bounds(info, value, at)

    def _struct(self, info: types.StructType, value: object, at: str) -> Iterator[Problem]:
        fields = {field.encode_name: field for field in info.fields}
        given = _as(dict, value)
        for name, field in fields.items():
            if field.required and name not in given:
                expected = _EXPECTED.get(type(field.type), "a value")
                yield Problem(_under(at, name), "missing", f"add it: it takes {expected}")
        for name, below in given.items():
            if not isinstance(name, str):
                yield _wrong_name(name, at)
            elif name in fields:
                yield from _Walk(self.about).problems(fields[name].type, below, _under(at, name))
            elif info.forbid_unknown_fields:
                hint = one_of(_shown(name), fields)
                yield Problem(_under(at, name), "unknown field", hint)

    def _map(self, info: types.Type, value: object, at: str) -> Iterator[Problem]:
        for name, below in _as(dict, value).items():
            if isinstance(name, str):
                yield from _Walk(self.about).problems(info, below, _under(at, name))
            else:
                yield _wrong_name(name, at)

    def _union(self, members: tuple[types.Type, ...], value: object, at: str) -> Iterator[Problem]:
        """Of what may be several things, the mistakes as one that it could be."""
        able = [each for each in members if not isinstance(each, types.NoneType)]
        if value is None and len(able) < len(members):
            return
        # The first without a mistake, or else the first.
        yield from min((list(self.problems(each, value, at)) for each in able), key=bool)

    def _choice(self, values: tuple[Any, ...], value: object, at: str) -> Iterator[Problem]:
        if value not in values:
            said = _shown(value)
            yield Problem(at, f"unknown value: {said}", one_of(said, map(str, values)))

    def _bounds(self, info: Any, value: Any, at: str) -> Iterator[Problem]:
        least, most = getattr(info, "ge", None), getattr(info, "le", None)
        if least is not None and value < least:
            yield Problem(at, f"expected at least {least}: {value}", self.about)
        if most is not None and value > most:
            yield Problem(at, f"expected at most {most}: {value}", self.about)

    def _wrong_kind(self, info: types.Type, value: object, at: str) -> Problem:
        message = f"expected {_EXPECTED[type(info)]}, got {_described(value)}"
        return Problem(at, message, self.hint or _way_out(info, value) or self.about)


def _way_out(info: types.Type, value: object) -> str:
    if value is None:
        return "give it a value, or remove it"
    if isinstance(info, types.StrType) and not isinstance(value, list | dict):
        return QUOTE
    if isinstance(info, types.IntType | types.FloatType) and isinstance(value, str):
        return "remove the quotes" if value.replace(".", "", 1).isdecimal() else ""
    return ""


def _fits(info: types.Type, value: object) -> bool:
    if isinstance(value, bool):
        return isinstance(info, types.BoolType)
    if isinstance(info, types.IntType) and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PLAIN[type(info)])


def _described(value: object) -> str:
    kind = next((name for type_, name in _GOT if isinstance(value, type_)), type(value).__name__)
    if value is None or isinstance(value, list | dict):
        return kind
    return f"{kind}: {_shown(value)}"


def _shown(value: object) -> str:
    said = str(value).lower() if isinstance(value, bool) else str(value)
    # Half a character can be told to nobody.
    return said[:_LONGEST].encode(errors="replace").decode()


def _wrong_name(name: object, at: str) -> Problem:
    return Problem(at, f"expected text as a name, got {_described(name)}", QUOTE)


def _under(at: str, name: str) -> str:
    return f"{at}.{_shown(name)}".lstrip(".")


def _as(kind: type[T], value: object) -> T:
    assert isinstance(value, kind)
    return value


def _told(error: msgspec.ValidationError, at: str, about: str) -> Problem:
    """A mistake in msgspec's own words, where the walk knows none."""
    problem, _, path = str(error).partition(" - at `$")
    said = problem[:1].lower() + problem[1:].replace("`", "")
    return Problem(f"{at}{path.rstrip('`')}".lstrip("."), said, about)
