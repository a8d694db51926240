"""Reading what is kept: streams, events, effects; every view of the house looks here."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from fairlead import errors
from fairlead.engine import clock, codec, filters, messages, search
from fairlead.engine.store import protocol

_DIGITS = 19
_FEW = 20
MOST_BYTES = 4 * 1024 * 1024
"""A page ends with what makes it larger than this, however few items that are."""

T = TypeVar("T")
GRACE = timedelta(seconds=30)
"""Work that nobody serves is no news for so long: a worker may be on its way back."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream as people see it."""

    number: int
    name: messages.StreamName
    machine: str
    version: int
    state: str
    data: Any
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    queue: str = ""
    kept_from: int = 1
    """The first event that is still in the store; those before it are in an archive."""

    @property
    def archived(self) -> str:
        """What a reader of its events should hear; empty where all of them are here."""
        if self.kept_from == 1:
            return ""
        return f"events before {self.kept_from} are in the archive"


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """A stream's state after the last event that left the store."""

    number: int
    stream: messages.StreamName
    seq: int
    state: codec.Encoded
    at: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the feed of all events; the feed goes on after it."""

    tx: int = 0
    position: int = 0

    def __str__(self) -> str:
        return f"{self.tx}.{self.position}"


@dataclass(frozen=True, slots=True)
class EventView:
    """One event with where and why it happened."""

    stream: messages.StreamName
    seq: int
    type: str
    version: int
    data: Any
    cause: str
    at: datetime
    place: Place

    def told(self) -> dict[str, Any]:
        """As commands and the API tell of it."""
        return {
            "stream": self.stream,
            "seq": self.seq,
            "type": self.type,
            "version": self.version,
            "data": self.data,
            "cause": self.cause,
            "at": self.at,
            "place": str(self.place),
        }


BEGINNING = messages.EffectKey(0, 0, 0)
"""Before every effect: streams are counted from 1."""


@dataclass(frozen=True, slots=True)
class EffectView:
    """An effect that has not been settled."""

    stream: messages.StreamName
    key: messages.EffectKey
    type: str
    data: Any
    attempts: int
    due_at: datetime
    held: bool
    dead_at: datetime | None
    error: str | None
    queue: str = ""

    @property
    def id(self) -> str:
        return f"{self.key.stream}.{self.key.seq}.{self.key.n}"

    def told(self) -> dict[str, Any]:
        """As commands and the API tell of it."""
        return {
            "id": self.id,
            "stream": self.stream,
            "queue": self.queue,
            "type": self.type,
            "data": self.data,
            "attempts": self.attempts,
            "due_at": self.due_at,
            "held": self.held,
            "dead_at": self.dead_at,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class TimerView:
    """A timer that has not fired."""

    stream: messages.StreamName
    name: str
    command: str
    attempts: int
    due_at: datetime
    held: bool
    dead_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class QueueView:
    """What waits in a queue, and who is there to do it."""

    name: str
    waiting: int
    oldest: datetime | None
    """When the first of them was due."""

    workers: tuple[str, ...]
    unserved: tuple[str, ...] = ()
    """Effects, as MACHINE TYPE, that wait and that no living worker performs."""

    unserved_since: datetime | None = None

    def problem(self, now: datetime) -> str | None:
        """What a person should hear: work that nobody has served for a while."""
        if self.unserved_since is None or now - self.unserved_since < GRACE:
            return None
        since = f"since {self.unserved_since:%Y-%m-%d %H:%M:%S} UTC"
        where = self.name or "streams without a queue"
        if not self.workers:
            return f"no worker serves {where} {since}"
        return f"no worker of {where} performs {', '.join(self.unserved)} {since}"


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """Which streams a list shows."""

    machine: str | None = None
    ended: bool | None = None
    before: int | None = None
    limit: int = 100
    scope: str = ""
    """Only those whose key begins with this part."""

    where: filters.Where | None = None
    """Only those of its machine that have these attributes."""


Decode = Callable[[str], Any]
"""What becomes of the JSON that a row keeps: `plain` or `raw`."""


def plain(data: str) -> Any:
    """Stored JSON as plain data; a damaged row is shown as what it is, not hidden."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return {"unreadable": data[:200]}


def raw(data: str) -> msgspec.Raw:
    """The same for whoever writes it out again: nothing is made of it but checked text."""
    try:
        return msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        return msgspec.Raw(msgspec.json.encode({"unreadable": data[:200]}))


class Page(list[T], Generic[T]):
    """Some items of a longer list; fewer than were asked for do not mean that it ends here."""

    def __init__(self, items: Iterable[T], *, more: bool) -> None:
        super().__init__(items)
        self.more = more
        """Whether something follows the last of them."""


def stream(session: protocol.Session, name: messages.StreamName) -> StreamView:
    found = find(session, name)
    if found is None:
        raise errors.NotFound(f"no such stream: {name}", hint="list them with fairlead get")
    return found


def find(session: protocol.Session, name: messages.StreamName) -> StreamView | None:
    """One stream, None where there is no such."""
    rows = session.rows("get_stream", name=name)
    return _stream(rows[0]) if rows else None


def streams(session: protocol.Session, which: StreamFilter) -> Page[StreamView]:
    values = {"ended": which.ended, "before": which.before, "scope": which.scope}
    where = which.where
    if where is not None and where.clauses:
        rows, more = search.page(session, where, search.Bounds(which.limit, MOST_BYTES), values)
    else:
        machine = which.machine if where is None else where.machine
        rows, more = session.page(
            "list_streams", which.limit, MOST_BYTES, machine=machine, **values
        )
    return Page((_stream(row) for row in rows), more=more)


def snapshots(session: protocol.Session, after: int, limit: int = 500) -> Page[SnapshotView]:
    """Those of streams with higher numbers than this."""
    rows, more = session.page("list_snapshots", limit, MOST_BYTES, after=after)
    found = (
        SnapshotView(number, name, seq, codec.Encoded(*state), clock.from_millis(at))
        for number, name, seq, *state, at in rows
    )
    return Page(found, more=more)


def snapshot(session: protocol.Session, view: StreamView) -> SnapshotView | None:
    """What led to the first event that is kept; None where nothing left."""
    rows = session.rows("get_snapshot", stream=view.number)
    if not rows:
        return None
    ((seq, *state, at),) = rows
    encoded = codec.Encoded(*state)
    return SnapshotView(view.number, view.name, seq, encoded, clock.from_millis(at))


def events(
    session: protocol.Session,
    name: messages.StreamName,
    after: int = 0,
    limit: int = 1000,
    decode: Decode = plain,
) -> Page[EventView]:
    rows, more = session.page("stream_events", limit, MOST_BYTES, name=name, after=after)
    return Page((_event(row, decode) for row in rows), more=more)


def feed(
    session: protocol.Session,
    after: Place,
    limit: int = 500,
    decode: Decode = plain,
    most_bytes: int = MOST_BYTES,
) -> Page[EventView]:
    """Events of all streams in the order of their commits; none is ever skipped."""
    place = {"tx": after.tx, "position": after.position}
    rows, more = session.page("feed", limit, most_bytes, **place)
    return Page((_event(row, decode) for row in rows), more=more)


def feed_end(session: protocol.Session) -> Place:
    rows = session.rows("feed_end")
    return Place(*rows[0]) if rows else Place()


def effects(
    session: protocol.Session,
    *,
    dead: bool | None = None,
    name: messages.StreamName | None = None,
    after: messages.EffectKey = BEGINNING,
    limit: int = 100,
) -> Page[EffectView]:
    """Those that are not settled, in the order of their keys, from `after` on."""
    place = {"stream": after.stream, "seq": after.seq, "n": after.n}
    rows, more = session.page("list_effects", limit, MOST_BYTES, dead=dead, name=name, **place)
    return Page((_effect(row) for row in rows), more=more)


def timers(
    session: protocol.Session, *, dead: bool | None = None, limit: int = 100
) -> list[TimerView]:
    """Those that have not fired, by stream and name."""
    return [_timer(row) for row in session.rows("list_timers", dead=dead, limit=limit)]


def queues(session: protocol.Session, now: datetime) -> list[QueueView]:
    """Every queue in which something waits or that a living worker serves, by name."""
    workers: defaultdict[str, list[str]] = defaultdict(list)
    served: set[tuple[object, ...]] = set()
    for _, worker, _, text in session.rows("live_workers", now=clock.to_millis(now)):
        served.update(tuple(key) for key in plain(text))
        for queue in queues_in(text):
            workers[queue].append(worker)
    waiting: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in session.rows("waiting_effects"):
        waiting[row[0]].append(row)
    return [
        _queue(name, waiting[name], tuple(workers[name]), served)
        for name in sorted({*waiting, *workers})
    ]


def queues_in(serves: str) -> set[str]:
    """The queues in what a worker publishes (`outbox.serves`)."""
    return {key[0] for key in plain(serves)}


def problems(
    session: protocol.Session, now: datetime, among: Collection[str] | None = None
) -> list[str]:
    """Work that nobody serves, a sentence a queue; of these queues only, where they are named."""
    found = [each for each in queues(session, now) if among is None or each.name in among]
    return [told for each in found if (told := each.problem(now))]


def unserved(session: protocol.Session, view: StreamView, now: datetime) -> str:
    """Why nobody performs what this stream asks; empty where somebody does, or it asks nothing."""
    found = effects(session, dead=False, after=messages.EffectKey(view.number, 0, 0), limit=_FEW)
    free = [each for each in found if each.stream == view.name and not each.held]
    # By the effects' own queue: the stream may have been moved since the view of it was read.
    asked = {(each.queue, f"{view.machine} {each.type}") for each in free}
    for queue in queues(session, now) if asked else ():
        lacking = tuple(each for each in queue.unserved if (queue.name, each) in asked)
        if lacking:
            return replace(queue, unserved=lacking).problem(now) or ""
    return ""


def parse_effect_id(text: str) -> messages.EffectKey:
    parts = text.split(".")
    if len(parts) != 3 or not all(map(_is_number, parts)):  # noqa: PLR2004 - stream, seq, n
        raise errors.Rejected(
            f"not an effect id: {text[:80]}", hint="take it from the list: NUMBER.NUMBER.NUMBER"
        )
    return messages.EffectKey(*(int(part) for part in parts))


def parse_place(text: str) -> Place:
    tx, _, position = text.partition(".")
    if not (_is_number(tx) and _is_number(position)):
        raise errors.Rejected(f"not a place in the feed: {text[:80]}", hint="use NUMBER.NUMBER")
    return Place(int(tx), int(position))


def _is_number(text: str) -> bool:
    """Digits that fit into a column; a larger number would fail inside the store's driver."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) < 2**63


def _stream(row: tuple[Any, ...]) -> StreamView:
    number, name, machine, version, state, _, data, created, updated, ended, queue, kept_from = row
    return StreamView(
        number,
        name,
        machine,
        version,
        state,
        plain(data),
        clock.from_millis(created),
        clock.from_millis(updated),
        None if ended is None else clock.from_millis(ended),
        queue,
        kept_from,
    )


def _event(row: tuple[Any, ...], decode: Decode) -> EventView:
    name, seq, type_, version, data, cause, at, position, tx = row
    return EventView(
        name,
        seq,
        type_,
        version,
        decode(data),
        cause,
        clock.from_millis(at),
        Place(tx, position),
    )


def _effect(row: tuple[Any, ...]) -> EffectView:
    name, number, seq, n, type_, _, data, attempts, due, owner, dead, error, queue = row
    return EffectView(
        name,
        messages.EffectKey(number, seq, n),
        type_,
        plain(data),
        attempts,
        clock.from_millis(due),
        owner is not None,
        None if dead is None else clock.from_millis(dead),
        error,
        queue,
    )


def _timer(row: tuple[Any, ...]) -> TimerView:
    stream, name, command, attempts, due, owner, dead, error = row
    return TimerView(
        stream,
        name,
        command,
        attempts,
        clock.from_millis(due),
        owner is not None,
        None if dead is None else clock.from_millis(dead),
        error,
    )


def _queue(
    name: str,
    rows: list[tuple[Any, ...]],
    workers: tuple[str, ...],
    served: set[tuple[object, ...]],
) -> QueueView:
    alone = [row for row in rows if row[:4] not in served]
    return QueueView(
        name,
        sum(row[4] for row in rows),
        min((clock.from_millis(row[5]) for row in rows), default=None),
        workers,
        tuple(f"{machine} {type_}" for _, machine, type_, *_ in alone),
        min((clock.from_millis(row[5]) for row in alone), default=None),
    )
