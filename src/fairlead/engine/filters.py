"""The language of `--where`: `phase=Paused and namespace in (shop, "till 2")`.

    filter    = condition { "and" condition }
    condition = name ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) value
              | name "in" "(" value { "," value } ")"
    value     = letters without blanks and signs, or any in quotes

A condition holds for streams that have the attribute. Whatever is written, each becomes ranges of
encoded values that a store is handed as data: no word of a user ever stands in SQL.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fairlead import errors
from fairlead.engine import attributes
from fairlead.engine import machine as machines
from fairlead.values import one_of

MOST_TEXT = 2000
MOST_CONDITIONS = 16
MOST_VALUES = 64
_FORM = "NAME=VALUE, joined by and; also !=, <, <=, >, >= and NAME in (A, B)"
_TOKEN = re.compile(
    r"""\s*(?: (?P<sign>!=|<=|>=|[=<>(),])
             | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
             | (?P<word>[^\s"'\\=!<>(),]+)
             | (?P<end>$) )""",
    re.VERBOSE,
)
_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
# Values are cut to this length, so nothing is above it.
_HIGHEST = "\U0010ffff" * attributes.MOST_LETTERS


@dataclass(frozen=True, slots=True)
class Condition:
    """What a person wrote about one attribute."""

    name: str
    sign: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """What a store is asked about one attribute: a value in one of the ranges, but not one."""

    name: str
    ranges: tuple[tuple[str, str], ...]
    but: str | None = None

    @property
    def points(self) -> tuple[str, ...]:
        """The only values that it allows; none where it allows a range."""
        low, high = self.ranges[0]
        return tuple(low for low, _ in self.ranges) if low == high != self.but else ()


@dataclass(frozen=True, slots=True)
class Where:
    """A filter that makes sense for the streams of one machine."""

    machine: str
    clauses: tuple[Clause, ...]


def where(text: str, known: machines.Machines, machine: str | None = None) -> Where | None:
    """What a person wrote, for a machine or for the only one that it fits; None for nothing."""
    if not text.strip():
        return None
    conditions = parse(text)
    rest = tuple(one for one in conditions if one.name != "machine")
    said = [one for one in conditions if one.name == "machine"]
    named = {one.values[0] for one in said} | ({machine} if machine else set())
    if len(named) > 1 or any(one.sign != "=" for one in said):
        raise _refusal(f"a filter is for one machine: {text}", "write machine=NAME once")
    chosen = known.named(named.pop()) if named else _only(known, rest)
    return Where(chosen.name, tuple(_clause(chosen, one) for one in rest))


def parse(text: str) -> tuple[Condition, ...]:
    """The conditions of a filter; Rejected with the place where it cannot be read."""
    if len(text) > MOST_TEXT or not text.isprintable():
        raise _refusal(
            f"filter too long or with unprintable characters: {text[:80]!r}",
            f"use at most {MOST_TEXT} printable characters",
        )
    return _Parser(text).conditions()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0
        self._kind = self._said = ""
        self._advance()

    def conditions(self) -> tuple[Condition, ...]:
        found = [self._condition()]
        while self._kind != "end":
            if not self._is_word("and"):
                raise self._unexpected("and, or the end")
            self._advance()
            found.append(self._condition())
            if len(found) > MOST_CONDITIONS:
                raise self._unexpected(f"at most {MOST_CONDITIONS} conditions")
        return tuple(found)

    def _condition(self) -> Condition:
        if self._kind != "word":
            raise self._unexpected("the name of an attribute")
        name = self._take()
        if self._is_word("in"):
            self._advance()
            return Condition(name, "in", self._list())
        if self._said not in _SIGNS or self._kind != "sign":
            raise self._unexpected("one of = != < <= > >= in")
        sign = self._take()
        return Condition(name, sign, (self._value(),))

    def _list(self) -> tuple[str, ...]:
        self._expect("(")
        found = [self._value()]
        while self._kind == "sign" and self._said == ",":
            self._advance()
            found.append(self._value())
            if len(found) > MOST_VALUES:
                raise self._unexpected(f"at most {MOST_VALUES} values")
        self._expect(")")
        return tuple(dict.fromkeys(found))

    def _value(self) -> str:
        if self._kind not in ("word", "quoted"):
            raise self._unexpected("a value")
        return self._take()

    def _expect(self, sign: str) -> None:
        if self._kind != "sign" or self._said != sign:
            raise self._unexpected(sign)
        self._advance()

    def _is_word(self, word: str) -> bool:
        return self._kind == "word" and self._said.lower() == word

    def _take(self) -> str:
        token = self._said
        if self._kind == "quoted":
            token = re.sub(r"\\(.)", r"\1", token[1:-1])
        self._advance()
        return token

    def _advance(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at :].lstrip()
            self._start = len(self._text) - len(rest)
            raise self._unexpected("a closing quote" if rest[0] in "\"'" else "a word")
        self._kind = str(found.lastgroup)
        self._said, self._start = found[self._kind], found.start(self._kind)
        self._at = found.end()

    def _unexpected(self, wanted: str) -> errors.Rejected:
        place = f"character {self._start + 1}, expected {wanted}"
        return _refusal(
            f"filter not understood at {place}: {self._text}",
            f"write {_FORM}; quote what has blanks or signs",
        )


def _only(known: machines.Machines, conditions: Sequence[Condition]) -> machines.AnyMachine:
    """The machine that has all these attributes."""
    names = {one.name for one in conditions}
    fits = [each for each in known if names <= _kinds(each).keys()]
    if len(fits) == 1:
        return fits[0]
    if fits:
        several = ", ".join(sorted(each.name for each in fits))
        raise _refusal(f"several machines have these attributes: {several}", "add machine=NAME")
    every = {name for each in known for name in _kinds(each)}
    for name in sorted(names - every):
        raise _refusal(f"unknown attribute: {name}", _nearest(name, every))
    raise _refusal(
        f"no machine has all these attributes: {', '.join(sorted(names))}",
        "see what each has at /api/v1/machines",
    )


def _clause(machine: machines.AnyMachine, condition: Condition) -> Clause:
    kind = _kinds(machine).get(condition.name)
    if kind is None:
        raise _refusal(
            f"unknown attribute of {machine.name}: {condition.name}",
            _nearest(condition.name, _kinds(machine)),
        )
    values = [_read(condition.name, kind, text) for text in condition.values]
    return _clause_of(condition.name, condition.sign, values)


def _clause_of(name: str, sign: str, values: Sequence[str]) -> Clause:
    first = values[0]
    match sign:
        case "!=":
            return Clause(name, (("", _HIGHEST),), but=first)
        case "<" | "<=":
            return Clause(name, (("", first),), but=first if sign == "<" else None)
        case ">" | ">=":
            return Clause(name, ((first, _HIGHEST),), but=first if sign == ">" else None)
        case _:
            return Clause(name, tuple((value, value) for value in dict.fromkeys(values)))


def _read(name: str, kind: machines.AttributeKind, text: str) -> str:
    """A value as a person wrote it, encoded as rows have it."""
    if isinstance(kind, tuple):
        if text not in kind:
            raise _refusal(f"{name} is never this: {text}", _nearest(text, kind))
        return attributes.encode(text)
    if kind is bool:
        if text not in ("true", "false"):
            raise _refusal(f"{name} is true or false: {text}", f"write {name}=true or {name}=false")
        return text
    if kind is int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise _refusal(f"{name} is a whole number: {text}", "use at most 18 digits")
        return attributes.encode(int(text))
    return attributes.encode(_moment(name, text) if kind is datetime else text)


def _moment(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None and len(text) == len("2030-01-31"):
            return found.replace(tzinfo=UTC)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _refusal(f"{name} is a time: {text}", "write 2030-01-31T12:00:00Z, or 2030-01-31")


def _kinds(machine: machines.AnyMachine) -> Mapping[str, Any]:
    return machine.attributes.kinds if machine.attributes else {}


def _nearest(name: str, known: Iterable[str]) -> str:
    every = sorted(known)
    return one_of(name, every) if every else "it has none to search by"


def _refusal(message: str, hint: str) -> errors.Rejected:
    return errors.Rejected(message, hint=hint)
