"""What machines ask of their objects (domain/intents.py), done to the cluster.

Before each write three things are looked at: that we lead, that the object is still there and
not on its way out, and that nothing newer was asked. An effect that comes too late is dropped,
for what follows it brings its own.

Failures by fate: what may pass later is tried again by the outbox; what the API server will not
have goes back to the machine as `Refuse`, so that it tells the user and waits by a timer.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import structlog

from fairlead.adapters.kubernetes import finalizers, objects, status
from fairlead.adapters.kubernetes.apply import Applier
from fairlead.adapters.kubernetes.cache import Cache, number
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.events import Occurrence, Recorder
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.adapters.kubernetes.turns import Quiet, Turns, living
from fairlead.domain.intents import (
    ApplyChildren,
    Confirm,
    HoldObject,
    PublishStatus,
    Refuse,
    ReleaseObject,
    Subject,
    TellEvent,
)
from fairlead.engine.outbox import Context, Handler, Handlers
from fairlead.errors import Conflict, FairleadError, NotFound, Rejected
from fairlead.intents.kubernetes import round_of

log = structlog.get_logger(__name__)
K = TypeVar("K")

# So often what may pass later is tried before the machine, and so the user, hears of it.
_TRIES = 6
_ALWAYS = 1_000_000
# Beyond these, the round in the status alone tells what is too late.
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Held:
    """The caches of one kind and of its children, and who writes the latter."""

    objects: Cache
    children: Mapping[tuple[str, str], Cache]
    """By apiVersion and kind, as a child itself says what it is."""

    applier: Applier
    quiet: Quiet = field(default_factory=Quiet)


class Performer:
    """Performs effects during one term."""

    def __init__(
        self,
        client: Client,
        held: Mapping[str, Held],
        recorder: Recorder,
        turns: Turns,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._held = held
        self._recorder = recorder
        self._turns = turns
        self._now = now
        self._found: OrderedDict[str, int] = OrderedDict()
        self._rounds: OrderedDict[tuple[str, type], int] = OrderedDict()

    def handlers(self) -> Handlers:
        longest = timedelta(seconds=30)

        def patient(perform: Callable[[Any, Context], Awaitable[object | None]]) -> Handler:
            return Handler(perform, attempts=_ALWAYS, longest_delay=longest)

        return {
            ApplyChildren: patient(self._children),
            PublishStatus: patient(self._status),
            TellEvent: patient(self._tell),
            HoldObject: patient(self._hold),
            ReleaseObject: patient(self._release),
        }

    async def _children(self, effect: ApplyChildren, context: Context) -> object | None:
        quiet = self._held[effect.subject.kind].quiet
        async with self._turns.of(effect.subject.uid):
            try:
                with quiet.writing(_key(effect.subject)):
                    done = await self._apply(effect)
            except FairleadError as error:
                if self._living(effect.subject) is None:
                    # It went while we wrote; whatever failed, failed for that.
                    return None
                self._turns.check()
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

    async def _status(self, effect: PublishStatus, _: Context) -> None:
        async with self._turns.of(effect.subject.uid):
            live = self._current(effect)
            if live is None:
                return
            wanted = self._wanted(effect, live)
            if _same_but_round(live.get("status") or {}, wanted):
                return
            try:
                await status.write(self._client, self._cache(effect.subject), live, wanted)
            except NotFound:
                return
            except Conflict:
                # A namesake, or somebody was quicker: the cache will tell which.
                if self._living(effect.subject) is not None:
                    raise
            except Rejected as error:
                # The status is where we would tell it; so it can only be told beside.
                log.warning("kubernetes.status.refused", error=error.message)
                self._recorder.record(
                    Occurrence(live, "StatusRefused", error.message, kind="Warning")
                )

    async def _tell(self, effect: TellEvent, _: Context) -> None:
        self._turns.check()
        live = self._cache(effect.subject).get(_key(effect.subject))
        if live is None or objects.uid_of(live) != effect.subject.uid:
            return
        kind: Literal["Normal", "Warning"] = "Warning" if effect.warning else "Normal"
        self._recorder.record(Occurrence(live, effect.reason, effect.note, kind=kind))

    async def _hold(self, effect: HoldObject, _: Context) -> None:
        async with self._turns.of(effect.subject.uid):
            self._turns.check()
            live = self._living(effect.subject)
            if live is not None:
                cache = self._cache(effect.subject)
                await finalizers.hold(self._client, cache, live, effect.finalizer)

    async def _release(self, effect: ReleaseObject, _: Context) -> None:
        async with self._turns.of(effect.subject.uid):
            self._turns.check()
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
        self._turns.check()
        live = self._living(effect.subject, known)
        if live is None:
            return None
        uid = effect.subject.uid
        # What another process did before us; later the field holds our own rounds, or what a
        # hand wrote there, which must not stop the work.
        found = self._found.setdefault(uid, round_of(live.get("status")))
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

    def _wanted(self, effect: PublishStatus, live: Object) -> Object:
        known = (live.get("status") or {}).get("conditions") or []
        news = [
            status.Condition(one.type, one.status, one.reason, one.message)
            for one in effect.conditions
        ]
        merged = status.with_conditions(known, news, effect.generation, self._now())
        return {**effect.status, "round": effect.round, "conditions": merged}


def _keep_newest(table: OrderedDict[K, int], key: K) -> None:
    table.move_to_end(key)
    if len(table) > _REMEMBERED:
        table.popitem(last=False)


def _same_but_round(live: Object, wanted: Object) -> bool:
    """A status that differs in nothing but its round is not worth a request.

    The generation of a condition is news: users wait for it after an edit.
    """
    return {**live, "round": 0} == {**wanted, "round": 0}


def _cache_of(held: Held, child: Object) -> Cache:
    place = (str(child.get("apiVersion")), str(child.get("kind")))
    if place not in held.children:
        known = ", ".join(sorted(kind for _, kind in held.children)) or "none"
        raise Rejected(
            f"not a kind of child that is watched: {place[1]}", hint=f"its kind declares: {known}"
        )
    return held.children[place]


def _key(subject: Subject) -> Key:
    return Key(subject.namespace, subject.name)


def _reason(error: FairleadError) -> str:
    """A word in the manner of Kubernetes, as conditions and Events carry it."""
    return type(error).__name__
