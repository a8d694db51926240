"""One kind at work: its caches, its queue, and what the door sees of the cluster."""

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from fairlead.adapters.kubernetes import effects, objects, rights, status
from fairlead.adapters.kubernetes.apply import Applier
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.events import Occurrence, Recorder
from fairlead.adapters.kubernetes.objects import Key, Object, Selection
from fairlead.adapters.kubernetes.queue import Pace, Queue
from fairlead.adapters.kubernetes.relations import Owned, Relations, Shelves, Surroundings
from fairlead.adapters.kubernetes.shards import Shard
from fairlead.adapters.kubernetes.turns import Quiet, Turns
from fairlead.adapters.kubernetes.watch import Manner, Watches
from fairlead.engine import library, messages, service
from fairlead.errors import FairleadError, NotFound, Rejected
from fairlead.intents import kubernetes as door

log = structlog.get_logger(__name__)

ACCEPTED = "Accepted"
_PAGE = 1000

Tend = Callable[[Object], Awaitable[float | None]]
"""Looks after an object beside its machine; answers as a look does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reach:
    """Which objects are ours, and how hard we work on them."""

    namespace: str
    shard: Shard
    pace: Pace
    clock: Clock
    shelves: Shelves = dataclasses.field(default_factory=Shelves)
    """Where the kinds find what they read together."""

    def covers(self, namespace: str) -> bool:
        ours = not self.namespace or namespace == self.namespace
        return ours and self.shard.owns(Key(namespace, ""))


class Station:
    """The objects of one kind and their children."""

    def __init__(
        self,
        kind: door.Kind,
        watches: Watches,
        client: Client,
        recorder: Recorder,
        reach: Reach,
    ) -> None:
        self.kind = kind
        self._client = client
        self._recorder = recorder
        self._reach = reach
        self._queue: Queue | None = None
        self._turns: Turns | None = None
        self._tend: Tend | None = None
        self._around: dict[Key, Surroundings] = {}
        self._unheard: Key | None = None
        self.looked = 0
        """How many looks there were so far."""

        self.siblings: Sequence[Station] = (self,)
        """Stations whose kinds stand before the same machine, this one among them."""

        chosen = Selection(reach.namespace)
        owners = watches.of(rights.resource(kind.api), chosen)
        owners.on_change(self._changed)
        quiet = Quiet(self._changed)
        children = {}
        for api in kind.children:
            resource = rights.resource(api)
            cache = watches.of(resource, chosen)
            cache.on_child_change(kind.api.kind, quiet.heard)
            children[resource.api_version, resource.kind] = cache
        self.held = effects.Held(owners, children, Applier(client, owners), quiet)
        self.relations = Relations(self._changed, reach.shelves)
        for related in kind.related:
            manner = Manner(related.kept, related.optional)
            cache = watches.of(rights.resource(related.api), chosen, manner)
            self.relations.add(related, cache)

    @property
    def waiting(self) -> int:
        return 0 if self._queue is None else len(self._queue.backlog)

    @property
    def queue(self) -> Queue | None:
        """The queue of the running term."""
        return self._queue

    async def work(self, engine: service.Engine) -> None:
        """Look at every object once, then at what changes, until cancelled."""
        assert self._queue is not None
        opened = door.Door(self.kind, self, engine)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sweep(opened, engine))
            await self._queue.run(functools.partial(self._look, opened))

    def begin(self, turns: Turns, tend: Tend | None = None) -> None:
        """A term begins: from here on, changes are taken note of."""
        self._queue, self._turns = Queue(self._reach.pace, self._reach.clock), turns
        self._tend = tend
        for key in self.held.objects.known():
            self._changed(key)

    def end(self) -> None:
        self._queue = self._turns = self._tend = None

    def object(self, name: door.Name) -> Object | None:
        return self.held.objects.get(Key(*name))

    def children(self, uid: str) -> list[Object]:
        return [child for cache in self.held.children.values() for child in cache.owned_by(uid)]

    def around(self, obj: Object) -> Surroundings:
        """For a look: what was asked is watched from its end."""
        made = self.surroundings(obj)
        self._around[objects.key_of(obj)] = made
        return made

    def surroundings(self, obj: Object) -> Surroundings:
        """What the caches hold now; dated before it is read."""
        at = self._reach.clock.now()
        namespace = objects.key_of(obj).namespace
        uid = objects.uid_of(obj)
        owned = Owned(functools.partial(self.children, uid), functools.partial(self._versions, uid))
        return Surroundings(self.relations, namespace, owned, at)

    def take_in(self, answer: Object) -> None:
        """Hold an answer to a write of ours that is no reason for a look."""
        self._unheard = objects.key_of(answer)
        try:
            self.held.objects.wrote(answer)
        finally:
            self._unheard = None

    def look_again(self, key: Key) -> None:
        """Something that no cache tells has changed."""
        self._changed(key)

    async def refuse(self, obj: Object, error: Rejected) -> None:
        told, reason = f"{error.message}; {error.hint}", type(error).__name__
        self._recorder.record(Occurrence(obj, reason, told, kind="Warning", action="Accept"))
        await self._condition(obj, status.Condition(ACCEPTED, False, reason, told))

    async def accept(self, obj: Object) -> None:
        known = (obj.get("status") or {}).get("conditions") or ()
        if any(one["type"] == ACCEPTED and one["status"] != "True" for one in known):
            await self._condition(obj, status.Condition(ACCEPTED, True, "Accepted"))

    async def answer(self, obj: Object, done: Mapping[str, str], refused: Sequence[str]) -> None:
        for told in refused:
            self._recorder.record(
                Occurrence(obj, "RequestRefused", told, kind="Warning", action="Obey")
            )

        def noted(live: Object) -> Object:
            before = live.get("status") or {}
            return {**before, "requests": {**(before.get("requests") or {}), **done}}

        await self._write(obj, noted)

    async def _condition(self, obj: Object, news: status.Condition) -> None:
        def told(live: Object) -> Object:
            before = live.get("status") or {}
            generation = int(objects.metadata(live).get("generation") or 0)
            known = before.get("conditions") or []
            merged = status.with_conditions(known, [news], generation, self._reach.clock.now())
            return {**before, "conditions": merged}

        await self._write(obj, told)

    async def _write(self, obj: Object, made: Callable[[Object], Object]) -> None:
        """Write what is made of the status as it is now: an effect may have published since.

        In our turn, or what an effect publishes in the same moment would take ours back.
        """
        if objects.is_deleting(obj) or self._turns is None:
            return
        key, uid = objects.key_of(obj), objects.uid_of(obj)
        async with self._turns.of(uid):
            self._turns.check()
            live = self.held.objects.get(key)
            if live is None or objects.uid_of(live) != uid:
                return
            try:
                await status.write(self._client, self.held.objects, live, made(live))
            except NotFound:
                log.info("kubernetes.status.too_late", key=str(key))

    async def _look(self, opened: door.Door, key: Key) -> float | None:
        self.looked += 1
        try:
            again = await opened.look(door.Name(*key))
        finally:
            around = self._around.pop(key, None)
            self.relations.read(key, around.asked if around else ())
        obj = None if self._tend is None else self.held.objects.get(key)
        if self._tend is None or obj is None:
            return again
        tended = await self._tend(obj)
        return min((wait for wait in (again, tended) if wait), default=None)

    async def _sweep(self, opened: door.Door, engine: service.Engine) -> None:
        """Objects that went while no operator looked leave streams that never end."""
        before: int | None = None
        try:
            while True:
                chosen = library.StreamFilter(self.kind.machine.name, False, before, _PAGE)
                page = await engine.read(functools.partial(library.streams, which=chosen))
                lost = [one.name for one in page if await self._is_lost(one.name)]
                if lost:
                    log.info("kubernetes.swept", kind=str(self.kind.api), streams=len(lost))
                    await opened.gone(lost)
                if len(page) < _PAGE:
                    return
                before = page[-1].number
        except FairleadError as error:
            # Untidy, not wrong: the next term sweeps again.
            log.warning("kubernetes.sweep.failed", kind=str(self.kind.api), error=str(error))

    async def _is_lost(self, stream: messages.StreamName) -> bool:
        """True where no object of the stream's UID is there, by the server's own word.

        The leader before us may have told of an object that our watch has yet to show.
        """
        place = door.place_of(stream)
        if place is None or not self._reach.covers(place.namespace) or place.is_cut:
            # No object's, or of a name that was cut, of which nobody can ask; better one too many.
            return False
        for station in self.siblings:
            if await station.holds(place):
                return False
        return True

    async def holds(self, place: door.Place) -> bool:
        """Whether this very object is there, by the server's own word where the cache has none."""
        key = Key(place.namespace, place.name)
        live = self.held.objects.get(key)
        if live is None:
            with contextlib.suppress(NotFound):
                live = await self._client.get(self.held.objects.resource, key)
        return live is not None and objects.uid_of(live) == place.uid

    def _versions(self, uid: str) -> list[int]:
        caches = self.held.children.values()
        return [cache.version(key) for cache in caches for key in sorted(cache.keys_owned_by(uid))]

    def _changed(self, key: Key) -> None:
        if key == self._unheard:
            return
        if self._queue is not None and self._reach.shard.owns(key):
            self._queue.add(key)
