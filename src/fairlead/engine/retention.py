"""Old streams and old events leave the store: into a file first, then out of the tables.

The file is JSON lines, one stream after another, written whole and synced under its final
name before anything is deleted; a crash in between leaves both, and the next run only
deletes what its own file holds.

Of a stream that lives on, events leave and its state stays: the row is what the engine decides
from. The state after the last event that left is kept beside it as a snapshot, so that
projections can be built again from there.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import batch, clock, codec, projections
from fairlead.engine.store import protocol

_PAGE = 100
_EVENTS = 500
_PAGE_BYTES = 4 * 1024 * 1024
_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Snapshots are held until the file is synced; what would not fit is left to the next run."""

_log = structlog.get_logger(__name__)
T = TypeVar("T")
Pause = Callable[[], None]
"""Called between two steps that write, and two pages that are read; may raise to end the run."""


def _go_on() -> None: ...


@dataclass(frozen=True, slots=True)
class Archived:
    """What one run moved out."""

    streams: int
    events: int
    file: Path | None


@dataclass(frozen=True, slots=True)
class Age:
    """What is old enough to leave a stream that lives on."""

    events_before: datetime
    commands_before: datetime
    """Up to here a command that is sent again is taken as new; its id is forgotten."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What trimming must know: how states come about, and who reads events."""

    registry: batch.MachineRegistry
    views: Sequence[projections.Projection]

    def check(self) -> None:
        """Refuse where events that left would be missed for ever."""
        needing = [view.name for view in self.views if view.restore is None]
        if needing:
            raise errors.Rejected(
                f"a projection needs every event: {', '.join(needing)}",
                hint="give it a restore function, or archive ended streams only",
            )


@dataclass(frozen=True, slots=True)
class _Trim:
    """What left one stream: the events from `seen` on up to before `kept_from`."""

    stream: int
    seen: int
    kept_from: int
    state: codec.Encoded
    at: clock.Millis


def archive(
    session: protocol.Session,
    before: datetime,
    file: Path,
    pause: Pause = _go_on,
) -> Archived:
    """Export streams that ended before a time, then delete them."""
    exported = _written(file, lambda out: _export(session, clock.to_millis(before), out, pause))
    gone = [count for each in exported if (count := _delete(session, *each, pause)) is not None]
    # No stream takes these ids along, so they go with the streams of their age.
    session.rows("delete_unborn_commands", before=clock.to_millis(before))
    return Archived(len(gone), sum(gone), file if exported else None)


def trim(
    session: protocol.Session,
    knows: Knowledge,
    age: Age,
    file: Path,
    pause: Pause = _go_on,
) -> Archived:
    """Export old events of streams that live on, then delete them and old command ids."""
    knows.check()
    before = clock.to_millis(age.events_before)
    exported = _written(file, lambda out: _export_old(session, knows, before, out, pause))
    names = [view.name for view in knows.views]
    gone = [each for each in exported if _drop(session, each, names, pause)]
    forgotten = clock.to_millis(age.commands_before)
    for number, _ in _living(session, forgotten, pause):
        pause()
        session.rows("forget_commands", stream=number, before=forgotten)
    session.rows("delete_unborn_commands", before=forgotten)
    events = sum(each.kept_from - each.seen for each in gone)
    return Archived(len(gone), events, file if exported else None)


def _written(file: Path, export: Callable[[BinaryIO], Iterable[T]]) -> list[T]:
    """What was exported, once all of it is on the disk under its final name."""
    partial = file.with_name(file.name + ".partial")
    if file.exists():
        raise errors.Conflict(f"the archive exists: {file}", hint="name a new file")
    try:
        with partial.open("wb") as out:
            exported = list(export(out))
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        # Half of an archive is none, and a full disk would be filled with one at each turn.
        partial.unlink(missing_ok=True)
        raise
    if not exported:
        partial.unlink()
        return []
    partial.rename(file)
    _sync_folder(file.parent)
    return exported


def _export(
    session: protocol.Session, before: clock.Millis, out: BinaryIO, pause: Pause
) -> Iterator[tuple[int, int, int]]:
    after = 0
    while page := session.rows("ended_streams", before=before, after=after, limit=_PAGE):
        pause()
        for number, name in page:
            after = number
            row = session.rows("get_stream", name=name)
            if row:
                out.write(_head(row[0]))
                lines = [out.write(_line(event)) for event in _events(session, number, 0)]
                yield number, row[0][3], len(lines)


def _export_old(
    session: protocol.Session,
    knows: Knowledge,
    before: clock.Millis,
    out: BinaryIO,
    pause: Pause,
) -> Iterator[_Trim]:
    size = 0
    for _, name in _living(session, before, pause):
        row = session.rows("get_stream", name=name)
        if not row:
            continue
        try:
            trimmed = _export_stream(session, knows, row[0], before, out)
        except Exception as error:
            # One stream that cannot be folded stays whole, and the others go on.
            if _is_outside(error):
                raise
            _log.warning("stream_not_trimmed", stream=name, error=repr(error))
            continue
        if trimmed is not None:
            yield trimmed
            size += len(trimmed.state.data)
        if size > _SNAPSHOT_BYTES:
            return


def _is_outside(error: Exception) -> bool:
    """The store or the disk, which no other stream would fare better with."""
    away = isinstance(error, errors.Unavailable) and not isinstance(error, errors.Newer)
    return away or isinstance(error, OSError)


def _export_stream(
    session: protocol.Session,
    knows: Knowledge,
    row: tuple[Any, ...],
    before: clock.Millis,
    out: BinaryIO,
) -> _Trim | None:
    number, name, kept_from = row[0], row[1], row[-1]
    words = knows.registry.of(name)
    kept = session.rows("get_snapshot", stream=number)
    state = (
        words.codec.states.decode(codec.Encoded(*kept[0][1:4])) if kept else words.machine.initial
    )
    last: tuple[Any, ...] | None = None
    for event in _events(session, number, kept_from - 1):
        if event[-1] >= before:
            break
        if last is None:
            out.write(_head(row))
        out.write(_line(event))
        state = words.machine.evolve(state, words.codec.events.decode(codec.Encoded(*event[1:4])))
        last = event
    if last is None:
        return None
    encoded = words.codec.states.encode(state)
    out.write(msgspec.json.encode({"seq": last[0], "snapshot": _state(*_parts(encoded))}) + b"\n")
    return _Trim(number, kept_from, last[0] + 1, encoded, last[-1])


def _living(
    session: protocol.Session, before: clock.Millis, pause: Pause
) -> Iterator[tuple[int, str]]:
    after = 0
    while page := session.rows("living_streams", before=before, after=after, limit=_PAGE):
        pause()
        for number, name in page:
            after = number
            yield number, name


def _events(session: protocol.Session, stream: int, after: int) -> Iterator[tuple[Any, ...]]:
    more = True
    while more:
        page, more = session.page(
            "archived_events", _EVENTS, _PAGE_BYTES, stream=stream, after=after
        )
        yield from page
        after = page[-1][0] if page else after


def _head(row: tuple[Any, ...]) -> bytes:
    number, name, machine, version, *state, created, _, ended, queue, kept_from = row
    head = {
        "stream": name,
        "number": number,
        "machine": machine,
        "queue": queue,
        "version": version,
        "state": _state(*state),
        "created_at": created,
        "ended_at": ended,
        "first": kept_from,
    }
    return msgspec.json.encode(head) + b"\n"


def _line(event: tuple[Any, ...]) -> bytes:
    seq, type_, version, data, cause, at = event
    line = {
        "seq": seq,
        "type": type_,
        "version": version,
        "data": msgspec.Raw(data.encode()),
        "cause": cause,
        "at": at,
    }
    return msgspec.json.encode(line) + b"\n"


def _parts(encoded: codec.Encoded) -> tuple[str, int, str]:
    return encoded.type, encoded.version, encoded.data


def _state(type_: str, version: int, data: str) -> dict[str, Any]:
    return {"type": type_, "version": version, "data": msgspec.Raw(data.encode())}


def _delete(
    session: protocol.Session, number: int, version: int, count: int, pause: Pause
) -> int | None:
    """Only a stream that has not moved since it was written down; how many events it had."""
    pause()
    try:
        session.script(
            [
                ("delete_stream", {"stream": number, "version": version}),
                ("delete_events", {"stream": number}),
                ("delete_commands", {"stream": number}),
                ("delete_snapshot", {"stream": number}),
                ("delete_attributes", {"stream": number}),
            ],
            first_must_hit=True,
        )
    except protocol.Lost:
        return None
    return count


def _drop(session: protocol.Session, gone: _Trim, names: list[str], pause: Pause) -> bool:
    """Mark the events as gone, with the state they led to; then delete them, some at a time.

    Whoever reads sees the mark and not the rows, so a crash between the two shows nothing twice;
    the next run deletes what is left.
    """
    pause()
    cut = {"stream": gone.stream, "kept_from": gone.kept_from}
    state_type, state_version, state = _parts(gone.state)
    kept = {"state_type": state_type, "state_version": state_version, "state": state}
    _, hit, _ = session.script(
        [
            # Before the bookmarks are read: a projection that begins at this moment would else
            # find neither the events nor the snapshot.
            ("hold_projections", {}),
            ("trim_stream", {**cut, "seen": gone.seen, "names": names}),
            ("put_snapshot", {**cut, **kept, "at": gone.at}),
        ]
    )
    if not hit:
        return False
    for before in range(gone.seen + _EVENTS, gone.kept_from + _EVENTS, _EVENTS):
        pause()
        session.rows("delete_trimmed", stream=gone.stream, before=before)
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
