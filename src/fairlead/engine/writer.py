"""One thread, one session, one batch at a time: loads, decides, writes and commits.

A batch is bounded by count and by bytes; what does not fit comes first in the next one. Claims
and the like run between two batches, before the commands that wait. A batch that the store
refuses is tried item by item, so that each is answered for itself.
"""

import collections
import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import batch, clock, messages, sessions
from fairlead.engine.store import protocol

Work = messages.Submission | messages.Hold | protocol.Postponement
"""A command; an effect done without an answer; an effect that failed."""

Outcome = messages.Receipt | Exception | None

MAX_BATCH = 256
MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Of states loaded, and of what is decided from them; a single command may be larger."""

_BLOCKED_SECONDS = 5.0
"""How long a stream that somebody else has locked is not tried again."""

_CAREFUL_TRIES = 12
_log = structlog.get_logger(__name__)


class Item(msgspec.Struct, frozen=True):
    """Work on its way to a commit, and who wants to hear of it."""

    work: Work
    done: Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a batch left behind, told on the event loop."""

    fresh: Sequence[batch.PendingEffect]
    unheld: bool
    """Whether effects were left that this worker could perform."""

    next_timer: clock.Millis | None
    events: int
    seconds: float
    """From taking the batch up to its commit."""


@dataclass(slots=True)
class Hooks:
    """How the rest of the engine takes part in a commit."""

    fence: Callable[[], int | None] = lambda: None
    """Under which fence new effects are held; None leaves them for others."""

    room: Callable[[], Mapping[tuple[str, type], int]] = dict
    """How many new effects may be held here, by queue and type."""

    committed: Callable[[Committed], None] = lambda _: None
    told: Callable[[Sequence[batch.EventRecord]], None] | None = None
    """Hears of every event after its commit, on the writer's thread."""

    troubled: Callable[[], None] = lambda: None
    """A commit may or may not have happened: the connection broke at the wrong moment."""


@dataclass(frozen=True, slots=True)
class WriterJob:
    """Something to run between two batches."""

    run: Callable[[Callable[[], protocol.Session]], None]


class Outlet(Protocol):
    """Where a writer's results go."""

    @property
    def hooks(self) -> Hooks: ...

    @property
    def gather(self) -> float:
        """Seconds that the first of a batch waits for company."""

    def publish(
        self, outcomes: list[tuple[Item, Outcome]], committed: Committed | None
    ) -> None: ...

    def trouble(self) -> None: ...


class Writer(threading.Thread):
    """One thread, one session, one batch at a time."""

    def __init__(
        self,
        outlet: Outlet,
        store: protocol.Store,
        registry: batch.MachineRegistry,
        wall: clock.Clock,
    ) -> None:
        super().__init__(name="fairlead-writer", daemon=True)
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._first: collections.deque[Item | WriterJob] = collections.deque()
        """What goes before commands; each entry has an empty one in the inbox, as a signal."""

        self._left: list[Item] = []
        """What did not fit into the last batch, and comes first in the next."""

        self._ended = False
        self._outlet = outlet
        self._registry = registry
        self._clock = wall
        self._reopening = sessions.Reopening(store.open)
        self._session: protocol.Session | None = None
        self._stale = False
        """Whether the session is of an earlier batch, and has not answered in this one."""

        self._wary = 0
        """Batches still to be locked at once, after races were lost."""

        self._blocked: dict[str, float] = {}
        """Streams that another session has locked, and until when they are not tried."""

    @property
    def depth(self) -> int:
        """How much was taken and has not been looked at."""
        return self._inbox.qsize() + len(self._left)

    def take(self, entry: Item | WriterJob) -> None:
        if isinstance(entry, Item) and isinstance(entry.work, messages.Submission):
            self._inbox.put(entry)
        else:
            self._first.append(entry)
            self._inbox.put(None)

    def end(self) -> None:
        """Settle what was taken until now, then stop."""
        self._first.append(WriterJob(self._end))
        self._inbox.put(None)
        self._reopening.stop()

    def run(self) -> None:
        while not self._ended or self._left or not self._inbox.empty():
            self._turn()
        self._drop_session()

    def _end(self, _: Callable[[], protocol.Session]) -> None:
        self._ended = True

    def _turn(self) -> None:
        items: list[Item] = []
        jobs: list[WriterJob] = []
        self._gather(items, jobs)
        for run_on_writer in jobs:
            self._run(run_on_writer)
        if items:
            self._settle(items)

    def _run(self, run_on_writer: WriterJob) -> None:
        try:
            run_on_writer.run(self._open)
        except errors.Unavailable:
            # A claim may have been kept although its answer was lost: the rows are held
            # under our fence and nobody knows them. Another fence lets them go.
            self._lose_session()
        except (protocol.Lost, errors.FairleadError):
            pass  # undone by the session itself, which is as good as before
        except Exception:  # noqa: BLE001 - told to whoever sent it
            self._drop_session()

    def _gather(self, items: list[Item], jobs: list[WriterJob]) -> None:
        """Everything that has arrived by now."""
        items += self._left
        self._left = []
        entry = None if items or self._ended else self._inbox.get()
        if self._outlet.gather and not self._ended:
            time.sleep(self._outlet.gather)
        while True:
            if entry is not None:
                items.append(entry)
            while self._first:
                first = self._first.popleft()
                (items if isinstance(first, Item) else jobs).append(first)  # type: ignore[arg-type]  # one list for each kind
            if len(items) >= MAX_BATCH:
                return
            try:
                entry = self._inbox.get_nowait()
            except queue.Empty:
                return

    def _settle(self, items: list[Item]) -> None:
        items = self._without_blocked(items)
        if not items:
            return
        try:
            outcomes, committed = self._persist(items)
        except errors.Unavailable as error:
            self._lose_session()
            outcomes, committed = [(item, error) for item in items], None
        except Exception as error:  # noqa: BLE001 - one bad item must not take the others along
            if len(items) > 1:
                self._settle_each(items)
                return
            outcomes, committed = [(items[0], self._failed(items[0], error))], None
        if not outcomes:
            # Streams that the first try found it needs took all the room.
            self._settle_each(items)
            return
        if len(outcomes) < len(items):
            taken = {id(item) for item, _ in outcomes}
            self._left += [item for item in items if id(item) not in taken]
        self._outlet.publish(outcomes, committed)

    def _settle_each(self, items: list[Item]) -> None:
        for item in items:
            self._settle([item])

    def _failed(self, item: Item, error: Exception) -> Exception:
        if not isinstance(error, protocol.Blocked):
            _log.exception("batch_failed", work=type(item.work).__name__)
            return error
        if isinstance(item.work, messages.Submission):
            self._blocked[item.work.stream] = time.monotonic() + _BLOCKED_SECONDS
        return _locked_elsewhere(error)

    def _without_blocked(self, items: list[Item]) -> list[Item]:
        """Waiting for each command of a stream that somebody else locked would stop all others."""
        if not self._blocked:
            return items
        now = time.monotonic()
        self._blocked = {stream: at for stream, at in self._blocked.items() if at > now}
        passing: list[Item] = []
        refused: list[tuple[Item, Outcome]] = []
        for item in items:
            work = item.work
            if isinstance(work, messages.Submission) and work.stream in self._blocked:
                refused.append((item, _locked_elsewhere(None)))
            else:
                passing.append(item)
        if refused:
            self._outlet.publish(refused, None)
        return passing

    def _persist(self, items: list[Item]) -> tuple[list[tuple[Item, Outcome]], Committed | None]:
        # Streams found on the way are locked with the others next time, in one order.
        found: set[str] = set()
        for attempt in range(_CAREFUL_TRIES):
            try:
                return self._attempt(items, found, careful=attempt > 0 or self._wary > 0)
            except protocol.Blocked:
                raise
            except errors.Unavailable:
                if not self._stale:
                    raise
                # It may have ended while nothing was asked of it, as a restart of the server ends
                # all: nothing was written, so whoever asks need not hear of that.
                self._drop_session()
                self._reopening.lost()
            except protocol.Lost:
                # Most likely another process works on the same streams: lock for a while.
                self._wary = 16
                if attempt:
                    time.sleep(random.uniform(0, 0.002 * 2 ** min(attempt, 5)))  # noqa: S311 - spreads rivals
        raise errors.Conflict(
            "too many writers on the same streams", hint="try again; look for a hot stream"
        )

    def _attempt(
        self, items: list[Item], found: set[str], *, careful: bool
    ) -> tuple[list[tuple[Item, Outcome]], Committed | None]:
        started = time.monotonic()
        needed = _needed(items, found, careful=careful)
        hooks = self._outlet.hooks
        fence = hooks.fence()
        self._stale = self._session is not None
        with self._open().transaction() as transaction:
            loaded = transaction.load(needed)
            self._stale = False
            identity = batch.Identity(self._clock.now(), fence, hooks.room(), transaction.epoch)
            taken = batch.Batch(self._registry, identity, loaded, transaction.number)
            taken.know(_loaded(needed, loaded), loaded.streams)
            outcomes = [
                (item, _take(taken, transaction, item.work, found))
                for item in _fitting(items, loaded.left_out)
                if taken.size < MAX_BATCH_BYTES
            ]
            writes = taken.finish()
            if not writes:
                return outcomes, None
            transaction.write(writes)
        seconds = time.monotonic() - started
        self._reopening.fine()
        if hooks.told is not None:
            self._tell(hooks.told, taken)
        self._wary = max(0, self._wary - 1)
        return outcomes, _committed(writes, taken, seconds)

    def _tell(
        self, told: Callable[[Sequence[batch.EventRecord]], None], taken: batch.Batch
    ) -> None:
        try:
            told(taken.told())
        except Exception:  # noqa: BLE001 - the batch is committed; a full disk of logs changes nothing
            _log.exception("transitions_not_told")

    def _open(self) -> protocol.Session:
        if self._session is None:
            self._session = self._reopening.open()
        return self._session

    def _lose_session(self) -> None:
        # A session that could not even be opened has left nothing of unknown fate; to call
        # that trouble would wake the keeper, which would fail again, without a pause.
        if self._session is not None:
            self._drop_session()
            self._reopening.lost()
            self._outlet.trouble()

    def _drop_session(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):
                self._session.close()
            self._session = None


def _needed(items: list[Item], found: set[str], *, careful: bool) -> protocol.Needed:
    streams: dict[str, None] = dict.fromkeys(found)
    commands: list[str] = []
    settles: list[messages.Hold] = []
    fires: list[messages.TimerKey] = []
    for item in items:
        match item.work:
            case messages.Submission(stream=stream, id=known, settles=None):
                streams[stream] = None
                commands.append(known)
            case messages.Submission(stream=stream, settles=messages.TimerKey() as timer):
                streams[stream] = None
                fires.append(timer)
            case messages.Submission(stream=stream, settles=messages.Hold() as hold):
                streams[stream] = None
                settles.append(hold)
            case messages.Hold() as hold:
                settles.append(hold)
            case _:
                pass
    # One alone is taken whatever its size, or it would wait for ever.
    room = MAX_BATCH_BYTES if len(items) > 1 else protocol.UNBOUNDED
    return protocol.Needed(list(streams), commands, settles, fires, careful, room)


def _loaded(needed: protocol.Needed, loaded: protocol.Loaded) -> Sequence[str]:
    """The streams that the store was asked for and had room for, or that are new."""
    if not loaded.left_out:
        return needed.streams
    return [name for name in needed.streams if name not in loaded.left_out]


def _fitting(items: list[Item], left_out: frozenset[str]) -> list[Item]:
    if not left_out:
        return items
    # By the names, not by what the batch knows: a stream that another sends to is loaded after
    # all, and a later command of its own must not overtake one that was left out.
    return [
        item
        for item in items
        if not isinstance(item.work, messages.Submission) or item.work.stream not in left_out
    ]


def _locked_elsewhere(cause: Exception | None) -> errors.Unavailable:
    error = errors.Unavailable(
        "another session has locked a row of this stream",
        hint="it is tried again; end the session that holds the lock if this goes on",
    )
    error.__cause__ = cause
    return error


def _take(
    taken: batch.Batch, transaction: protocol.Transaction, work: Work, found: set[str]
) -> Outcome:
    """One item's outcome; whatever a machine raises is the answer to its own item only."""
    while True:
        try:
            match work:
                case messages.Submission():
                    return taken.take(work)
                case messages.Hold():
                    taken.settle(work)
                case protocol.Postponement():
                    taken.writes.postponed.append(work)
        except batch.Unloaded as need:
            found.update(need.streams)
            taken.know(need.streams, transaction.more(need.streams))
        except Exception as error:  # noqa: BLE001 - a machine's fault is reported, not spread
            return error
        else:
            return None


def _committed(writes: protocol.Writes, taken: batch.Batch, seconds: float) -> Committed:
    return Committed(
        taken.fresh,
        unheld=taken.left,
        next_timer=min((timer.due_at for timer in writes.timers), default=None),
        events=len(writes.events),
        seconds=seconds,
    )
