"""Keep the logs of programs within bounds while they write.

A program writes to its file itself, so that nothing stands between it and its log when
the control plane is away. The file cannot be renamed under the writer; it is copied and
emptied instead. The writer appends, so it goes on at the new start. What it writes between
the copy's last read and the emptying is lost: lines in a moment, never a program.
"""

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 16
_LAST_BYTES = 2000


@dataclass(frozen=True, slots=True)
class LogBounds:
    """How large one log file may grow, and how many older ones are kept."""

    max_bytes: int = 10_000_000
    kept: int = 3
    # Logs of so many programs stay after their stop, for a person who asks why.
    stopped: int = 20
    poll_seconds: float = 1.0


def rotate(log: Path, bounds: LogBounds) -> bool:
    """Move the log aside when it is too large; whether it was."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return False
    if size <= bounds.max_bytes:
        return False
    for number in range(bounds.kept - 1, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            numbered(log, number).replace(numbered(log, number + 1))
    if bounds.kept:
        _copy_end(log, numbered(log, 1), bounds.max_bytes)
    os.truncate(log, 0)
    return True


def numbered(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def last_words(log: Path) -> str:
    """The end of a log, for a person who asks why a program ended."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
            return file.read().decode(errors="replace").strip()
    except FileNotFoundError:
        return ""


def prune(folder: Path, names: Collection[str], bounds: LogBounds) -> None:
    """Remove the logs of programs that were stopped longest ago, but for a few."""
    old = [log for log in folder.glob("*.log") if log.stem not in names]
    old.sort(key=lambda log: log.stat().st_mtime, reverse=True)
    for log in old[bounds.stopped :]:
        for path in (log, *(numbered(log, number) for number in range(1, bounds.kept + 1))):
            path.unlink(missing_ok=True)


def _copy_end(source: Path, target: Path, most: int) -> None:
    with source.open("rb") as read, target.open("wb") as write:
        os.fchmod(write.fileno(), 0o600)
        read.seek(max(0, os.fstat(read.fileno()).st_size - most))
        while chunk := read.read(_CHUNK):
            write.write(chunk)
