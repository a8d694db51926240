"""Where pods may run, in a template whose labels are renamed: rules on its own pods stay such."""

from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]
_POD_RULES = ("podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def rename(spec: Object, had: Mapping[str, str], has: Mapping[str, str]) -> None:
    """In a pod's spec that is ours to change: selectors that name an old value name the new one.

    "Not beside a pod of mine" would else keep a canary off every node of the primary.
    """
    renamed = {(key, had[key]): value for key, value in has.items() if key in had}
    affinity = _copied(spec, "affinity")
    for kind in _POD_RULES:
        rules = _copied(affinity, kind)
        for term in _items(rules, _REQUIRED):
            _select(term, renamed)
        for weighted in _items(rules, _PREFERRED):
            _select(_copied(weighted, "podAffinityTerm"), renamed)
    for constraint in _items(spec, "topologySpreadConstraints"):
        _select(constraint, renamed)


def _select(term: Object, renamed: Mapping[tuple[str, str], str]) -> None:
    selector = _copied(term, "labelSelector")
    if selector.get("matchLabels"):
        told = selector["matchLabels"].items()
        selector["matchLabels"] = {key: renamed.get((key, value), value) for key, value in told}
    for one in _items(selector, "matchExpressions"):
        if one.get("values"):
            key = str(one.get("key"))
            one["values"] = [renamed.get((key, value), value) for value in one["values"]]


def _copied(parent: Object, key: str) -> Object:
    """A part that may be changed without changing what it was made of; nothing where it is not."""
    if not isinstance(parent.get(key), dict):
        return {}
    parent[key] = dict(parent[key])
    found: Object = parent[key]
    return found


def _items(parent: Object, key: str) -> Iterator[Object]:
    if isinstance(parent.get(key), list):
        parent[key] = [dict(one) for one in parent[key]]
        yield from parent[key]
