"""Whose turn it is to write to a SQLite file, among the sessions of one process.

SQLite hands its lock to whoever asks in the right moment. A writer with a backlog asks again
microseconds after each commit, so the renewal of a lease, which must wait for Python's own lock
between two of its looks, may look in vain until the lease lapses. Here it waits in line.
"""

import collections
import contextlib
import threading
from collections.abc import Iterator


class WriteQueue:
    """A lock that is handed on in the order of asking."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: collections.deque[threading.Event] = collections.deque()

    @contextlib.contextmanager
    def turn(self, seconds: float) -> Iterator[None]:
        """Ours, or nobody's within that time: then SQLite's own lock decides, as it always does."""
        ours = self._enter(seconds)
        try:
            yield
        finally:
            if ours:
                self._leave()

    def _enter(self, seconds: float) -> bool:
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            called = threading.Event()
            self._waiting.append(called)
        if called.wait(seconds):
            return True
        with self._guard:
            if called.is_set():
                # Handed over in the moment of giving up.
                return True
            self._waiting.remove(called)
            return False

    def _leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
