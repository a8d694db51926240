"""The garbage collector and the namespace controller, at work the moment something goes.

The real ones are other processes and take a while; the contract suite waits for both.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fairlead.kubernetes import objects
from fairlead.kubernetes.objects import Key, Object

Place = tuple[str, Key]
_POLICIES = frozenset({"orphan", "foregroundDeletion"})


class Held(Protocol):
    """What the collector needs of the store."""

    places: dict[Place, Object]

    def end(self, place: Place) -> None: ...
    def drop(self, place: Place) -> None: ...
    def alter(self, place: Place, how: Callable[[Object], Object]) -> None: ...


def collect(store: Held) -> None:
    """End what no living owner holds, and finish deletions that waited for their children."""
    living = {objects.uid_of(obj) for obj in store.places.values()}
    for place, obj in list(store.places.items()):
        owners = obj["metadata"].get("ownerReferences") or []
        if place not in store.places:
            continue
        if owners and not any(owner["uid"] in living for owner in owners):
            if not objects.is_deleting(obj):
                store.end(place)
        else:
            _finish(store, place)
    for _, key in [p for p in store.places if p[0] == "namespaces"]:
        _empty(store, key.name)


def _empty(store: Held, namespace: str) -> None:
    home = ("namespaces", Key("", namespace))
    if home not in store.places or not objects.is_deleting(store.places[home]):
        return
    for place in [place for place in store.places if place[1].namespace == namespace]:
        if place in store.places and not objects.is_deleting(store.places[place]):
            store.end(place)
    if home in store.places and not any(key.namespace == namespace for _, key in store.places):
        store.drop(home)


def _finish(store: Held, place: Place) -> None:
    meta: dict[str, Any] = store.places[place]["metadata"]
    policies = _POLICIES & set(meta.get("finalizers") or ())
    if "deletionTimestamp" not in meta or not policies:
        return
    children = list(_children(store, meta["uid"]))
    if "orphan" in policies:
        for child in children:
            store.alter(child, _orphaned(meta["uid"]))
    else:
        for child in children:
            if child in store.places and not objects.is_deleting(store.places[child]):
                store.end(child)
        if any(child in store.places for child in children):
            return
    if place in store.places:
        store.alter(place, _released)


def _children(store: Held, uid: str) -> Iterator[Place]:
    for place, obj in store.places.items():
        owners = obj["metadata"].get("ownerReferences") or []
        if any(owner["uid"] == uid for owner in owners):
            yield place


def _orphaned(uid: str) -> Callable[[Object], Object]:
    def change(obj: Object) -> Object:
        meta = obj["metadata"]
        meta["ownerReferences"] = [o for o in meta["ownerReferences"] if o["uid"] != uid]
        return obj

    return change


def _released(obj: Object) -> Object:
    meta = obj["metadata"]
    meta["finalizers"] = [f for f in meta["finalizers"] if f not in _POLICIES]
    return obj
