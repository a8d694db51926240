"""Reading what is kept: streams, events, effects; every view of the house looks here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from fairlead import errors
from fairlead.engine import clock, messages
from fairlead.engine.store import protocol

_DIGITS = 19


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

    @property
    def id(self) -> str:
        return f"{self.key.stream}.{self.key.seq}.{self.key.n}"


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """Which streams a list shows."""

    machine: str | None = None
    ended: bool | None = None
    before: int | None = None
    limit: int = 100


def stream(session: protocol.Session, name: messages.StreamName) -> StreamView:
    rows = session.rows("get_stream", name=name)
    if not rows:
        raise errors.NotFound(f"no such stream: {name}", hint="list them with fairlead get")
    return _stream(rows[0])


def streams(session: protocol.Session, which: StreamFilter) -> list[StreamView]:
    rows = session.rows(
        "list_streams",
        machine=which.machine,
        ended=which.ended,
        before=which.before,
        limit=which.limit,
    )
    return [_stream(row) for row in rows]


def events(
    session: protocol.Session, name: messages.StreamName, after: int = 0, limit: int = 1000
) -> list[EventView]:
    rows = session.rows("stream_events", name=name, after=after, limit=limit)
    return [_event(row) for row in rows]


def feed(session: protocol.Session, after: Place, limit: int = 500) -> list[EventView]:
    """Events of all streams in the order of their commits; none is ever skipped."""
    rows = session.rows("feed", tx=after.tx, position=after.position, limit=limit)
    return [_event(row) for row in rows]


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
) -> list[EffectView]:
    """Those that are not settled, in the order of their keys, from `after` on."""
    place = {"stream": after.stream, "seq": after.seq, "n": after.n}
    rows = session.rows("list_effects", dead=dead, name=name, **place, limit=limit)
    return [_effect(row) for row in rows]


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
    number, name, machine, version, state, _, data, created, updated, ended = row
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
    )


def _event(row: tuple[Any, ...]) -> EventView:
    name, seq, type_, version, data, cause, at, position, tx = row
    return EventView(
        name,
        seq,
        type_,
        version,
        plain(data),
        cause,
        clock.from_millis(at),
        Place(tx, position),
    )


def _effect(row: tuple[Any, ...]) -> EffectView:
    name, number, seq, n, type_, _, data, attempts, due, owner, dead, error = row
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
    )


def plain(data: str) -> Any:
    """Stored JSON as plain data; a damaged row is shown as what it is, not hidden."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return {"unreadable": data[:200]}
