"""Kubernetes Events: what happened to an object, for those who run `kubectl describe`.

`Journal` is the pure core: it turns the same thing said often into one Event with a count, and
keeps one object from flooding the API server. `Recorder` sends in the background: telling
never delays or fails the work it tells of.
"""

import asyncio
import dataclasses
import hashlib
from collections import OrderedDict, deque
from datetime import datetime
from typing import Any, Literal

import structlog

from fairlead.errors import FairleadError, NotFound
from fairlead.kubernetes import objects
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.client import limits
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.objects import Key, Object, Resource

log = structlog.get_logger(__name__)

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
Kind = Literal["Normal", "Warning"]

_LONGEST_NOTE = 1024
_SERIES_SECONDS = 360.0
# A series is told at most so often; the count in between is not lost.
_COUNT_SECONDS = 30.0
# One object may say 25 things at once and then one in 30 seconds.
_BURST = 25
_RATE = 1 / 30
_REMEMBERED = 4096
_NAMED = ("namespace", "name", "uid", "resourceVersion")


@dataclasses.dataclass(frozen=True, slots=True)
class Occurrence:
    """One thing that happened to an object."""

    regarding: Object
    reason: str
    note: str
    kind: Kind = "Normal"
    action: str = "Reconcile"
    topic: str = ""
    """Where one reason tells of several things, which of them."""

    @property
    def identity(self) -> str:
        """Equal for things that are the same but for their wording."""
        uid = objects.uid_of(self.regarding)
        return f"{uid}|{self.kind}|{self.reason}|{self.action}|{self.topic}"


@dataclasses.dataclass(frozen=True, slots=True)
class Create:
    """Tell it as a new Event of this name."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Count:
    """Tell that it has now happened so many times."""

    name: str
    count: int


@dataclasses.dataclass(slots=True)
class _Series:
    name: str
    last: float
    told: float
    count: int = 1


class Journal:
    """Decides what is told anew, what is counted, and what is too much."""

    def __init__(self) -> None:
        self._series: OrderedDict[str, _Series] = OrderedDict()
        self._budgets: OrderedDict[str, limits.Bucket] = OrderedDict()

    def note(self, occurrence: Occurrence, name: str, now: float) -> Create | Count | None:
        """What to send for this; `name` is taken where a new Event begins."""
        identity = occurrence.identity
        known = self._series.get(identity)
        if known is not None and now - known.last <= _SERIES_SECONDS:
            known.count += 1
            known.last = now
            self._series.move_to_end(identity)
            if now - known.told < _COUNT_SECONDS:
                return None
            known.told = now
            return Count(known.name, known.count)
        if not self._may_speak(objects.uid_of(occurrence.regarding), now):
            return None
        self._series[identity] = _Series(name, last=now, told=now)
        _forget_oldest(self._series)
        return Create(name)

    def lost(self, occurrence: Occurrence) -> None:
        """The Event is not on the server any more: the next one begins anew."""
        self._series.pop(occurrence.identity, None)

    def _may_speak(self, uid: str, now: float) -> bool:
        budget = self._budgets.setdefault(uid, limits.Bucket(_RATE, _BURST, now))
        self._budgets.move_to_end(uid)
        _forget_oldest(self._budgets)
        return budget.try_take(now)


class Recorder:
    """Sends what a journal lets through."""

    def __init__(
        self, client: Client, instance: str, clock: clocks.Clock | None = None, *, room: int = 1000
    ) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock or clocks.Clock()
        self._journal = Journal()
        self._waiting: deque[tuple[Occurrence, datetime]] = deque(maxlen=room)
        self._wake = asyncio.Event()

    def record(self, occurrence: Occurrence) -> None:
        """Take note and return at once; when there is no room, the oldest is dropped."""
        if len(self._waiting) == self._waiting.maxlen:
            log.warning("kubernetes.events.dropped", reason=self._waiting[0][0].reason)
        # Only what an Event names: a thousand objects that wait here whole would weigh too much.
        short = dataclasses.replace(occurrence, regarding=_reference(occurrence.regarding))
        self._waiting.append((short, self._clock.now()))
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            self._wake.clear()
            await self.flush()
            await self._wake.wait()

    async def flush(self) -> None:
        """Send all that waits now."""
        while self._waiting:
            occurrence, when = self._waiting.popleft()
            try:
                await self._send(occurrence, when)
            except FairleadError as error:
                log.warning("kubernetes.events.failed", reason=occurrence.reason, error=str(error))

    async def _send(self, occurrence: Occurrence, when: datetime) -> None:
        match self._journal.note(occurrence, _name(occurrence, when), self._clock.monotonic()):
            case Create(name):
                await self._client.create(EVENTS, self._event(occurrence, name, when))
            case Count(name, count):
                key = Key(_namespace(occurrence.regarding), name)
                series = {"count": count, "lastObservedTime": clocks.format_micro_time(when)}
                try:
                    await self._client.patch(EVENTS, key, {"series": series})
                except NotFound:
                    # Events live for an hour; one that is gone is told anew.
                    self._journal.lost(occurrence)
                    await self._send(occurrence, when)
            case None:
                pass

    def _event(self, occurrence: Occurrence, name: str, when: datetime) -> Object:
        regarding = occurrence.regarding
        meta = objects.metadata(regarding)
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": _namespace(regarding), "name": name},
            "eventTime": clocks.format_micro_time(when),
            "reportingController": f"fairlead.dev/{self._client.manager}",
            "reportingInstance": self._instance,
            "action": occurrence.action,
            "reason": occurrence.reason,
            "type": occurrence.kind,
            "note": occurrence.note[:_LONGEST_NOTE],
            "regarding": {
                "apiVersion": regarding.get("apiVersion", ""),
                "kind": regarding.get("kind", ""),
                "namespace": meta.get("namespace", ""),
                "name": meta.get("name", ""),
                "uid": meta.get("uid", ""),
                "resourceVersion": meta.get("resourceVersion", ""),
            },
        }


def _reference(regarding: Object) -> Object:
    meta = objects.metadata(regarding)
    named = {key: meta[key] for key in _NAMED if key in meta}
    head: Object = {key: regarding[key] for key in ("apiVersion", "kind") if key in regarding}
    return {**head, "metadata": named}


def _namespace(regarding: Object) -> str:
    # Events of cluster-scoped objects go where kubectl looks for them.
    return objects.key_of(regarding).namespace or "default"


def _name(occurrence: Occurrence, when: datetime) -> str:
    """Like client-go's: the object's name and the time; the identity keeps two apart."""
    seen = hashlib.sha256(f"{occurrence.identity}{when.timestamp()}".encode()).hexdigest()[:16]
    return f"{objects.key_of(occurrence.regarding).name[:230]}.{seen}"


def _forget_oldest(table: OrderedDict[str, Any]) -> None:
    while len(table) > _REMEMBERED:
        table.popitem(last=False)
