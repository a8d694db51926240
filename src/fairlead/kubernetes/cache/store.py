"""Objects of one resource as last seen, kept small.

Each object is held as compact JSON without its managed fields and decoded when asked for:
a reader gets a copy of its own, and ten thousand objects stay well under the memory of
ten thousand nested dicts (docs/decisions/0011-kubernetes-client.md has the figures).

The cache never goes back in time: an own write goes in at once (`wrote`), and what the watch
still has to tell from before that write is dropped. Versions are compared as numbers, which
Kubernetes promises since 1.35 and all API servers kept before.
"""

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.index import Index
from fairlead.kubernetes.objects import EVERYTHING, Key, Object, Resource, Selection

Handler = Callable[[Key], None]
_REMEMBERED = 10_000


class Owner(NamedTuple):
    """The controller of an object."""

    kind: str
    name: str
    uid: str


class _Entry(NamedTuple):
    raw: bytes
    uid: str
    version: int
    owner: Owner | None


class Cache:
    """The last seen state of a resource, with indexes by owner and by namespace."""

    def __init__(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        kept: Callable[[Object], Object] | None = None,
    ) -> None:
        self.resource = resource
        self.selection = selection
        self._kept = kept
        self._entries: dict[Key, _Entry] = {}
        self._by_owner = Index()
        self._by_namespace: defaultdict[str, set[Key]] = defaultdict(set)
        self._handlers: list[Handler] = []
        self._owner_handlers: list[tuple[str, Handler]] = []
        self._bereaved: OrderedDict[str, None] = OrderedDict()
        self._progress = 0
        self._encoder, self._buffer = msgspec.json.Encoder(), bytearray()
        self.is_served = True
        """False where the cluster does not know the resource."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Object | None:
        """A fresh copy of the object, or None where there is none."""
        entry = self._entries.get(key)
        return None if entry is None else self._decode(entry)

    def all(self) -> Iterator[Object]:
        for entry in list(self._entries.values()):
            yield self._decode(entry)

    def known(self, namespace: str = "") -> list[Key]:
        if namespace:
            return sorted(self._by_namespace.get(namespace, ()))
        return sorted(self._entries)

    def beginning(self, namespace: str, name: str, is_cut: bool) -> list[Key]:  # noqa: FBT001 - as a stream's place says it
        """The keys of this name; of a name that was cut, all that begin so."""
        if not is_cut:
            return [Key(namespace, name)]
        return [key for key in self.known(namespace) if key.name.startswith(name)]

    def owned_by(self, uid: str) -> list[Object]:
        """The children of a controller, in the order of their keys."""
        return [self._decode(self._entries[key]) for key in self._by_owner.under(uid)]

    def keys_owned_by(self, uid: str) -> frozenset[Key]:
        """Only their names: nothing is decoded."""
        return frozenset(self._by_owner.under(uid))

    def has_lost_a_child(self, uid: str) -> bool:
        """True where a child of this owner went away, perhaps because the owner itself did."""
        return uid in self._bereaved

    @property
    def progress(self) -> int:
        """The version up to which everything has been seen."""
        return self._progress

    def version(self, key: Key) -> int:
        """The version of the object that is held, 0 for none."""
        entry = self._entries.get(key)
        return 0 if entry is None else entry.version

    def on_change(self, handler: Handler) -> None:
        """Hear the key of every object that is new, different or gone."""
        self._handlers.append(handler)

    def on_child_change(self, kind: str, handler: Handler) -> None:
        """Hear the key of the owner of `kind` when a child of it changes."""
        self._owner_handlers.append((kind, handler))

    def wrote(self, obj: Object) -> None:
        """Take over what the API server answered to an own write."""
        key = objects.key_of(obj)
        # With a selector, only the server can tell whether the object is one of ours.
        if self.selection.labels or self.selection.fields:
            return
        known = key.name and number(objects.version_of(obj))
        if known and self.selection.namespace in {"", key.namespace}:
            self.put(obj)

    def deleted(self, key: Key, uid: str) -> None:
        """An own delete has taken effect: the object of this UID is gone."""
        before = self._entries.get(key)
        if before is not None and before.uid == uid:
            self.remove(key, before.version)

    def put(self, obj: Object) -> bool:
        """Take in a state; False where what is held is as new."""
        meta = objects.metadata(obj)
        key = Key(sys.intern(meta.get("namespace", "")), meta["name"])
        version = number(objects.version_of(obj))
        before = self._entries.get(key)
        if before is not None and before.version >= version:
            return False
        if self._kept is not None:
            head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
            obj = head | self._kept(obj)
        else:
            obj = {**obj, "metadata": {k: v for k, v in meta.items() if k != "managedFields"}}
        owner = _owner(meta)
        self._entries[key] = _Entry(self._encoded(obj), meta["uid"], version, owner)
        self._index(key, before, owner)
        self._tell(key, before.owner if before else None, owner)
        return True

    def remove(self, key: Key, version: int) -> bool:
        """Drop an object that was gone at `version`; False where a newer one is held."""
        before = self._entries.get(key)
        if before is None or before.version > version:
            return False
        del self._entries[key]
        self._by_namespace[key.namespace].discard(key)
        if not self._by_namespace[key.namespace]:
            del self._by_namespace[key.namespace]
        self._index(key, before, None, gone=True)
        if before.owner is not None:
            self._bereaved[before.owner.uid] = None
            if len(self._bereaved) > _REMEMBERED:
                self._bereaved.popitem(last=False)
        self._tell(key, before.owner, None)
        return True

    def keep_only(self, listed: Iterable[Key], version: int) -> None:
        """After a list made at `version`: what it did not name is gone, own later writes aside."""
        for key in set(self._entries).difference(listed):
            self.remove(key, version)
        self.progressed(version)

    def rewind_to(self, version: int) -> None:
        """Before a list at `version`: a cluster restored from a backup counts from there again."""
        if version < self._progress:
            self._progress = 0
            for key, entry in self._entries.items():
                self._entries[key] = entry._replace(version=0)

    def progressed(self, version: int) -> None:
        """Everything up to this version has been seen."""
        self._progress = max(self._progress, version)

    def _encoded(self, obj: Object) -> bytes:
        # By way of a buffer: what `encode` returns keeps the room that it grew into, up to a half.
        self._encoder.encode_into(obj, self._buffer)
        return bytes(self._buffer)

    def _decode(self, entry: _Entry) -> Object:
        return msgspec.json.decode(entry.raw, type=Object)

    def _index(
        self, key: Key, before: _Entry | None, owner: Owner | None, *, gone: bool = False
    ) -> None:
        if not gone:
            self._by_namespace[key.namespace].add(key)
        if before is not None and before.owner is not None:
            self._by_owner.discard(before.owner.uid, key)
        if owner is not None:
            self._by_owner.add(owner.uid, key)

    def _tell(self, key: Key, before: Owner | None, after: Owner | None) -> None:
        for handler in self._handlers:
            handler(key)
        for kind, handler in self._owner_handlers:
            names = {owner.name for owner in (before, after) if owner and owner.kind == kind}
            for name in sorted(names):
                handler(Key(key.namespace, name))


def number(version: str) -> int:
    """A resourceVersion to compare by; 0 where it is none."""
    return int(version) if version.isdecimal() else 0


def _owner(meta: Object) -> Owner | None:
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            kind, uid = sys.intern(reference["kind"]), sys.intern(reference["uid"])
            return Owner(kind, sys.intern(reference["name"]), uid)
    return None
