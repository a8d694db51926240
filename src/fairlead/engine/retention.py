"""Old streams leave the store: into a file first, then out of the tables.

The file is JSON lines, one stream after another, written whole and synced under its final
name before anything is deleted; a crash in between leaves both, and the next run only
deletes what its own file holds.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from fairlead import errors
from fairlead.engine import clock
from fairlead.engine.store import protocol

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Archived:
    """What one run moved out."""

    streams: int
    events: int
    file: Path | None


def archive(session: protocol.Session, before: datetime, file: Path) -> Archived:
    """Export streams that ended before a time, then delete them."""
    partial = file.with_name(file.name + ".partial")
    if file.exists():
        raise errors.Conflict(f"the archive exists: {file}", hint="name a new file")
    with partial.open("wb") as out:
        exported = [
            (number, version, count)
            for number, version, count in _export(session, clock.to_millis(before), out)
        ]
        out.flush()
        os.fsync(out.fileno())
    if not exported:
        partial.unlink()
        return Archived(0, 0, None)
    partial.rename(file)
    _sync_folder(file.parent)
    gone = [count for number, version, count in exported if _delete(session, number, version)]
    return Archived(len(gone), sum(gone), file)


def _export(
    session: protocol.Session, before: clock.Millis, out: BinaryIO
) -> Iterator[tuple[int, int, int]]:
    after = 0
    while page := session.rows("ended_streams", before=before, after=after, limit=_PAGE):
        for number, name in page:
            after = number
            row = session.rows("get_stream", name=name)
            if row:
                count = _write(session, row[0], out)
                yield number, row[0][3], count


def _write(session: protocol.Session, row: tuple[Any, ...], out: BinaryIO) -> int:
    number, name, machine, version, state, state_version, data, created, _, ended = row
    head = {
        "stream": name,
        "number": number,
        "machine": machine,
        "version": version,
        "state": {"type": state, "version": state_version, "data": msgspec.Raw(data.encode())},
        "created_at": created,
        "ended_at": ended,
    }
    out.write(msgspec.json.encode(head) + b"\n")
    events = session.rows("archived_events", stream=number)
    for seq, type_, version_, event, cause, at in events:
        line = {
            "seq": seq,
            "type": type_,
            "version": version_,
            "data": msgspec.Raw(event.encode()),
            "cause": cause,
            "at": at,
        }
        out.write(msgspec.json.encode(line) + b"\n")
    return len(events)


def _delete(session: protocol.Session, number: int, version: int) -> bool:
    """Only a stream that has not moved since it was written down."""
    try:
        session.script(
            [
                ("delete_stream", {"stream": number, "version": version}),
                ("delete_events", {"stream": number}),
                ("delete_commands", {"stream": number}),
            ],
            first_must_hit=True,
        )
    except protocol.Lost:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
