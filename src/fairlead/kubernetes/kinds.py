"""The reconciler: from a watched object to one command per change of a level.

change in a cache ──► queue ──► Reconciler.reconcile ──► adopt (first time) ──► observe ──► engine
                                    │ nothing new: no submit, no commit, no request
                                    └ refused: a condition and an Event, and on to the next

A level is what the kind makes of the object and of what surrounds it, and nothing else: a status
that we wrote ourselves, or a field that the kind does not read, changes no level. A kind may tell
several levels, each under a topic of its own and only when that one changed. The reconciler
knows the cluster by a small protocol and plain dicts; kubernetes/operator/operator.py gives it
caches.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import msgspec
import structlog

from fairlead.engine import machine as machines
from fairlead.engine import messages
from fairlead.errors import Rejected
from fairlead.kubernetes import messages as objects
from fairlead.kubernetes.objects import Key, Object, Resource
from fairlead.kubernetes.schema import KindSchema

Children = Sequence[Object]
_log = structlog.get_logger(__name__)

# With a namespace of 63 and a UID of 36 this fills the 200 that a stream's key may have.
_LONGEST_NAME = 98
# In place of a namespace; no namespace has a capital letter.
_EVERYWHERE = "CLUSTER"
# Machine, namespace, name and UID.
_PARTS = 4
_WHOLE = "whole"
NOT_ADOPTED = "StatusNotAdopted"
"""The Event of a status that a process with an empty store does not go on from."""
_UNFIT = re.compile(r"[^A-Za-z0-9._:@-]")


class Need(NamedTuple):
    """A right that whoever writes an object must have: the operator will use its own for it."""

    path: str
    """The field that asks for it."""

    verb: str
    api: Resource
    namespace: str
    name: str = ""
    """Empty: for any name."""


class InvalidSpec(Rejected):
    """The object is wrong as it stands; the message names the field."""


class Snapshot(Protocol):
    """What surrounds one object, as the caches hold it; what was asked for is watched from then."""

    at: dt.datetime
    """A moment before anything was read."""

    @property
    def children(self) -> Children: ...

    @property
    def versions(self) -> Sequence[int]:
        """Those of the children, in an order that stays the same."""
        ...

    def found(self, api: Resource, term: str) -> Children:
        """Objects of a related kind in the same namespace, by a term (mostly their name)."""
        ...

    def is_served(self, api: Resource) -> bool:
        """False where the cluster does not know the kind, or we may not read it."""
        ...


@dataclass(frozen=True, slots=True)
class Related:
    """A kind whose objects are read, and perhaps amended, but not owned."""

    api: Resource
    terms: Callable[[Object], Iterable[str]] | None = None
    """Under which terms an object is found; None: under its name."""

    traits: Callable[[Object], tuple[str, ...]] | None = None
    """Further terms; who asked for one hears only of a change of the traits themselves."""

    kept: Callable[[Object], Object] | None = None
    """What the cache keeps of an object; None: all of it."""

    writes: tuple[str, ...] = ()
    """Verbs beyond reading."""

    optional: bool = False
    """A cluster that does not serve this kind is well."""


@dataclass(frozen=True, slots=True)
class Level:
    """One command, and what of it must change for it to be told again."""

    command: object
    essence: object = None
    """None: the whole command."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks by an annotation; each new value is one request."""

    value: str
    command: object


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """What a kind makes of one object and what surrounds it."""

    levels: Mapping[str, Level]
    """By topic, in the order in which they are told."""

    requests: Mapping[str, Request] = field(default_factory=dict)
    """By verb; those whose value the status names as done are left out."""

    again: float = 0.0
    """Seconds after which to requeue; 0: when something changes."""

    refusal: Rejected | None = None
    """Why the object is not taken as it stands, where an earlier one of it still is."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object and the machine that stands behind each."""

    api: Resource
    machine: machines.AnyMachine
    shown: KindSchema
    """How it is installed, and what kubectl shows."""

    observe: Callable[[Object, Snapshot], object]
    """The command with the level, or an ObservedObject of several levels; Rejected where
    the object makes no sense."""

    delete: Callable[[Object | None], object]
    """The command for an object that is going, held by a finalizer, or (None) gone."""

    adopt: Callable[[Object], object | None] = lambda _: None
    """The command that brings the machine to where the object's `.status` says it was.

    None where it says nothing; Rejected where that is not to be believed, as whoever may write a
    status may have written it. The machine takes it only where the round in it is beyond its own:
    an older status, or the same one again, changes nothing.
    """

    answer: Callable[[Object, Mapping[str, str]], Object] = lambda obj, done: {
        "requests": {**((obj.get("status") or {}).get("requests") or {}), **done}
    }
    """The fields of an object's status that say which requests were done, these among them."""

    children: tuple[Resource, ...] = ()
    related: tuple[Related, ...] = ()
    finalizer: str = ""
    amended: bool = False
    """Whether fields of the object itself are written, beyond status and finalizers."""

    reads: Callable[[Object], object] = lambda status: status
    """What `observe` reads of a status; one of ours that leaves it so brings no reconcile."""

    bound: bool = True
    """Whether the round that stands in a status binds a process that has yet to publish one.

    Only where the machine takes up a round beyond its own: any other would be silent until its
    own rounds come that far.
    """

    review: Callable[[Object, Object | None], Sequence[tuple[str, str]]] = lambda _new, _old: ()
    """What a write would get wrong: pairs of a field's path and the reason, none to let it pass.

    Given the object as it would be, and as it was (None for a new one). The admission webhook
    asks before the object is stored, so it is pure and quick. What can be seen from the object
    alone, `observe` refuses too: the webhook may be away.
    """

    needs: Callable[[Object, Object | None], Sequence[Need]] = lambda _new, _old: ()
    """The rights that a write takes beyond that to the object itself, where it is not refused."""

    policies: Mapping[str, Object] = field(default_factory=dict)
    """Specs of policies by which the API server itself changes writes, installed with the kind."""

    group: str = ""
    """An API group whose kinds are made where they are wanted: rights and reviews are for all."""

    def without(self, related: str) -> "Kind":
        """The kind, where these objects of others may not be read."""
        left = tuple(one for one in self.related if str(one.api) != related)
        return replace(self, related=left)

    def stream(self, obj: Object) -> messages.StreamName:
        """The stream of this very object: one made again under its name gets another."""
        return messages.stream_name(self.machine.name, stream_key(obj))

    def subject(self, obj: Object) -> objects.Subject:
        meta = obj["metadata"]
        return objects.Subject(
            str(self.api), meta.get("namespace", ""), meta["name"], str(meta["uid"])
        )


class Place(NamedTuple):
    """What a stream's name tells of its object."""

    namespace: str
    name: str
    uid: str

    @property
    def is_cut(self) -> bool:
        """True where the object's own name may be longer."""
        return len(self.name) >= _LONGEST_NAME


def stream_key(obj: Object) -> str:
    """What tells an object's stream from others of its machine."""
    meta = obj["metadata"]
    place = [meta.get("namespace") or _EVERYWHERE, meta["name"][:_LONGEST_NAME], meta["uid"]]
    return "/".join(_UNFIT.sub("-", part) for part in place)


def place_of(stream: str) -> Place | None:
    """The reverse of `Kind.stream`; None for a stream that stands for no object."""
    parts = stream.split("/")
    if len(parts) != _PARTS:
        return None
    _, namespace, name, uid = parts
    return Place("" if namespace == _EVERYWHERE else namespace, name, uid)


class Cluster(Protocol):
    """What the reconciler knows: caches of one kind, and a way to answer the user."""

    def object(self, name: Key) -> Object | None: ...

    def snapshot(self, obj: Object) -> Snapshot: ...

    async def refuse(self, obj: Object, error: Rejected) -> None:
        """Tell by a condition and an Event that the object cannot be taken as it stands."""

    async def accept(self, obj: Object) -> None:
        """Take such a condition back, where there is one."""

    def warn(self, obj: Object, reason: str, error: Rejected) -> None:
        """Tell by an Event that something of the object is left out, and all else goes on."""

    async def answer(self, obj: Object, done: Mapping[str, str], refused: Sequence[str]) -> None:
        """Note requests as done in the status, and tell of those that were refused."""


class Submit(Protocol):
    """The engine as the reconciler needs it."""

    async def submit(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the engine's own word
        *,
        queue: str = "",
    ) -> messages.Receipt:
        """What a person asks for, once."""

    async def observe(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the engine's own word
        *,
        queue: str = "",
    ) -> messages.Receipt:
        """What is so, however often it is told."""


@dataclass(slots=True)
class _Known:
    """What this process has told the engine of one object."""

    uid: str
    stream: messages.StreamName
    levels: dict[str, str] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)
    refusal: str = "unknown"
    """What was refused last, empty for nothing; before the first reconcile, the status may say."""


class Reconciler:
    """Tells the engine of the objects of one kind, each level once."""

    def __init__(self, kind: Kind, cluster: Cluster, engine: Submit, queue: str = "") -> None:
        self._kind = kind
        self._cluster = cluster
        self._engine = engine
        self._queue = queue
        """Where the streams of these objects are born."""

        self._known: dict[Key, _Known] = {}

    async def reconcile(self, name: Key) -> float | None:
        """Bring the engine up to date with one object; Unavailable means: requeue.

        Answers the seconds after which to requeue the object, if it asks for that.
        """
        obj = self._cluster.object(name)
        known = self._known.get(name)
        if known is not None and (obj is None or obj["metadata"]["uid"] != known.uid):
            await self._gone(known.stream)
            del self._known[name]
        return None if obj is None else await self._tell(name, obj)

    async def gone(self, streams: Iterable[messages.StreamName]) -> None:
        """End the streams of objects that were deleted while nobody watched."""
        for stream in streams:
            await self._gone(stream)

    async def _tell(self, name: Key, obj: Object) -> float | None:
        known = self._known.get(name)
        if known is None:
            # Before the first level is reconciled: it may be judged from where the status stands.
            known = _Known(obj["metadata"]["uid"], self._kind.stream(obj))
            await self._adopt(known, obj)
            self._known[name] = known
        snapshot = self._cluster.snapshot(obj)
        try:
            reconcile = self._reconcile_key(obj, snapshot)
            for topic, level in reconcile.levels.items():
                await self._level(known, topic, level, obj, snapshot)
        except Rejected as error:
            await self._refused(known, obj, error)
            return None
        if reconcile.refusal is not None:
            await self._refused(known, obj, reconcile.refusal)
        elif known.refusal:
            await self._cluster.accept(obj)
            known.refusal = ""
        await self._obey(known, obj, reconcile.requests)
        return reconcile.again or None

    def _reconcile_key(self, obj: Object, snapshot: Snapshot) -> ObservedObject:
        if "deletionTimestamp" in obj["metadata"]:
            return ObservedObject({_WHOLE: Level(self._kind.delete(obj))})
        made = self._kind.observe(obj, snapshot)
        return made if isinstance(made, ObservedObject) else ObservedObject({_WHOLE: Level(made)})

    async def _level(
        self, known: _Known, topic: str, level: Level, obj: Object, snapshot: Snapshot
    ) -> None:
        essence = _digest(level.command if level.essence is None else level.essence)
        if known.levels.get(topic) == essence:
            return
        id_ = _id(obj, snapshot.versions, _digest(level.command))
        await self._observe(known.stream, level.command, id_)
        known.levels[topic] = essence

    async def _obey(self, known: _Known, obj: Object, requests: Mapping[str, Request]) -> None:
        """What is asked once is done once: by its id in the store, by the status without one."""
        done, refused = {}, []
        for verb, request in requests.items():
            if known.answered.get(verb) == request.value:
                continue
            id_ = messages.command_id(f"request {known.uid} {verb} {_digest(request.value)}")
            try:
                await self._engine.submit(known.stream, request.command, id_, queue=self._queue)
            except Rejected as error:
                refused.append(f"{verb} refused: {error.message}; {error.hint}")
            done[verb] = request.value
        if done:
            await self._cluster.answer(obj, done, refused)
            known.answered.update(done)

    async def _adopt(self, known: _Known, obj: Object) -> None:
        try:
            command = self._kind.adopt(obj)
            if command is not None:
                id_ = messages.command_id(f"adopt {known.uid} {_digest(command)}")
                await self._observe(known.stream, command, id_)
        except Rejected as error:
            # A status that is not to be believed is as good as none: the levels tell the rest.
            _log.warning("kubernetes.adopt.refused", stream=known.stream, error=error.message)
            self._cluster.warn(obj, NOT_ADOPTED, error)

    async def _gone(self, stream: messages.StreamName) -> None:
        place = place_of(stream)
        assert place is not None
        id_ = messages.command_id(f"gone {place.uid}")
        try:
            await self._observe(stream, self._kind.delete(None), id_)
        except Rejected as error:
            _log.warning("kubernetes.gone.refused", stream=stream, error=error.message)

    async def _observe(
        self, stream: messages.StreamName, command: object, id_: messages.CommandId
    ) -> None:
        await self._engine.observe(stream, command, id_, queue=self._queue)

    async def _refused(self, known: _Known, obj: Object, error: Rejected) -> None:
        # Told once per reason: the same refusal of the next version is no news.
        level = "refused " + _digest(error.message)
        if level == known.refusal:
            return
        _log.warning("kubernetes.refused", stream=known.stream, error=error.message)
        await self._cluster.refuse(obj, error)
        known.refusal = level


def round_of(status: Mapping[str, Any] | None) -> int:
    """The round that a status was published in, 0 for none."""
    found = (status or {}).get("round")
    return found if isinstance(found, int) else 0


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:32]


def _id(obj: Object, children: Sequence[int], level: str) -> messages.CommandId:
    """The same for the same versions: a restart tells nothing twice.

    From A to B and back to A are three levels, for every write makes a version. The level is
    part of it too, because another release may read more out of the same versions.
    """
    versions = (obj["metadata"].get("resourceVersion", ""), *children)
    return messages.command_id(f"{obj['metadata']['uid']} {_digest(versions)} {level}")
