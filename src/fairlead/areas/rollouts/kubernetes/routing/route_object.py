"""The object that carries a route, whichever kind it is: what to write, and what was changed.

An object of ours is made from the request. One of somebody else is taken as it stands, without
what we put into it before (`RouteFields.without_canary`), and gets the route on top
(`RouteFields.routed`); what is written is the difference, so every other field stays as it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from fairlead.areas.rollouts.kubernetes.routing import patches, route_annotations
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    Amend,
    Apply,
    DesiredRoute,
    Object,
    Ref,
    Write,
)
from fairlead.kubernetes.writes import compare


class RouteFields(Protocol):
    """How a spec of one kind holds a route; pure, and each undoes the other."""

    def without_canary(
        self, spec: Object, mark: route_annotations.RouteAnnotations | None
    ) -> Object:
        """The spec without anything of ours."""
        ...

    def routed(self, spec: Object, mark: route_annotations.RouteAnnotations) -> Object:
        """Such a spec with the mark's route on top."""
        ...

    def original_weights_of(self, spec: Object) -> Mapping[str, int | None]:
        """The primary's own weight at each place where we are not."""
        ...

    def seen(self, spec: Object) -> int:
        """The canary's weight, as the spec has it."""
        ...


@dataclass(frozen=True, slots=True)
class RouteObject:
    """One object and the shape of its spec."""

    ref: Ref
    live: Object | None
    shape: RouteFields
    own: Object | None = None
    """The spec that we make it from; None where it is somebody else's."""

    namespace: str = ""

    @property
    def spec(self) -> Object:
        return (self.live or {}).get("spec") or {}

    @property
    def mark(self) -> route_annotations.RouteAnnotations | None:
        return route_annotations.read(self.live)

    @property
    def order(self) -> int:
        mark = self.mark
        return max(route_annotations.order(self.live), mark.order if mark is not None else 0)

    def expected(self, mark: route_annotations.RouteAnnotations) -> Object:
        """The spec as it is to be with this mark."""
        base = self.own if self.own is not None else self.shape.without_canary(self.spec, self.mark)
        return self.shape.routed(base, mark)

    def writes(self, desired: DesiredRoute) -> tuple[Write, ...]:
        if self.order > desired.order or (self.live is None and self.own is None):
            return ()
        last = self.mark
        mark = route_annotations.next_mark(desired, last)
        if self.own is None:
            return self._amend(replace(mark, original_weights=self._original_weights(last)))
        spec = self.expected(mark)
        mark = replace(mark, digest=compare.digest(spec))
        if last is not None and replace(mark, at=last.at) == last and not self.drift():
            return ()
        return (Apply(self._made(spec, mark)),)

    def drift(self) -> str:
        """What somebody else changed in our part; empty if nothing."""
        mark = self.mark
        if mark is None or self.live is None:
            return ""
        expected = self.expected(mark)
        if self.own is None:
            return told(self.ref, self.spec, expected)
        # The server may have filled in what we left open.
        changed = compare.differences({"spec": expected}, {"spec": self.spec})
        return f"{self._name}: {changed[0]} was changed" if changed else ""

    def weight(self) -> int:
        return self.shape.seen(self.spec)

    def give_back(self) -> tuple[Write, ...]:
        """Somebody else's object as it would be if we had never come."""
        if self.live is None or self.own is not None:
            return ()
        spec = self.shape.without_canary(self.spec, self.mark)
        after = {"metadata": route_annotations.without(self.live), "spec": spec}
        return self._patch(after)

    @property
    def _name(self) -> str:
        return f"{self.ref.api.kind} {self.ref.name}"

    def _original_weights(
        self, last: route_annotations.RouteAnnotations | None
    ) -> Mapping[str, int | None]:
        known = last.original_weights if last is not None else {}
        return {**known, **self.shape.original_weights_of(self.spec)}

    def _amend(self, mark: route_annotations.RouteAnnotations) -> tuple[Write, ...]:
        assert self.live is not None
        spec, last = self.expected(mark), self.mark
        if last is not None and replace(mark, at=last.at) == last and spec == self.spec:
            return ()
        meta = dict(self.live["metadata"])
        meta["annotations"] = {
            **route_annotations.annotations(self.live),
            **route_annotations.written(mark),
        }
        return self._patch({"metadata": meta, "spec": spec})

    def _patch(self, after: Object) -> tuple[Write, ...]:
        assert self.live is not None
        before = {key: self.live[key] for key in ("metadata", "spec")}
        operations = tuple(patches.diff(before, after))
        version = str(self.live["metadata"]["resourceVersion"])
        return (Amend(self.ref, operations, version),) if operations else ()

    def _made(self, spec: Object, mark: route_annotations.RouteAnnotations) -> Object:
        return owned(self.ref, self.namespace, spec, route_annotations.written(mark))


def owned(
    ref: Ref, namespace: str, spec: Object, annotations: Mapping[str, str] | None = None
) -> Object:
    """An object of ours, as it is applied."""
    api = ref.api
    meta: Object = {"name": ref.name, "namespace": namespace}
    if annotations:
        meta["annotations"] = dict(annotations)
    version = f"{api.group}/{api.version}"
    return {"apiVersion": version, "kind": api.kind, "metadata": meta, "spec": spec}


def told(ref: Ref, live: Object, expected: Object) -> str:
    """The first difference of two specs, in words; empty if there is none."""
    first = next(patches.diff(live, expected), None)
    if first is None:
        return ""
    place = ".".join(_read(first["path"]))
    match first["op"]:
        case "add":
            what = "is missing"
        case "remove":
            what = "was added"
        case _:
            what = f"is {_at(live, first['path'])!r}, not {first['value']!r}"
    return f"{ref.api.kind} {ref.name}: {place} {what}"[:300]


def _read(path: str) -> Iterator[str]:
    return (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def _at(value: Object, path: str) -> object:
    found: object = value
    for part in _read(path):
        match found:
            case dict():
                found = found.get(part)
            case list():
                found = found[int(part)]
    return found
