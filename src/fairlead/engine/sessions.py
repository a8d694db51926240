"""How the engine comes by its sessions: slower after each loss, and never stuck behind one.

The writer asks `Reopening` for another session when its own was of no use. The keeper of the
lease has a `SessionThread`, whose calls end in time whatever the store does.
"""

import asyncio
import concurrent.futures
import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fairlead import errors
from fairlead.engine.store import protocol

T = TypeVar("T")
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_SERIES = 60.0
"""Losses further apart than this are no series."""


class Reopening:
    """Opens sessions for one thread, after a longer pause each time one was lost in vain.

    A store that lets everybody in and refuses every write would otherwise be connected to a
    hundred times a second.
    """

    def __init__(self, open_: Callable[[], protocol.Session]) -> None:
        self._open = open_
        self._losses = 0
        self._last = 0.0
        self._over = threading.Event()

    def open(self) -> protocol.Session:
        """A session; waits first if the last ones were lost one after the other."""
        self._over.wait(max(0.0, self._last + self._pause() - time.monotonic()))
        try:
            return self._open()
        except errors.Unavailable:
            self.lost()
            raise

    def lost(self) -> None:
        now = time.monotonic()
        self._losses = self._losses + 1 if now - self._last < _SERIES else 1
        self._last = now

    def fine(self) -> None:
        """A write got through: only that shows that the store is well."""
        self._losses = 0

    def stop(self) -> None:
        """Wait no more."""
        self._over.set()

    def _pause(self) -> float:
        # One loss is a connection that broke: the next is taken at once.
        again = self._losses - 1
        if again <= 0:
            return 0.0
        doubled: float = _FIRST_PAUSE * 2 ** min(again, 20)
        return min(doubled, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads rivals


@dataclass(frozen=True, slots=True)
class Unasked:
    """What the thread does of itself while its owner's loop is too busy to ask."""

    work: Callable[[protocol.Session], None]
    after: float
    """Seconds without a call, or since the last time."""

    again: float
    """Seconds after a time that failed."""

    most: int
    """Times in a row; an owner that is silent for longer is as good as gone."""


class SessionThread:
    """One session in a thread of its own, for calls that must end in time.

    A call that overruns is left behind with its thread and session, which end when the store
    lets go of them; the next call gets new ones, and so does what is done unasked.
    """

    def __init__(
        self, open_: Callable[[], protocol.Session], name: str, unasked: Unasked | None = None
    ) -> None:
        self._open = open_
        self._name = name
        self._unasked = unasked
        self._thread: _Thread | None = None

    async def run(self, function: Callable[[protocol.Session], T], seconds: float) -> T:
        thread = self._thread
        if thread is None:
            thread = self._begin()
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()
        thread.inbox.put((function, answer))
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(answer)
        except TimeoutError as error:
            if answer.done() and not answer.cancelled():
                # It came in time, and a busy loop saw it together with the deadline.
                return answer.result()
            # One that is still being opened is waited for by the next call: to begin anew each
            # time would never come to an end where opening takes longer than a call may.
            if not thread.opening:
                self.leave()
                if self._unasked is not None:
                    # Not only at the next call: the loop may be silent until it is too late.
                    self._begin(again=True)
            raise errors.Unavailable(
                f"the store did not answer within {seconds:g} s",
                hint="it is tried again; look for locks that another session holds",
            ) from error

    def _begin(self, *, again: bool = False) -> "_Thread":
        self._thread = _Thread(self._open, self._name, self._unasked, again=again)
        self._thread.start()
        return self._thread

    def leave(self) -> None:
        """Let the thread end by itself, whenever it can."""
        if self._thread is not None:
            self._thread.inbox.put(None)
            self._thread = None


_Call = tuple[Callable[[protocol.Session], Any], concurrent.futures.Future[Any]]


class _Thread(threading.Thread):
    def __init__(
        self,
        open_: Callable[[], protocol.Session],
        name: str,
        unasked: Unasked | None,
        *,
        again: bool,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._again = again
        """Whether what is done unasked is owed already: the last call failed."""

        self.inbox: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self.opening = False
        self._open = open_
        self._unasked = unasked
        self._session: protocol.Session | None = None

    def run(self) -> None:
        while (call := self._next()) is not None:
            self._call(*call)
        self._drop()

    def _next(self) -> "_Call | None":
        if self._unasked is not None:
            pause = self._unasked.again if self._again else self._unasked.after
            self._again = False
            for _ in range(self._unasked.most):
                with contextlib.suppress(queue.Empty):
                    return self.inbox.get(timeout=pause)
                done = self._work_unasked(self._unasked.work)
                pause = self._unasked.after if done else self._unasked.again
        return self.inbox.get()

    def _work_unasked(self, work: Callable[[protocol.Session], None]) -> bool:
        try:
            work(self._session or self._opened())
        except protocol.Lost:
            return False
        except Exception:  # noqa: BLE001 - the next call says what is wrong with the store
            self._drop()
            return False
        return True

    def _call(
        self,
        function: Callable[[protocol.Session], Any],
        answer: concurrent.futures.Future[Any],
    ) -> None:
        try:
            session = self._session or self._opened()
        except BaseException as error:  # noqa: BLE001 - told to whoever asked
            if answer.set_running_or_notify_cancel():
                answer.set_exception(error)
            return
        if not answer.set_running_or_notify_cancel():
            return
        try:
            result = function(session)
        except protocol.Lost as error:
            answer.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - told to whoever asked
            self._drop()
            answer.set_exception(error)
        else:
            answer.set_result(result)

    def _opened(self) -> protocol.Session:
        self.opening = True
        try:
            self._session = self._open()
        finally:
            self.opening = False
        return self._session

    def _drop(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):
                self._session.close()
            self._session = None
