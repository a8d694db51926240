"""Hears what other processes leave: PostgreSQL tells, SQLite is polled."""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from fairlead import errors
from fairlead.engine.store import protocol

_PATIENCE = 1.0


class NoticeListener(threading.Thread):
    """Calls back on the event loop whenever another process left work."""

    def __init__(self, store: protocol.Store, channel: str, heard: Callable[[], None]) -> None:
        super().__init__(name="fairlead-listener", daemon=True)
        self._store = store
        self._channel = channel
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()

    def stop(self) -> None:
        self._over.set()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                self._listen()
            except errors.Unavailable:
                # Polling covers the gap; try again when the store is back.
                self._over.wait(_PATIENCE)

    def _listen(self) -> None:
        listener = self._store.listen(self._channel)
        if listener is None:
            self._over.set()
            return
        try:
            self._call_back()
            while not self._over.is_set():
                if listener.wait(_PATIENCE):
                    self._call_back()
        finally:
            listener.close()

    def _call_back(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear
            self._loop.call_soon_threadsafe(self._heard)
