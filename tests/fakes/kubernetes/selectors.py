"""Label and field selectors, as the API server reads them."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.kubernetes.refusals import bad_request

_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")
_EQUAL = re.compile(r"^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$")
_NAME = re.compile(r"^(!?)\s*([A-Za-z0-9._/-]+)$")

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]


def labels(text: str) -> Test:
    tests = [_label_test(part.strip()) for part in re.split(r",(?![^(]*\))", text) if part.strip()]
    return lambda given: all(test(given) for test in tests)


def fields(text: str, known: frozenset[str]) -> Callable[[dict[str, Any]], bool]:
    wanted: list[tuple[str, bool, str]] = []
    for part in filter(None, text.split(",")):
        found = _EQUAL.match(part.strip())
        if found is None:
            raise bad_request(f"invalid field selector: {part}")
        name, sign, value = found.groups()
        if name not in known:
            raise bad_request(f"field label not supported: {name}")
        wanted.append((name, sign != "!=", value))
    return lambda obj: all((_read(obj, n) == v) is equal for n, equal, v in wanted)


def _label_test(part: str) -> Test:
    if found := _SET.match(part):
        name, sign, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        if sign == "in":
            return lambda given: given.get(name) in values
        return lambda given: given.get(name) not in values
    if found := _EQUAL.match(part):
        name, sign, value = found.groups()
        if sign == "!=":
            return lambda given: given.get(name) != value
        return lambda given: given.get(name) == value
    if found := _NAME.match(part):
        missing, name = found.groups()
        return lambda given: (name in given) is not bool(missing)
    raise bad_request(f"unable to parse requirement: {part}")


def _read(obj: dict[str, Any], path: str) -> str:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step, "") if isinstance(value, dict) else ""
    return str(value)
