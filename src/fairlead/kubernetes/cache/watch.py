"""Keeps caches true: list once, then watch, and know when to begin again.

One watch per resource and selection serves everybody who asks for that cache. A watch that
ends is resumed where it stopped (bookmarks keep that place fresh); only a place that the
server has forgotten (410) costs a new list.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterable

import msgspec
import structlog

from fairlead.errors import FairleadError, NotFound, Unavailable
from fairlead.kubernetes import objects
from fairlead.kubernetes.api_errors import Busy, Expired
from fairlead.kubernetes.cache.store import Cache, number
from fairlead.kubernetes.client import limits
from fairlead.kubernetes.client.client import Client, Page, WatchEvent, named
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import EVERYTHING, Key, Object, Resource, Selection

log = structlog.get_logger(__name__)

# Watches are ended by us every five to ten minutes, so that they spread over the servers.
_SHORTEST_WATCH = 300
_WAITS = limits.Limits(first_delay=0.5, longest_delay=30.0)
# After so many lists that expired half-way, one without pages: it cannot expire.
_PAGED_TRIES = 2
# How often a kind that is not installed is asked for.
_ABSENT_SECONDS = 120.0
# One that somebody is about to install, with us perhaps, is asked for more often.
_LATE_SECONDS = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a resource is watched."""

    kept: Callable[[Object], Object] | None = None
    """What is kept of an object; None: all of it."""

    optional: bool = False
    """A server that does not serve the resource is taken for an empty list, and asked again."""

    late: bool = False
    """The same until the resource is served, and never again: what it held is not gone then."""


WHOLE = WatchOptions()


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    namespace: str = ""
    name: str = ""


class _Head(msgspec.Struct):
    """The part of an object that tells whether the rest is news."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)


class Watches:
    """The caches of one process, each kept by one watch."""

    def __init__(self, client: Client, options: ClientOptions | None = None) -> None:
        self._client = client
        self._options = options or ClientOptions()
        self._watchers: dict[tuple[Resource, Selection, object], Watcher] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def of(
        self, resource: Resource, selection: Selection = EVERYTHING, manner: WatchOptions = WHOLE
    ) -> Cache:
        """The cache of this resource and selection; the first to ask starts its watch."""
        place = (resource, selection, manner.kept)
        if place not in self._watchers:
            cache = Cache(resource, selection, manner.kept)
            watcher = Watcher(self._client, cache, self._options, manner)
            self._watchers[place] = watcher
            if self._tasks is not None:
                self._tasks.create_task(watcher.run())
        watcher = self._watchers[place]
        watcher.late = watcher.late or manner.late
        return watcher.cache

    async def run(self) -> None:
        """Keep every cache, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for watcher in self._watchers.values():
                    tasks.create_task(watcher.run())
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    async def synced(self, seconds: float) -> None:
        """The barrier: nobody acts on a cache before its first list is complete."""
        try:
            async with asyncio.timeout(seconds):
                for watcher in list(self._watchers.values()):
                    await watcher.synced.wait()
        except TimeoutError as error:
            waiting = [str(w.cache.resource) for w in self._late()]
            raise Unavailable(
                f"not listed after {seconds:.0f} s: {', '.join(waiting)}",
                hint="check that the kinds are installed and that we may list and watch them",
            ) from error

    def _late(self) -> Iterable["Watcher"]:
        return (w for w in self._watchers.values() if not w.synced.is_set())


class Watcher:
    """Keeps one cache."""

    def __init__(
        self, client: Client, cache: Cache, options: ClientOptions, manner: WatchOptions = WHOLE
    ) -> None:
        self.cache = cache
        self._optional = manner.optional
        self.late = manner.late
        self.synced = asyncio.Event()
        self._client = client
        self._options = options
        self._version = ""
        self._failures = 0
        self._expired_lists = 0
        self._was_listed = False

    async def run(self) -> None:
        """List and watch until cancelled; no answer of the server ends this."""
        while True:
            try:
                if not self._version:
                    await self._list()
                progressed = await self._watch()
            except Expired:
                # Not a fault: history is kept for minutes only. Without a wait the first time.
                self._version = ""
                self._failures += 1
                await self._pause(self._failures - 1, None)
            except FairleadError as error:
                self._failures += 1
                if isinstance(error, NotFound) and (again := self._absent()):
                    await self._options.clock.sleep(again)
                    continue
                log.warning(
                    "kubernetes.watch.failed", resource=str(self.cache.resource), error=str(error)
                )
                wait = error.retry_after if isinstance(error, Busy) else None
                await self._pause(self._failures, wait)
            else:
                # A server that ends watches at once must not be asked in a tight loop.
                self._failures = 0 if progressed else self._failures + 1
                await self._pause(self._failures, None)

    async def _list(self) -> None:
        listed: set[Key] = set()
        token = ""
        while True:
            page = await self._page(token)
            self.cache.rewind_to(number(page.resource_version))
            for item in page.items:
                obj = msgspec.json.decode(item, type=Object)
                listed.add(objects.key_of(obj))
                self.cache.put(named(self.cache.resource, obj))
            # A large list must not keep the loop from everything else.
            await asyncio.sleep(0)
            if not page.next:
                break
            token = page.next
        self._expired_lists = 0
        self._version = page.resource_version
        self.cache.keep_only(listed, number(page.resource_version))
        self.cache.is_served = self._was_listed = True
        self.synced.set()
        log.info("kubernetes.listed", resource=str(self.cache.resource), objects=len(listed))

    def _absent(self) -> float:
        """The cluster does not know the kind: when to ask again, 0 where it has to know it."""
        if self._optional:
            self._version = ""
            self.cache.keep_only((), self.cache.progress)
        elif not self.late or self._was_listed:
            return 0.0
        elif self.cache.is_served:
            hint = "apply its CustomResourceDefinition; it is taken up then, all else goes on"
            log.warning("kubernetes.kind.absent", resource=str(self.cache.resource), hint=hint)
        self.cache.is_served = False
        self.synced.set()
        return _ABSENT_SECONDS if self._optional else _LATE_SECONDS

    async def _page(self, token: str) -> Page:
        limit = 0 if self._expired_lists >= _PAGED_TRIES else None
        try:
            return await self._client.page(self.cache.resource, self.cache.selection, token, limit)
        except Expired:
            self._expired_lists += 1
            raise

    async def _watch(self) -> bool:
        """Follow the changes; True where there was any sign of life."""
        seconds = int(_SHORTEST_WATCH * (1 + self._options.chance()))
        cache = self.cache
        stream = self._client.watch(cache.resource, cache.selection, self._version, seconds)
        seen = False
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                self._take(event)
                self._failures = 0
                seen = True
        return seen

    def _take(self, event: WatchEvent) -> None:
        meta = msgspec.json.decode(event.object, type=_Head).metadata
        self._version = meta.resource_version
        version = number(self._version)
        key = Key(meta.namespace, meta.name)
        match event.type:
            case "ADDED" | "MODIFIED":
                # Most of what we hear is what we wrote ourselves, and is held already: then the
                # rest of the object need not be read.
                if key not in self.cache or self.cache.version(key) < version:
                    obj = msgspec.json.decode(event.object, type=Object)
                    self.cache.put(named(self.cache.resource, obj))
            case "DELETED":
                self.cache.remove(key, version)
            case _:
                pass
        self.cache.progressed(version)

    async def _pause(self, failures: int, wanted: float | None) -> None:
        if failures > 0:
            wait = limits.delay(_WAITS, min(failures, 10), self._options.chance())
            await self._options.clock.sleep(max(wait, wanted or 0.0))
