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
from fairlead.adapters.kubernetes.filed import Filed
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.errors import Rejected
from fairlead.intents.kubernetes import Api, Related

Terms = Callable[[Object], Iterable[str]]
Traits = Callable[[Object], tuple[str, ...]]
Heard = Callable[[Key, tuple[str, ...]], None]
"""Hears of an object that changed, and under which terms it was or is found."""


class Asked(NamedTuple):
    """A question that an object asked of its surroundings."""

    api: Api
    namespace: str
    term: str


class _Questions(NamedTuple):
    """All that one object asked, in its own namespace; most objects share the first part."""

    apis: tuple[Api, ...]
    terms: tuple[str, ...]


_NONE = _Questions((), ())


class Shelf:
    """The objects of one related kind, found by terms, and by traits where there are some."""

    def __init__(self, cache: Cache, terms: Terms | None, traits: Traits | None = None) -> None:
        self.cache = cache
        self._terms = terms
        self._traits = traits
        self._filed: defaultdict[str, Filed] = defaultdict(Filed)
        self._told: dict[Key, tuple[str, ...]] = {}
        self._shown: dict[Key, tuple[str, ...]] = {}
        self._heard: list[Heard] = []
        cache.on_change(self._changed)

    def on_change(self, heard: Heard) -> None:
        self._heard.append(heard)

    def find(self, namespace: str, term: str) -> list[Key]:
        """Under a name, also of one that is not there."""
        by_name = [Key(namespace, term)] if self._terms is None else []
        return self._filed[namespace].under(term) or by_name

    def _changed(self, key: Key) -> None:
        terms = (key.name,) if self._terms is None else self._refiled(key, self._told, self._terms)
        if self._traits is not None:
            before = self._shown.get(key)
            shown = self._refiled(key, self._shown, self._traits)
            terms = terms if self._shown.get(key) == before else (*terms, *shown)
        for heard in self._heard:
            heard(key, terms)

    def _refiled(self, key: Key, told: dict[Key, tuple[str, ...]], terms: Terms) -> tuple[str, ...]:
        """The terms under which the object was found, or is found now."""
        filed, before = self._filed[key.namespace], told.get(key, ())
        live = self.cache.get(key)
        now = () if live is None else tuple(terms(live))
        if before == now:
            return now
        for term in before:
            filed.discard(term, key)
        for term in now:
            filed.add(term, key)
        if now:
            told[key] = now
        else:
            told.pop(key, None)
        return tuple(dict.fromkeys((*before, *now)))


class Shelves:
    """One shelf for each cache and what is found there by, whichever kinds read there."""

    def __init__(self) -> None:
        self._made: dict[tuple[Cache, Terms | None, Traits | None], Shelf] = {}

    def of(self, cache: Cache, related: Related) -> Shelf:
        place = (cache, related.terms, related.traits)
        if place not in self._made:
            self._made[place] = Shelf(*place)
        return self._made[place]


class Relations:
    """All related kinds of one kind, and which object asked for what."""

    def __init__(self, changed: Callable[[Key], None], shelves: Shelves | None = None) -> None:
        self._changed = changed
        self._made = shelves or Shelves()
        self._shelves: dict[Api, Shelf] = {}
        self._readers: defaultdict[tuple[Api, str], Filed] = defaultdict(Filed)
        self._asked: dict[Key, _Questions] = {}
        self._apis: dict[tuple[Api, ...], tuple[Api, ...]] = {}

    def add(self, related: Related, cache: Cache) -> None:
        shelf = self._made.of(cache, related)
        self._shelves[related.api] = shelf
        shelf.on_change(functools.partial(self._heard, related.api))

    def cache(self, api: Api) -> Cache:
        return self._shelf(api).cache

    def is_served(self, api: Api) -> bool:
        shelf = self._shelves.get(api)
        return shelf is not None and shelf.cache.is_served

    def find(self, asked: Asked, read: dict[tuple[Api, Key], Object | None]) -> list[Object]:
        """What is there; what was read before is not decoded again."""
        shelf = self._shelf(asked.api)
        places = [(asked.api, key) for key in shelf.find(asked.namespace, asked.term)]
        for place in places:
            if place not in read:
                read[place] = shelf.cache.get(place[1])
        return [found for place in places if (found := read[place]) is not None]

    def read(self, reader: Key, asked: Iterable[Asked]) -> None:
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

    def _shelf(self, api: Api) -> Shelf:
        if api not in self._shelves:
            known = ", ".join(sorted(map(str, self._shelves))) or "none"
            raise Rejected(f"not a related kind: {api}", hint=f"its kind declares: {known}")
        return self._shelves[api]

    def _heard(self, api: Api, key: Key, terms: tuple[str, ...]) -> None:
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


class Surroundings:
    """What surrounds one object, read once; it remembers what was asked."""

    def __init__(self, relations: Relations, namespace: str, children: Owned, at: datetime) -> None:
        self.at = at
        self._relations = relations
        self._namespace = namespace
        self._owned = children
        self._found: dict[Asked, list[Object]] = {}
        self._read: dict[tuple[Api, Key], Object | None] = {}

    @property
    def asked(self) -> Iterable[Asked]:
        return self._found.keys()

    @functools.cached_property
    def children(self) -> list[Object]:
        return self._owned.objects()

    @property
    def versions(self) -> list[int]:
        return self._owned.versions()

    def found(self, api: Api, term: str) -> list[Object]:
        asked = Asked(api, self._namespace, term)
        if asked not in self._found:
            self._found[asked] = self._relations.find(asked, self._read)
        return self._found[asked]

    def is_served(self, api: Api) -> bool:
        return self._relations.is_served(api)
