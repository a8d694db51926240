"""Standard error that never holds a server up: lines wait in memory, one thread writes them.

    log line, click.echo, traceback ──► bounded queue ──► thread ──► file descriptor 2

A pipe that nobody reads, a full disk or a closed terminal would else raise into the work or
block the event loop for ever. What finds no room is dropped and counted, and the count is
written as soon as something is taken again.
"""

import atexit
import collections
import io
import os
import select
import sys
import threading
import time

MOST_BYTES = 1024 * 1024
_PAUSE_SECONDS = 1.0
_LAST_SECONDS = 1.0


class QueuedStderr(io.TextIOBase):
    """A text stream whose `write` neither blocks nor raises."""

    def __init__(self, descriptor: int, *, terminal: bool) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._terminal = terminal
        # Reentrant by default: a finaliser may write while its own thread holds the lock.
        self._changed = threading.Condition()
        self._waiting: collections.deque[bytes] = collections.deque()
        self._bytes = 0
        self._dropped = 0
        self._writing = False
        thread = threading.Thread(target=self._run, name="fairlead-stderr", daemon=True)
        thread.start()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only here, as in every text stream
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]  # read-only here, as in every text stream
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str, /) -> int:
        data = text.encode(self.encoding, self.errors)
        with self._changed:
            if self._bytes + len(data) > MOST_BYTES:
                self._dropped += 1
            else:
                self._waiting.append(data)
                self._bytes += len(data)
                self._changed.notify_all()
        return len(text)

    def drain(self, seconds: float) -> bool:
        """Wait until everything is written, but not for longer than this."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._writing, timeout=seconds
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
                self._bytes -= len(data)
                self._writing = True
            took = self._put(data) and self._confess()
            with self._changed:
                self._dropped += not took
                self._writing = False
                self._changed.notify_all()
            if not took:
                # A full disk stays full for a while; trying each line would only burn time.
                time.sleep(_PAUSE_SECONDS)

    def _confess(self) -> bool:
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        if not dropped:
            return True
        if self._put(f"fairlead: log lines dropped, standard error was full: {dropped}\n".encode()):
            return True
        with self._changed:
            self._dropped += dropped
        return False

    def _put(self, data: bytes) -> bool:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # Somebody made the pipe non-blocking, for all who share it.
                select.select([], [self._descriptor], [], None)
            except OSError:
                return False
        return True


def queue() -> None:
    """From now on, this process' standard error waits for nobody."""
    if isinstance(sys.stderr, QueuedStderr):
        return
    try:
        made = QueuedStderr(sys.stderr.fileno(), terminal=sys.stderr.isatty())
    except (AttributeError, OSError, ValueError):
        # None at all, or no file behind it, such as under a test: then it cannot fill either.
        return
    sys.stderr = made
    atexit.register(made.drain, _LAST_SECONDS)
