"""The fake's heart: objects, versions, ownership and history, as the API server keeps them.

No sockets and no waiting here; server.py gives it a voice.
"""

import copy
import dataclasses
import itertools
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from fairlead.kubernetes import objects
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.objects import Key, Object
from tests.fakes.kubernetes import fields, garbage, kinds, ownership, refusals, validation
from tests.fakes.kubernetes.garbage import Place
from tests.fakes.kubernetes.kinds import Served
from tests.fakes.kubernetes.ownership import Write

_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp")


@dataclasses.dataclass(frozen=True)
class Change:
    """One line of history."""

    version: int
    type: str
    served: Served
    object: Object
    before: Object | None = None


class Store:
    """All objects of one fake cluster."""

    def __init__(self, clock: clocks.Clock | None = None, *, collects_garbage: bool = True) -> None:
        self._clock = clock or clocks.Clock()
        self._collects = collects_garbage
        self._versions = itertools.count(1000)
        self.places: dict[Place, Object] = {}
        self.version = next(self._versions)
        self.oldest = self.version
        self.history: list[Change] = []
        self.served = {str(kind.resource): kind for kind in kinds.BUILT_IN}
        self.listeners: list[Callable[[Change], None]] = []
        for name in ("default", "kube-system"):
            namespace = {"metadata": {"name": name}}
            self.create(self.served["namespaces"], namespace, Write("kube-apiserver"))

    def get(self, served: Served, key: Key) -> Object:
        found = self.places.get((str(served.resource), key))
        if found is None:
            raise refusals.not_found(str(served.resource), key.name)
        return copy.deepcopy(found)

    def all(self, served: Served, namespace: str = "") -> Iterator[Object]:
        """In the order of the API server's keys."""
        for (plural, key), obj in sorted(self.places.items(), key=lambda pair: pair[0]):
            if plural == str(served.resource) and namespace in ("", key.namespace):
                yield obj

    def compact(self) -> None:
        """Forget history: what is older than now answers 410."""
        self.oldest = self.version
        self.history.clear()

    def create(self, served: Served, body: Object, write: Write) -> Object:
        obj = copy.deepcopy(body)
        meta = obj.setdefault("metadata", {})
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        key = objects.key_of(obj)
        self._check_namespace(served, key)
        if not key.name:
            cause = ("FieldValueRequired", "metadata.name", "Required value: name is required")
            raise refusals.invalid(served.resource.kind, "", cause)
        if (str(served.resource), key) in self.places:
            message = f'{served.resource} "{key.name}" already exists'
            raise refusals.RefusalError(409, "AlreadyExists", message)
        for field in ("resourceVersion", "deletionTimestamp", "selfLink"):
            meta.pop(field, None)
        if served.status and served.resource.plural != "namespaces":
            obj.pop("status", None)
        obj = self._finished(served, obj)
        meta = obj["metadata"]
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = clocks.format_time(self._clock.now())
        if served.generation:
            meta["generation"] = 1
        if write.operation == "Update":
            ownership.record_update(served, {}, obj, self._now(write))
        return self._put(served, obj, None)

    def update(self, served: Served, key: Key, body: Object, write: Write) -> Object:
        """Replace, guarded by the resourceVersion and UID that the body carries."""
        live = self.get(served, key)
        self._guard(served, live, body)
        return self._write(served, live, copy.deepcopy(body), write)

    def change(
        self, served: Served, key: Key, how: Callable[[Object], Object], write: Write
    ) -> Object:
        """Patch: `how` makes the new object from the live one."""
        live = self.get(served, key)
        new = how(copy.deepcopy(live))
        if objects.version_of(new) != objects.version_of(live):
            raise _stale(served, key.name)
        return self._write(served, live, new, write)

    def apply(self, served: Served, key: Key, wanted: Object, write: Write) -> Object:
        live = self.places.get((str(served.resource), key))
        if live is None:
            return self._apply_new(served, key, wanted, write)
        live = copy.deepcopy(live)
        self._guard(served, live, wanted, versioned=False)
        mine, others = ownership.owners(live, write)
        wants = fields.applied(wanted, served)
        clashes = [
            (entry["manager"], entry["apiVersion"], path)
            for entry in others
            for path in fields.conflicts(
                live, wanted, served, fields.decode(entry.get("fieldsV1", {}))
            )
        ]
        if clashes and not write.force:
            raise fields.refusal(clashes)
        lost = {path for _, _, path in clashes}
        held = set().union(*(fields.decode(e.get("fieldsV1", {})) for e in others)) - lost
        gone = {p for p in mine - wants if not _is_held(p, held | wants)}
        wanted = {k: v for k, v in wanted.items() if k not in ("apiVersion", "kind")}
        merged = fields.without(fields.apply(live, wanted, served), gone, served)
        merged["metadata"] = {**merged["metadata"], **_server_fields(live)}
        ownership.record_apply(served, merged, self._now(write), wants=wants, lost=lost)
        return self._write(served, live, merged, write, owned=True)

    def delete(self, served: Served, key: Key, options: Object) -> Object | None:
        """The object while something holds it, None when it is gone."""
        live = self.get(served, key)
        meta = live["metadata"]
        for name, wanted in (options.get("preconditions") or {}).items():
            if meta.get(name) != wanted:
                title = "UID" if name == "uid" else "ResourceVersion"
                why = (
                    f"Precondition failed: {title} in precondition: {wanted}, "
                    f"{title} in object meta: {meta.get(name)}"
                )
                raise refusals.conflict(str(served.resource), key.name, why)
        holder = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
        finalizer = holder.get(options.get("propagationPolicy", ""))
        if "deletionTimestamp" not in meta and finalizer:
            meta.setdefault("finalizers", []).append(finalizer)
        if not meta.get("finalizers") and served.resource.plural != "namespaces":
            self._remove(served, live)
            return None
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = clocks.format_time(self._clock.now())
            meta["deletionGracePeriodSeconds"] = 0
            if served.generation:
                meta["generation"] += 1
            if served.resource.plural == "namespaces":
                live["status"] = {"phase": "Terminating"}
            self._put(served, live, self.get(served, key))
            self._collect()
        return copy.deepcopy(self.places.get((str(served.resource), key)))

    def _apply_new(self, served: Served, key: Key, wanted: Object, write: Write) -> Object:
        if objects.uid_of(wanted) or objects.version_of(wanted):
            why = (
                "uid mismatch: the provided object specified uid, and no existing object was found"
            )
            raise refusals.conflict(str(served.resource), key.name, why)
        obj = copy.deepcopy(wanted)
        obj["metadata"].pop("managedFields", None)
        ownership.claim(served, obj, self._now(write), fields.applied(wanted, served))
        return self.create(served, obj, write)

    def _now(self, write: Write) -> Write:
        return dataclasses.replace(write, time=clocks.format_time(self._clock.now()))

    def _check_namespace(self, served: Served, key: Key) -> None:
        if not served.resource.namespaced:
            return
        found = self.places.get(("namespaces", Key("", key.namespace)))
        if found is None:
            raise refusals.not_found("namespaces", key.namespace)
        if "deletionTimestamp" in found["metadata"]:
            why = f"namespace {key.namespace} is being terminated"
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
            cause["message"] = f"namespace {key.namespace} is being terminated"
            message = f'{served.resource} "{key.name}" is forbidden: {why}'
            raise refusals.RefusalError(403, "Forbidden", message, (cause,))

    def _guard(self, served: Served, live: Object, body: Object, *, versioned: bool = True) -> None:
        name = objects.key_of(live).name
        uid, version = objects.uid_of(body), objects.version_of(body)
        if uid and uid != objects.uid_of(live):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: other"
            raise refusals.conflict(str(served.resource), name, why)
        if not version and versioned and not served.unconditional:
            text = "Invalid value: 0: must be specified for an update"
            cause = ("FieldValueInvalid", "metadata.resourceVersion", text)
            raise refusals.invalid(served.resource.kind, name, cause)
        if version and version != objects.version_of(live):
            raise _stale(served, name)

    def _write(
        self, served: Served, live: Object, new: Object, write: Write, *, owned: bool = False
    ) -> Object:
        new = self._through(served, live, new, write)
        meta = new["metadata"]
        meta.update(_server_fields(live))
        new = self._finished(served, new)
        self._check_finalizers(served, live, new)
        if served.generation and _body(new) != _body(live):
            new["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        if not owned:
            ownership.record_update(served, live, new, self._now(write))
        if write.dry:
            return new
        if _without_times(new) == _without_times(live):
            return live
        if "deletionTimestamp" in meta and not new["metadata"].get("finalizers"):
            self._remove(served, new)
            return new
        return self._put(served, new, live)

    def _through(self, served: Served, live: Object, new: Object, write: Write) -> Object:
        """The main road does not touch status; the status road touches nothing else."""
        kept = new["metadata"].get("managedFields", live["metadata"].get("managedFields", []))
        if write.subresource == "status":
            outside = copy.deepcopy(live)
            outside.pop("status", None)
            if "status" in new:
                outside["status"] = new["status"]
            new = outside
        elif served.status:
            new = {k: v for k, v in new.items() if k != "status"}
            if "status" in live:
                new["status"] = live["status"]
        new["metadata"] = dict(new["metadata"])
        new["metadata"]["managedFields"] = copy.deepcopy(kept)
        return new

    def _finished(self, served: Served, obj: Object) -> Object:
        obj["apiVersion"], obj["kind"] = served.resource.api_version, served.resource.kind
        if served.schema is not None:
            obj, causes = validation.conform(obj, served.schema)
            if causes:
                raise refusals.invalid(obj["kind"], obj["metadata"]["name"], *causes)
        served.defaults(obj)
        return obj

    def _check_finalizers(self, served: Served, live: Object, new: Object) -> None:
        if "deletionTimestamp" not in live["metadata"]:
            return
        before = set(live["metadata"].get("finalizers") or ())
        added = set(new["metadata"].get("finalizers") or ()) - before
        if added:
            text = (
                "Forbidden: no new finalizers can be added if the object is being deleted, "
                f"found new finalizers {sorted(added)}"
            )
            cause = ("FieldValueForbidden", "metadata.finalizers", text)
            raise refusals.invalid(served.resource.kind, objects.key_of(new).name, cause)

    def _put(self, served: Served, obj: Object, before: Object | None) -> Object:
        self.version = next(self._versions)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.places[str(served.resource), objects.key_of(obj)] = obj
        if served.resource == kinds.CRDS:
            self._serve(obj)
        self._tell("MODIFIED" if before else "ADDED", served, obj, before)
        return copy.deepcopy(obj)

    def _remove(self, served: Served, obj: Object) -> None:
        self.version = next(self._versions)
        last = copy.deepcopy(obj)
        last["metadata"]["resourceVersion"] = str(self.version)
        del self.places[str(served.resource), objects.key_of(obj)]
        self._tell("DELETED", served, last, obj)
        self._collect()

    def _collect(self) -> None:
        # Deleting a child calls this again: the outer round goes on and finds it done.
        if self._collects:
            garbage.collect(self)

    def end(self, place: Place) -> None:
        self.delete(self.served[place[0]], place[1], {})

    def drop(self, place: Place) -> None:
        self._remove(self.served[place[0]], self.places[place])

    def alter(self, place: Place, how: Callable[[Object], Object]) -> None:
        self.change(self.served[place[0]], place[1], how, Write("kube-controller-manager"))

    def _tell(self, kind: str, served: Served, obj: Object, before: Object | None) -> None:
        change = Change(self.version, kind, served, copy.deepcopy(obj), before)
        self.history.append(change)
        for listener in list(self.listeners):
            listener(change)

    def _serve(self, definition: Object) -> None:
        kind = kinds.custom(definition)
        self.served[str(kind.resource)] = kind
        condition = {"type": "Established", "status": "True"}
        definition["status"] = {"conditions": [condition]}


def _stale(served: Served, name: str) -> refusals.RefusalError:
    why = "the object has been modified; please read the latest version and try again"
    return refusals.conflict(str(served.resource), name, why)


def _is_held(path: fields.Path, held: fields.Owned) -> bool:
    """An item stays while somebody owns it, or anything in it."""
    return any(other[: len(path)] == path for other in held)


def _server_fields(live: Object) -> dict[str, Any]:
    meta = live["metadata"]
    names = (*_SERVER_FIELDS, "deletionGracePeriodSeconds", "resourceVersion", "name", "namespace")
    return {name: meta[name] for name in names if name in meta}


def _body(obj: Object) -> Object:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status")}


def _without_times(obj: Object) -> Object:
    meta = dict(obj["metadata"])
    entries = meta.get("managedFields") or []
    bare = [{k: v for k, v in entry.items() if k != "time"} for entry in entries]
    meta["managedFields"] = sorted(bare, key=ownership.signature)
    if not meta.get("finalizers"):
        meta.pop("finalizers", None)
    return {**obj, "metadata": meta}
