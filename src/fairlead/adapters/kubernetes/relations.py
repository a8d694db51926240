"""Who reads whom: objects of other kinds that ours depend on without owning them.

An object that asked for something once is looked at again when that changes, comes or goes;
what it does not ask for any more is forgotten with its next look.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from fairlead.adapters.kubernetes.cache import Cache
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.errors import Rejected
from fairlead.intents.kubernetes import Api, Related

Terms = Callable[[Object], Iterable[str]]
Traits = Callable[[Object], tuple[str, ...]]


class Asked(NamedTuple):
    """A question that an object asked of its surroundings."""

    api: Api
    namespace: str
    term: str


class Shelf:
    """The objects of one related kind, found by terms."""

    def __init__(self, cache: Cache, terms: Terms | None, traits: Traits | None = None) -> None:
        self.cache = cache
        self._terms = terms
        self._traits = traits
        self._keys: defaultdict[tuple[str, str], set[Key]] = defaultdict(set)
        self._told: dict[Key, tuple[str, ...]] = {}
        self._shown: dict[Key, tuple[str, ...]] = {}

    def find(self, namespace: str, term: str) -> list[Object]:
        filed = self._keys.get((namespace, term))
        if filed is None and self._terms is None:
            found = self.cache.get(Key(namespace, term))
            return [] if found is None else [found]
        return [found for key in sorted(filed or ()) if (found := self.cache.get(key)) is not None]

    def changed(self, key: Key) -> tuple[str, ...]:
        """The terms under which the object was found, or is found now; traits if they changed."""
        heard = (key.name,) if self._terms is None else self._file(key, self._told, self._terms)
        if self._traits is None:
            return heard
        before = self._shown.get(key)
        shown = self._file(key, self._shown, self._traits)
        return heard if self._shown.get(key) == before else (*heard, *shown)

    def _file(self, key: Key, filed: dict[Key, tuple[str, ...]], terms: Terms) -> tuple[str, ...]:
        """File the object under its terms of today; answers those of before and of now."""
        live = self.cache.get(key)
        before, now = filed.get(key, ()), () if live is None else tuple(terms(live))
        if before == now:
            return now
        for term in before:
            self._keys[key.namespace, term].discard(key)
            if not self._keys[key.namespace, term]:
                del self._keys[key.namespace, term]
        for term in now:
            self._keys[key.namespace, term].add(key)
        filed[key] = now
        if not now:
            del filed[key]
        return tuple(dict.fromkeys((*before, *now)))


class Relations:
    """All related kinds of one kind, and which object asked for what."""

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._shelves: dict[Api, Shelf] = {}
        self._readers: defaultdict[Asked, set[Key]] = defaultdict(set)
        self._asked: dict[Key, frozenset[Asked]] = {}

    def add(self, related: Related, cache: Cache) -> None:
        shelf = Shelf(cache, related.terms, related.traits)
        self._shelves[related.api] = shelf
        cache.on_change(lambda key: self._heard(related.api, shelf, key))

    def cache(self, api: Api) -> Cache:
        return self._shelf(api).cache

    def find(self, asked: Asked) -> list[Object]:
        return self._shelf(asked.api).find(asked.namespace, asked.term)

    def read(self, reader: Key, asked: Iterable[Asked]) -> None:
        """From now on the reader hears of these, and of nothing else."""
        now = frozenset(asked)
        before = self._asked.get(reader, frozenset())
        for gone in before - now:
            self._readers[gone].discard(reader)
            if not self._readers[gone]:
                del self._readers[gone]
        for new in now - before:
            self._readers[new].add(reader)
        if now:
            self._asked[reader] = now
        else:
            self._asked.pop(reader, None)

    def _shelf(self, api: Api) -> Shelf:
        if api not in self._shelves:
            known = ", ".join(sorted(map(str, self._shelves))) or "none"
            raise Rejected(f"not a related kind: {api}", hint=f"its kind declares: {known}")
        return self._shelves[api]

    def _heard(self, api: Api, shelf: Shelf, key: Key) -> None:
        for term in shelf.changed(key):
            for reader in sorted(self._readers.get(Asked(api, key.namespace, term), ())):
                self._changed(reader)


class Owned(NamedTuple):
    """The children of one object, read when they are asked for."""

    objects: Callable[[], list[Object]]
    versions: Callable[[], list[int]]
    """Theirs alone, which costs no decoding."""


class Surroundings:
    """What surrounds one object, read once; it remembers what was asked."""

    def __init__(self, relations: Relations, namespace: str, children: Owned, at: datetime) -> None:
        self.at = at
        self._relations = relations
        self._namespace = namespace
        self._owned = children
        self._read: dict[Asked, list[Object]] = {}

    @property
    def asked(self) -> Iterable[Asked]:
        return self._read.keys()

    @functools.cached_property
    def children(self) -> list[Object]:
        return self._owned.objects()

    @property
    def versions(self) -> list[int]:
        return self._owned.versions()

    def found(self, api: Api, term: str) -> list[Object]:
        asked = Asked(api, self._namespace, term)
        if asked not in self._read:
            self._read[asked] = self._relations.find(asked)
        return self._read[asked]

    def is_served(self, api: Api) -> bool:
        return self._relations.cache(api).is_served
