"""What machines ask of their objects (kubernetes/messages.py), done to the cluster.

Before each write three things are looked at: that we lead, that the object is still there and
not on its way out, and that nothing newer was asked. An effect that comes too late is dropped,
for what follows it brings its own.

Failures by fate: what may pass later is tried again by the outbox; what the API server will not
have goes back to the machine as `Refuse`, so that it tells the user and waits by a timer.
"""

import functools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import structlog

from fairlead.engine.outbox import EffectContext, Handler, Handlers
from fairlead.errors import Conflict, FairleadError, NotFound, Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.store import Cache, number
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.kinds import round_of, stream_key
from fairlead.kubernetes.messages import (
    ApplyChildren,
    Confirm,
    HoldObject,
    PublishStatus,
    RecordEvent,
    Refuse,
    ReleaseObject,
    Subject,
)
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.writes import finalizers, status
from fairlead.kubernetes.writes.apply import Applier
from fairlead.kubernetes.writes.events import Occurrence, Recorder
from fairlead.kubernetes.writes.write_lock import Coalescer, WriteLocks, living

log = structlog.get_logger(__name__)
K = TypeVar("K")

Beside = Callable[[Object], Object]
"""What stands in a status beside what the machine publishes, given the object as it is."""

# So often what may pass later is tried before the machine, and so the user, hears of it.
_TRIES = 6
_ALWAYS = 1_000_000
_ANSWERED = ("requests",)
# Beyond these, the round in the status alone tells what is too late.
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Held:
    """The caches of one kind and of its children, and who writes the latter."""

    objects: Cache
    children: Mapping[tuple[str, str], Cache]
    """By apiVersion and kind, as a child itself says what it is."""

    applier: Applier
    quiet: Coalescer = field(default_factory=Coalescer)
    published: Callable[[Object, Object], None] | None = None
    """Takes the answer to a published status, after the object as it was; None: the cache does."""

    bound: bool = True
    """As the kind has it."""


class Performer:
    """Performs effects during one term: for the outbox, or called by an area's own handlers."""

    def __init__(
        self,
        client: Client,
        held: Mapping[str, Held],
        recorder: Recorder,
        write_locks: WriteLocks,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._held = held
        self._recorder = recorder
        self._write_locks = write_locks
        self._now = now
        self._found: OrderedDict[str, int] = OrderedDict()
        self._rounds: OrderedDict[tuple[str, type], int] = OrderedDict()

    def handlers(self) -> Handlers:
        longest = timedelta(seconds=30)

        def patient(perform: Callable[[Any, EffectContext], Awaitable[object | None]]) -> Handler:
            async def performed(effect: Any, context: EffectContext) -> object | None:
                _check_own(effect.subject, context)
                return await perform(effect, context)

            return Handler(performed, attempts=_ALWAYS, longest_delay=longest)

        return {
            ApplyChildren: patient(self._children),
            PublishStatus: patient(self._status),
            RecordEvent: patient(self._tell),
            HoldObject: patient(self._hold),
            ReleaseObject: patient(self._release),
        }

    async def _children(self, effect: ApplyChildren, context: EffectContext) -> object | None:
        quiet = self._held[effect.subject.kind].quiet
        async with self._write_locks.of(effect.subject.uid):
            try:
                with quiet.writing(_key(effect.subject)):
                    done = await self._apply(effect)
            except FairleadError as error:
                if self._living(effect.subject) is None:
                    # It went while we wrote; whatever failed, failed for that.
                    return None
                self._write_locks.check()
                if not isinstance(error, Rejected) and context.attempt < _TRIES:
                    raise
                return Refuse(effect.round, _reason(error), error.message)
        return Confirm(effect.round) if done else None

    async def _apply(self, effect: ApplyChildren) -> bool:
        """False where it came too late, at the start or half-way."""
        held = self._held[effect.subject.kind]
        keep: dict[Cache, list[Key]] = {cache: [] for cache in held.children.values()}
        owner: Object | None = None
        for child in effect.children:
            owner = self._current(effect, owner)
            if owner is None:
                return False
            cache = _cache_of(held, child)
            await held.applier.ensure(cache, child, owner)
            keep[cache].append(objects.key_of(child))
        for cache, kept in keep.items():
            owner = self._current(effect, owner)
            if owner is None:
                return False
            await held.applier.prune(cache, owner, kept)
        return True

    async def publish(self, effect: PublishStatus, beside: Beside = lambda _: {}) -> bool:
        """Bring the status to this; False where it came too late, or was refused."""
        async with self._write_locks.of(effect.subject.uid):
            live = self._current(effect)
            if live is None:
                return False
            desired = {**self._desired(effect, live), **beside(live)}
            if _same_but_round(live.get("status") or {}, desired):
                return True
            return await self._write_status(effect.subject, live, desired)

    def record(self, effect: RecordEvent) -> None:
        """Tell it by an Event, which is sent in the background."""
        self._write_locks.check()
        live = self._cache(effect.subject).get(_key(effect.subject))
        if live is None or objects.uid_of(live) != effect.subject.uid:
            return
        kind: Literal["Normal", "Warning"] = "Warning" if effect.warning else "Normal"
        told = Occurrence(live, effect.reason, effect.note, kind=kind, topic=effect.topic)
        self._recorder.record(told)

    async def _write_status(self, subject: Subject, live: Object, desired: Object) -> bool:
        held = self._held[subject.kind]
        take = functools.partial(held.published, live) if held.published else None
        try:
            await status.write(self._client, held.objects, live, desired, take)
        except NotFound:
            return False
        except Conflict:
            # A namesake, or somebody was quicker: the cache will tell which.
            if self._living(subject) is not None:
                raise
            return False
        except Rejected as error:
            # The status is where we would tell it; so it can only be told beside.
            log.warning("kubernetes.status.refused", error=error.message)
            self._recorder.record(Occurrence(live, "StatusRefused", error.message, kind="Warning"))
            return False
        return True

    async def _status(self, effect: PublishStatus, _: EffectContext) -> None:
        await self.publish(effect)

    async def _tell(self, effect: RecordEvent, _: EffectContext) -> None:
        self.record(effect)

    async def _hold(self, effect: HoldObject, _: EffectContext) -> None:
        async with self._write_locks.of(effect.subject.uid):
            self._write_locks.check()
            live = self._living(effect.subject)
            if live is not None:
                cache = self._cache(effect.subject)
                await finalizers.hold(self._client, cache, live, effect.finalizer)

    async def _release(self, effect: ReleaseObject, _: EffectContext) -> None:
        async with self._write_locks.of(effect.subject.uid):
            self._write_locks.check()
            cache = self._cache(effect.subject)
            live = cache.get(_key(effect.subject))
            if live is not None and objects.uid_of(live) == effect.subject.uid:
                await finalizers.release(self._client, cache, live, effect.finalizer)

    def _current(
        self, effect: ApplyChildren | PublishStatus, known: Object | None = None
    ) -> Object | None:
        """The object to act upon, or None where this effect comes too late.

        `known` is what was found a moment ago, and is given back where nothing is newer.
        """
        self._write_locks.check()
        live = self._living(effect.subject, known)
        if live is None:
            return None
        uid = effect.subject.uid
        # What another process did before us; later the field holds our own rounds, or what a
        # hand wrote there, which must not stop the work.
        stands = round_of(live.get("status")) if self._held[effect.subject.kind].bound else 0
        found = self._found.setdefault(uid, stands)
        newest = max(found, self._rounds.get((uid, type(effect)), 0))
        if newest > effect.round:
            return None
        self._rounds[uid, type(effect)] = effect.round
        _keep_newest(self._rounds, (uid, type(effect)))
        _keep_newest(self._found, uid)
        return live

    def _living(self, subject: Subject, known: Object | None = None) -> Object | None:
        cache, key = self._cache(subject), _key(subject)
        if known is not None and cache.version(key) == number(objects.version_of(known)):
            return known
        return living(cache, key, subject.uid)

    def _cache(self, subject: Subject) -> Cache:
        return self._held[subject.kind].objects

    def _desired(self, effect: PublishStatus, live: Object) -> Object:
        before = live.get("status") or {}
        known = before.get("conditions") or []
        merged = status.with_conditions(known, effect.conditions, effect.generation, self._now())
        # What people asked by annotation and was done: without it, it would be done again.
        answered = {key: before[key] for key in _ANSWERED if key in before}
        return {**effect.status, **answered, "round": effect.round, "conditions": merged}


def _keep_newest(table: OrderedDict[K, int], key: K) -> None:
    table.move_to_end(key)
    if len(table) > _REMEMBERED:
        table.popitem(last=False)


def _same_but_round(live: Object, desired: Object) -> bool:
    """A status that differs in nothing but its round is not worth a request.

    The generation of a condition is news: users wait for it after an edit.
    """
    return {**live, "round": 0} == {**desired, "round": 0}


def _cache_of(held: Held, child: Object) -> Cache:
    place = (str(child.get("apiVersion")), str(child.get("kind")))
    if place not in held.children:
        known = ", ".join(sorted(kind for _, kind in held.children)) or "none"
        raise Rejected(
            f"kind of child that is not watched: {place[1]}", hint=f"its kind declares: {known}"
        )
    return held.children[place]


def _check_own(subject: Subject, context: EffectContext) -> None:
    """A stream asks for the object that it stands for, whatever stands in the effect."""
    place = {"namespace": subject.namespace, "name": subject.name, "uid": subject.uid}
    if stream_key({"metadata": place}) != context.stream.partition("/")[2]:
        raise Rejected(
            f"{context.stream} asks for another object: {_key(subject)}",
            hint="discard the effect (fairlead outbox discard)",
        )


def _key(subject: Subject) -> Key:
    return Key(subject.namespace, subject.name)


def _reason(error: FairleadError) -> str:
    """A word in the manner of Kubernetes, as conditions and Events carry it."""
    return type(error).__name__
