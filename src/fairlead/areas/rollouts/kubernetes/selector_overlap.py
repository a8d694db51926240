"""Which Deployments would take each other's pods: one selects what another's template makes.

Each Deployment is found by traits: what its selector needs first (`?`), and each label of its pods
(`!`). Whoever shares a pod with ours has one of the traits that `asked` names, so that nobody has
to be compared with everybody.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairlead.kubernetes.writes import compare

Object = dict[str, Any]

_ANY = "?"


class Pods(NamedTuple):
    """What a Deployment selects, and the labels of the pods that it makes."""

    selector: Mapping[str, Any]
    labels: Mapping[str, str]


def of(spec: Mapping[str, Any]) -> Pods:
    """From the spec of a Deployment."""
    meta = (spec.get("template") or {}).get("metadata") or {}
    return Pods(spec.get("selector") or {}, meta.get("labels") or {})


def traits(deployment: Object) -> tuple[str, ...]:
    """By what a Deployment is found; changed whenever its selector or its pods' labels are."""
    pods = of(deployment.get("spec") or {})
    # Nobody asks for the whole selector, but a change of it is a change.
    whole = compare.digest(pods.selector)
    needs = [f"?{pair}" for pair in _first(pods.selector)] or [_ANY]
    return (*needs, *(f"!{pair}" for pair in _pairs(pods.labels)), f"={whole}")


def asked(ours: Sequence[Pods]) -> Iterator[str]:
    """The traits of all that may share a pod with one of ours."""
    yield _ANY
    for pods in ours:
        yield from (f"?{pair}" for pair in _pairs(pods.labels))
        yield from (f"!{pair}" for pair in _first(pods.selector))


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """As Kubernetes reads a selector; one that needs nothing selects nothing here."""
    needs = selector.get("matchExpressions") or ()
    pairs = selector.get("matchLabels") or {}
    if not needs and not pairs:
        return False
    return all(labels.get(key) == value for key, value in pairs.items()) and all(
        _holds(need, labels) for need in needs
    )


def told(selector: Mapping[str, Any]) -> str:
    """A selector as `kubectl get -l` takes it, or nearly so."""
    needs = [
        f"{need.get('key')} {need.get('operator')} {need.get('values') or ''}".strip()
        for need in selector.get("matchExpressions") or ()
    ]
    return ", ".join([*_pairs(selector.get("matchLabels") or {}), *needs])


def _holds(need: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = str(need.get("key")), need.get("values") or ()
    match need.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            # None that the API server would take.
            return False


def _first(selector: Mapping[str, Any]) -> list[str]:
    """One label that each selected pod has, in all its values; none where no label is needed."""
    pairs = _pairs(selector.get("matchLabels") or {})
    if pairs:
        return pairs[:1]
    for need in selector.get("matchExpressions") or ():
        if need.get("operator") == "In":
            return [f"{need.get('key')}={value}" for value in need.get("values") or ()]
    return []


def _pairs(labels: Mapping[str, str]) -> list[str]:
    return [f"{key}={labels[key]}" for key in sorted(labels)]
