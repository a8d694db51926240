"""One kind at work: its caches, its queue, and what its reconciler knows of the cluster."""

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from fairlead.engine import messages, service, visibility
from fairlead.errors import FairleadError, NotFound, Rejected
from fairlead.kubernetes import kinds as reconciler
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.dependencies import (
    CachedSnapshot,
    Dependencies,
    DependencyIndexes,
    Owned,
)
from fairlead.kubernetes.cache.watch import Watches, WatchOptions
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.controller.queue import Queue, QueueOptions
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.messages import Condition
from fairlead.kubernetes.objects import Key, Object, Selection
from fairlead.kubernetes.writes import effects, status
from fairlead.kubernetes.writes.apply import Applier
from fairlead.kubernetes.writes.events import Occurrence, Recorder
from fairlead.kubernetes.writes.write_lock import Coalescer, WriteLocks

log = structlog.get_logger(__name__)

ACCEPTED = "Accepted"
_PAGE = 1000
_READ = ("uid", "generation", "annotations", "finalizers", "deletionTimestamp")

AfterReconcile = Callable[[Object], Awaitable[float | None]]
"""Follows each reconcile of an object; answers as a reconcile does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reach:
    """Which objects are ours, and how hard we work on them."""

    namespace: str
    shard: Shard
    queue_options: QueueOptions
    clock: Clock
    indexes: DependencyIndexes = dataclasses.field(default_factory=DependencyIndexes)
    """Where the kinds find what they read together."""

    def covers(self, namespace: str) -> bool:
        ours = not self.namespace or namespace == self.namespace
        return ours and self.shard.owns(Key(namespace, ""))


class Controller:
    """The objects of one kind and their children."""

    def __init__(
        self,
        kind: reconciler.Kind,
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
        self._write_locks: WriteLocks | None = None
        self._after_reconcile: AfterReconcile | None = None
        self._snapshot: dict[Key, CachedSnapshot] = {}
        self._unheard: Key | None = None
        self.reconciled = 0
        """How many reconciles there were so far."""

        self.siblings: Sequence[Controller] = (self,)
        """Controllers whose kinds stand before the same machine, this one among them."""

        chosen = Selection(reach.namespace)
        owners = watches.of(kind.api, chosen, WatchOptions(late=True))
        owners.on_change(self._changed)
        quiet = Coalescer(self._changed)
        children = {}
        for resource in kind.children:
            cache = watches.of(resource, chosen)
            cache.on_child_change(kind.api.kind, quiet.heard)
            children[resource.api_version, resource.kind] = cache
        self.held = effects.Held(
            owners, children, Applier(client, owners), quiet, self._published, kind.bound
        )
        self.dependencies = Dependencies(self._changed, reach.indexes)
        for related in kind.related:
            manner = WatchOptions(related.kept, related.optional)
            cache = watches.of(related.api, chosen, manner)
            self.dependencies.add(related, cache)

    @property
    def waiting(self) -> int:
        return 0 if self._queue is None else len(self._queue.backlog)

    @property
    def queue(self) -> Queue | None:
        """The queue of the running term."""
        return self._queue

    async def work(self, engine: service.Engine, queue: str = "") -> None:
        """Reconcile every object once, then what changes, until cancelled."""
        assert self._queue is not None
        opened = reconciler.Reconciler(self.kind, self, engine, queue)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sweep(opened, engine, queue))
            await self._queue.run(functools.partial(self._reconcile_key, opened))

    def begin(self, write_locks: WriteLocks, after_reconcile: AfterReconcile | None = None) -> None:
        """A term begins: from here on, changes are taken note of."""
        self._queue, self._write_locks = (
            Queue(self._reach.queue_options, self._reach.clock),
            write_locks,
        )
        self._after_reconcile = after_reconcile
        for key in self.held.objects.known():
            self._changed(key)

    def end(self) -> None:
        self._queue = self._write_locks = self._after_reconcile = None

    def object(self, name: Key) -> Object | None:
        return self.held.objects.get(Key(*name))

    def children(self, uid: str) -> list[Object]:
        return [child for cache in self.held.children.values() for child in cache.owned_by(uid)]

    def snapshot(self, obj: Object) -> CachedSnapshot:
        """For a reconcile: what was asked is watched from its end."""
        made = self.cached_snapshot(obj)
        self._snapshot[objects.key_of(obj)] = made
        return made

    def cached_snapshot(self, obj: Object) -> CachedSnapshot:
        """What the caches hold now; dated before it is read."""
        at = self._reach.clock.now()
        namespace = objects.key_of(obj).namespace
        uid = objects.uid_of(obj)
        owned = Owned(functools.partial(self.children, uid), functools.partial(self._versions, uid))
        return CachedSnapshot(self.dependencies, namespace, owned, at)

    def requeue(self, key: Key) -> None:
        """Something that no cache tells has changed."""
        self._changed(key)

    async def refuse(self, obj: Object, error: Rejected) -> None:
        told, reason = f"{error.message}; {error.hint}", type(error).__name__
        self._recorder.record(Occurrence(obj, reason, told, kind="Warning", action="Accept"))
        await self._condition(obj, Condition(ACCEPTED, status=False, reason=reason, message=told))

    async def accept(self, obj: Object) -> None:
        known = (obj.get("status") or {}).get("conditions") or ()
        if any(one["type"] == ACCEPTED and one["status"] != "True" for one in known):
            await self._condition(obj, Condition(ACCEPTED, status=True, reason="Accepted"))

    def warn(self, obj: Object, reason: str, error: Rejected) -> None:
        note = f"{error.message}; {error.hint}"
        self._recorder.record(Occurrence(obj, reason, note, kind="Warning", action="Adopt"))

    async def answer(self, obj: Object, done: Mapping[str, str], refused: Sequence[str]) -> None:
        for told in refused:
            self._recorder.record(
                Occurrence(obj, "RequestRefused", told, kind="Warning", action="Obey")
            )

        def noted(live: Object) -> Object:
            return {**(live.get("status") or {}), **self.kind.answer(live, done)}

        await self._write(obj, noted)

    async def stays(self, live: Object, told: str) -> None:
        """Tell why a deleted object is not let go yet; by a caller who has its turn."""
        reason = "GiveBackFailed"
        self._recorder.record(
            Occurrence(live, reason, told, kind="Warning", action="GiveBack", topic=told)
        )
        news = Condition("GivenBack", status=False, reason=reason, message=told)
        with contextlib.suppress(NotFound):
            await status.write(self._client, self.held.objects, live, self._with(live, news))

    async def _condition(self, obj: Object, news: Condition) -> None:
        await self._write(obj, functools.partial(self._with, news=news))

    def _with(self, live: Object, news: Condition) -> Object:
        before = live.get("status") or {}
        generation = int(objects.metadata(live).get("generation") or 0)
        known = before.get("conditions") or []
        merged = status.with_conditions(known, [news], generation, self._reach.clock.now())
        return {**before, "conditions": merged}

    async def _write(self, obj: Object, made: Callable[[Object], Object]) -> None:
        """Write what is made of the status as it is now: an effect may have published since.

        In our turn, or what an effect publishes in the same moment would take ours back.
        """
        if objects.is_deleting(obj) or self._write_locks is None:
            return
        key, uid = objects.key_of(obj), objects.uid_of(obj)
        async with self._write_locks.of(uid):
            self._write_locks.check()
            live = self.held.objects.get(key)
            if live is None or objects.uid_of(live) != uid:
                return
            try:
                await status.write(self._client, self.held.objects, live, made(live))
            except NotFound:
                log.info("kubernetes.status.too_late", key=str(key))

    async def _reconcile_key(self, opened: reconciler.Reconciler, key: Key) -> float | None:
        self.reconciled += 1
        try:
            again = await opened.reconcile(key)
        finally:
            snapshot = self._snapshot.pop(key, None)
            self.dependencies.read(key, snapshot.asked if snapshot else ())
        obj = None if self._after_reconcile is None else self.held.objects.get(key)
        if self._after_reconcile is None or obj is None:
            return again
        after = await self._after_reconcile(obj)
        return min((wait for wait in (again, after) if wait), default=None)

    async def _sweep(
        self, opened: reconciler.Reconciler, engine: service.Engine, queue: str
    ) -> None:
        """Objects that went while no operator ran leave streams that never end."""
        before: int | None = None
        try:
            while True:
                chosen = visibility.StreamFilter(self.kind.machine.name, False, before, _PAGE)
                page = await engine.read(functools.partial(visibility.streams, which=chosen))
                ours = [one for one in page if self._is_ours(one, queue)]
                strays = [one.name for one in ours if one.queue != queue]
                if strays:
                    moved, _ = await engine.move(strays, queue)
                    log.info("kubernetes.taken_over", kind=str(self.kind.api), streams=moved)
                lost = [one.name for one in ours if await self._is_lost(one.name)]
                if lost:
                    log.info("kubernetes.swept", kind=str(self.kind.api), streams=len(lost))
                    await opened.gone(lost)
                if not page.more:
                    return
                before = page[-1].number
        except FairleadError as error:
            # Untidy, not wrong: the next term sweeps again.
            log.warning("kubernetes.sweep.failed", kind=str(self.kind.api), error=str(error))

    def _is_ours(self, view: visibility.StreamView, queue: str) -> bool:
        """Whether it stands for an object of ours, whatever its queue says.

        Another cluster on the same store has streams of the same machine: by our server's word
        all of its objects are gone. A queue of our own cluster may be of another scope, from
        before the number of shards changed, and none is from before there were queues.
        """
        place = reconciler.place_of(view.name)
        if place is None or not self._reach.covers(place.namespace):
            return False
        if view.queue in ("", queue) or _cluster(view.queue) == _cluster(queue):
            return True
        # Of another name, but here: the cluster was called otherwise before.
        live = self.held.objects.get(Key(place.namespace, place.name))
        return live is not None and objects.uid_of(live) == place.uid

    async def _is_lost(self, stream: messages.StreamName) -> bool:
        """True where no object of the stream's UID is there, by the server's own word.

        The leader before us may have told of an object that our watch has yet to show.
        """
        place = reconciler.place_of(stream)
        if place is None or not self._reach.covers(place.namespace) or place.is_cut:
            # No object's, or of a name that was cut, of which nobody can ask; better one too many.
            return False
        if not all(one.held.objects.is_served for one in self.siblings):
            # A kind that is not installed yet: who removed it, removed its objects, and is seldom.
            return False
        for controller in self.siblings:
            if await controller.holds(place):
                return False
        return True

    async def holds(self, place: reconciler.Place) -> bool:
        """Whether this very object is there, by the server's own word where the cache has none."""
        key = Key(place.namespace, place.name)
        live = self.held.objects.get(key)
        if live is None:
            with contextlib.suppress(NotFound):
                live = await self._client.get(self.held.objects.resource, key)
        return live is not None and objects.uid_of(live) == place.uid

    def _published(self, before: Object, answer: Object) -> None:
        """What we publish is no news to ourselves, unless the write brought anything else."""
        if _read(self.kind, before) == _read(self.kind, answer):
            self._take_in(answer)
        else:
            self.held.objects.wrote(answer)

    def _take_in(self, answer: Object) -> None:
        """Hold an answer to a write of ours that is no reason for a reconcile."""
        self._unheard = objects.key_of(answer)
        try:
            self.held.objects.wrote(answer)
        finally:
            self._unheard = None

    def _versions(self, uid: str) -> list[int]:
        caches = self.held.children.values()
        return [cache.version(key) for cache in caches for key in sorted(cache.keys_owned_by(uid))]

    def _changed(self, key: Key) -> None:
        if key == self._unheard:
            return
        if self._queue is not None and self._reach.shard.owns(key):
            self._queue.add(key)


def _read(kind: reconciler.Kind, obj: Object) -> tuple[object, ...]:
    """What a reconcile reads of the object itself; a generation stands for its spec."""
    meta = objects.metadata(obj)
    return (*(meta.get(key) for key in _READ), kind.reads(obj.get("status") or {}))


def _cluster(queue: str) -> str:
    """The queue without its scope."""
    return queue.partition("/")[0]
