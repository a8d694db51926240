"""The outside world of the demo: a road that knows every leg it was asked for by its key.

It stands for any system that takes an idempotency key. It keeps its own file, beside the
store and in no transaction with it, so it also remembers what a killed worker asked last.
"""

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

_TABLE = """
CREATE TABLE IF NOT EXISTS legs (
    key TEXT PRIMARY KEY, stream TEXT NOT NULL, leg INTEGER NOT NULL, asked INTEGER NOT NULL
)"""
_ASK = """
INSERT INTO legs VALUES (?, ?, ?, 1) ON CONFLICT (key) DO UPDATE SET asked = asked + 1
RETURNING asked"""
_TALLY = """
SELECT count(*), count(DISTINCT stream || ' ' || leg), coalesce(sum(asked), 0) FROM legs
WHERE stream GLOB ?"""


@dataclass(frozen=True, slots=True)
class Tally:
    """What the road saw of one depot's trips."""

    keys: int
    legs: int
    asked: int

    @property
    def again(self) -> int:
        return self.asked - self.keys


class Road:
    """One connection to the road's own file."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "road.db", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        # It must outlive a killed process, which it does; a power cut is not in this story.
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(_TABLE)

    def ask(self, key: str, stream: str, leg: int) -> bool:
        """Drive a leg, unless this key was seen before; whether it is new."""
        ((asked,),) = self._connection.execute(_ASK, (key, stream, leg)).fetchall()
        return bool(asked == 1)

    def tally(self, depot: str) -> Tally:
        (row,) = self._connection.execute(_TALLY, (f"trip/{depot}-*",)).fetchall()
        return Tally(*row)

    def close(self) -> None:
        self._connection.close()


def tally(folder: Path, depot: str) -> Tally:
    with contextlib.closing(Road(folder)) as road:
        return road.tally(depot)
