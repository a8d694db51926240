"""Hooks of this installation: rules of a file first, then those that packages register.

A package names a function under the entry point `fairlead.resource_hooks`; it takes nothing and
answers with hooks.
"""

import importlib.metadata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fairlead import errors, validation
from fairlead.areas.resources.domain import merging
from fairlead.areas.resources.domain.delta import Change
from fairlead.areas.resources.domain.hooks import Hook, Hooks, Join, Occasion, Point
from fairlead.areas.resources.domain.model import NOTHING, found
from fairlead.areas.resources.domain.reconcile.messages import ErrorClass

GROUP = "fairlead.resource_hooks"
_ABOUT = "docs/reference/resources.md#hooks has all fields"
_SPEC = (Point.IMPORT, Point.BEFORE_VALIDATE, Point.BEFORE_DIFF)
_MAY_REFUSE = (*_SPEC, Point.MUTATE_REQUEST, Point.AFTER_SUCCESS, Point.BEFORE_DELETE)
_SETS_NOTHING = (Point.AFTER_SUCCESS, Point.BEFORE_DELETE, Point.CLASSIFY_ERROR)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"class_": "class"}):
    """What happens at a point, where all of `when` is so."""

    point: Point
    name: str = ""
    types: tuple[str, ...] = ("*",)
    when: dict[str, Any] = {}
    """By path: the value that must stand there; null: that nothing does."""

    set: dict[str, Any] = {}
    """By path: the value that is put there; null: what is there is taken out."""

    refuse: str = ""
    class_: ErrorClass | None = None


class JoinRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As Join."""

    types: list[str]
    path: str
    into: str


class HooksFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that the setting names."""

    rules: list[Rule] = []
    joins: list[JoinRule] = []


def load(file: str) -> Hooks:
    """All hooks there are; Rejected where the file or a package is wrong."""
    said = _read(Path(file).expanduser()) if file else HooksFile()
    rules = [_hook(number, rule) for number, rule in enumerate(said.rules, 1)]
    joins = [Join(each.path, each.into, each.types) for each in said.joins]
    return Hooks("", (*rules, *_packaged()), tuple(joins))


def _read(file: Path) -> HooksFile:
    try:
        content = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise errors.Rejected(f"no hooks can be read: {file}", hint=str(error)[:200]) from error
    return validation.convert(content, HooksFile, about=_ABOUT)


def _packaged() -> list[Hook]:
    made: list[Hook] = []
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda each: each.name):
        hooks = point.load()()
        if not all(isinstance(each, Hook) for each in hooks):
            raise errors.Rejected(f"no hooks: {point.value}", hint=f"entry points of {GROUP}")
        made += hooks
    return made


def _hook(number: int, rule: Rule) -> Hook:
    name = rule.name or f"rule {number}"
    wrong = (rule.refuse and rule.point not in _MAY_REFUSE) or (
        (rule.class_ is not None) != (rule.point is Point.CLASSIFY_ERROR)
    )
    if wrong or (rule.set and rule.point in _SETS_NOTHING):
        raise errors.Rejected(
            f"this cannot be done at {rule.point}: {name}", hint="a class is for classify-error"
        )
    return Hook(name, rule.point, lambda occasion: _ruled(name, rule, occasion), rule.types)


def _ruled(name: str, rule: Rule, occasion: Occasion) -> Occasion:
    subject = _subject(occasion)
    if not all(_stands(subject, path, value) for path, value in rule.when.items()):
        return occasion
    if rule.refuse:
        raise errors.Rejected(rule.refuse, hint=f"a hook of this installation says so: {name}")
    if rule.class_ is not None:
        return replace(occasion, about={**occasion.about, "class": rule.class_.value})
    if not rule.set:
        return occasion
    made = merging.merged(dict(subject), [_change(*each) for each in rule.set.items()])
    if occasion.point in _SPEC:
        return replace(occasion, spec=made)
    if occasion.point is Point.MUTATE_REQUEST:
        return replace(occasion, body=made)
    return replace(occasion, observed=made)


def _subject(occasion: Occasion) -> Mapping[str, Any]:
    """What a rule is held against at its point."""
    if occasion.point in _SPEC:
        return occasion.spec
    if occasion.point is Point.CLASSIFY_ERROR:
        return occasion.about
    body = occasion.body if occasion.point is Point.MUTATE_REQUEST else occasion.observed
    return body or {}


def _stands(subject: Mapping[str, Any], path: str, value: Any) -> bool:
    there = found(subject, _path(path))
    return there is NOTHING if value is None else there == value


def _change(path: str, value: Any) -> Change:
    return Change(_path(path), NOTHING if value is None else value, "")


def _path(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))
