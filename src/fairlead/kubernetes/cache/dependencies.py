"""Who reads whom: objects of other kinds that ours depend on without owning them.

An object that asked for something once is reconciled again when that changes, comes or goes;
what it does not ask for any more is forgotten with its next reconcile.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from fairlead.errors import Rejected
from fairlead.kubernetes.cache.index import Index
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.kinds import Related
from fairlead.kubernetes.objects import Key, Object, Resource

Terms = Callable[[Object], Iterable[str]]
Traits = Callable[[Object], tuple[str, ...]]
Heard = Callable[[Key, tuple[str, ...]], None]
"""Hears of an object that changed, and under which terms it was or is found."""


class Lookup(NamedTuple):
    """A question that an object asked of what is around it."""

    api: Resource
    namespace: str
    term: str


class _Questions(NamedTuple):
    """All that one object asked, in its own namespace; most objects share the first part."""

    apis: tuple[Resource, ...]
    terms: tuple[str, ...]


_NONE = _Questions((), ())


class DependencyIndex:
    """The objects of one related kind, found by terms, and by traits where there are some."""

    def __init__(self, cache: Cache, terms: Terms | None, traits: Traits | None = None) -> None:
        self.cache = cache
        self._terms = terms
        self._traits = traits
        self._indexed: defaultdict[str, Index] = defaultdict(Index)
        self._told: dict[Key, tuple[str, ...]] = {}
        self._shown: dict[Key, tuple[str, ...]] = {}
        self._heard: list[Heard] = []
        cache.on_change(self._changed)

    def on_change(self, heard: Heard) -> None:
        self._heard.append(heard)

    def find(self, namespace: str, term: str) -> list[Key]:
        """Under a name, also of one that is not there."""
        by_name = [Key(namespace, term)] if self._terms is None else []
        return self._indexed[namespace].under(term) or by_name

    def _changed(self, key: Key) -> None:
        terms = (
            (key.name,) if self._terms is None else self._reindexed(key, self._told, self._terms)
        )
        if self._traits is not None:
            before = self._shown.get(key)
            shown = self._reindexed(key, self._shown, self._traits)
            terms = terms if self._shown.get(key) == before else (*terms, *shown)
        for heard in self._heard:
            heard(key, terms)

    def _reindexed(
        self, key: Key, told: dict[Key, tuple[str, ...]], terms: Terms
    ) -> tuple[str, ...]:
        """The terms under which the object was found, or is found now."""
        indexed, before = self._indexed[key.namespace], told.get(key, ())
        live = self.cache.get(key)
        now = () if live is None else tuple(terms(live))
        if before == now:
            return now
        for term in before:
            indexed.discard(term, key)
        for term in now:
            indexed.add(term, key)
        if now:
            told[key] = now
        else:
            told.pop(key, None)
        return tuple(dict.fromkeys((*before, *now)))


class DependencyIndexes:
    """One index for each cache and what is found there by, whichever kinds read there."""

    def __init__(self) -> None:
        self._made: dict[tuple[Cache, Terms | None, Traits | None], DependencyIndex] = {}

    def of(self, cache: Cache, related: Related) -> DependencyIndex:
        place = (cache, related.terms, related.traits)
        if place not in self._made:
            self._made[place] = DependencyIndex(*place)
        return self._made[place]


class Dependencies:
    """All related kinds of one kind, and which object asked for what."""

    def __init__(
        self, changed: Callable[[Key], None], indexes: DependencyIndexes | None = None
    ) -> None:
        self._changed = changed
        self._made = indexes or DependencyIndexes()
        self._indexes: dict[Resource, DependencyIndex] = {}
        self._readers: defaultdict[tuple[Resource, str], Index] = defaultdict(Index)
        self._asked: dict[Key, _Questions] = {}
        self._apis: dict[tuple[Resource, ...], tuple[Resource, ...]] = {}

    def add(self, related: Related, cache: Cache) -> None:
        index = self._made.of(cache, related)
        self._indexes[related.api] = index
        index.on_change(functools.partial(self._heard, related.api))

    def cache(self, api: Resource) -> Cache:
        return self._index(api).cache

    def is_served(self, api: Resource) -> bool:
        index = self._indexes.get(api)
        return index is not None and index.cache.is_served

    def find(self, asked: Lookup, read: dict[tuple[Resource, Key], Object | None]) -> list[Object]:
        """What is there; what was read before is not decoded again."""
        index = self._index(asked.api)
        places = [(asked.api, key) for key in index.find(asked.namespace, asked.term)]
        for place in places:
            if place not in read:
                read[place] = index.cache.get(place[1])
        return [found for place in places if (found := read[place]) is not None]

    def read(self, reader: Key, asked: Iterable[Lookup]) -> None:
        """From now on the reader hears of these, all in its namespace, and of nothing else."""
        all_asked = tuple(asked)
        apis = tuple(one.api for one in all_asked)
        now = _Questions(self._apis.setdefault(apis, apis), tuple(one.term for one in all_asked))
        before = self._asked.get(reader, _NONE)
        if now == before:
            return
        for api, term in zip(*before, strict=True):
            self._readers[api, reader.namespace].discard(term, reader)
        for api, term in zip(*now, strict=True):
            self._readers[api, reader.namespace].add(term, reader)
        if all_asked:
            self._asked[reader] = now
        else:
            del self._asked[reader]

    def _index(self, api: Resource) -> DependencyIndex:
        if api not in self._indexes:
            known = ", ".join(sorted(map(str, self._indexes))) or "none"
            raise Rejected(f"not a related kind: {api}", hint=f"its kind declares: {known}")
        return self._indexes[api]

    def _heard(self, api: Resource, key: Key, terms: tuple[str, ...]) -> None:
        readers = self._readers.get((api, key.namespace))
        if readers is None:
            return
        for term in terms:
            for reader in readers.under(term):
                self._changed(reader)


class Owned(NamedTuple):
    """The children of one object, read when they are asked for."""

    objects: Callable[[], list[Object]]
    versions: Callable[[], list[int]]
    """Theirs alone, which costs no decoding."""


class CachedSnapshot:
    """What surrounds one object, read once; it remembers what was asked."""

    def __init__(
        self, dependencies: Dependencies, namespace: str, children: Owned, at: datetime
    ) -> None:
        self.at = at
        self._relations = dependencies
        self._namespace = namespace
        self._owned = children
        self._found: dict[Lookup, list[Object]] = {}
        self._read: dict[tuple[Resource, Key], Object | None] = {}

    @property
    def asked(self) -> Iterable[Lookup]:
        return self._found.keys()

    @functools.cached_property
    def children(self) -> list[Object]:
        return self._owned.objects()

    @property
    def versions(self) -> list[int]:
        return self._owned.versions()

    def found(self, api: Resource, term: str) -> list[Object]:
        asked = Lookup(api, self._namespace, term)
        if asked not in self._found:
            self._found[asked] = self._relations.find(asked, self._read)
        return self._found[asked]

    def is_served(self, api: Resource) -> bool:
        return self._relations.is_served(api)
