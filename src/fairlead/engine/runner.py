"""From submission to commit: writer threads that settle whatever has gathered, together.

    submit ──► inbox of a writer ──► load ──► decide ──► write + commit ──► answers, effects
                     (all that arrived while the last commit was on its way: one batch)

Each writer is a thread with one session. A stream always goes to the same writer, so its
commands keep their order. Nothing here waits for the outside world.
"""

import asyncio
import concurrent.futures
import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import batch, clock, messages
from fairlead.engine.store import protocol

T = TypeVar("T")

Work = messages.Submission | messages.Hold | protocol.Postponement
"""A command; an effect done without an answer; an effect that failed."""

Outcome = messages.Receipt | Exception | None

MAX_BATCH = 256
_CAREFUL_TRIES = 12
_log = structlog.get_logger(__name__)


class Item(msgspec.Struct, frozen=True):
    """Work on its way to a commit, and who wants to hear of it."""

    work: Work
    done: Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a batch left behind, told on the event loop."""

    fresh: Sequence[batch.Asked]
    unheld: bool
    next_timer: clock.Millis | None
    events: int


@dataclass(slots=True)
class Hooks:
    """How the rest of the engine takes part in a commit."""

    fence: Callable[[], int | None] = lambda: None
    """Under which fence new effects are held; None leaves them for others."""

    committed: Callable[[Committed], None] = lambda _: None
    told: Callable[[Sequence[batch.Told]], None] | None = None
    """Hears of every event after its commit, on the writer's thread."""

    troubled: Callable[[], None] = lambda: None
    """A commit may or may not have happened: the connection broke at the wrong moment."""


@dataclass(frozen=True, slots=True)
class _Errand:
    run: Callable[[Callable[[], protocol.Session]], None]


class Runner:
    """Takes submissions from the event loop and answers them there."""

    def __init__(
        self,
        store: protocol.Store,
        repertoire: batch.Repertoire,
        wall: clock.Clock,
        hooks: Hooks | None = None,
        gather: float = 0.0,
    ) -> None:
        self.hooks = hooks or Hooks()
        self.gather = gather
        self._writers = [_Writer(self, store, repertoire, wall) for _ in range(store.writers)]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for writer in self._writers:
            writer.start()

    async def stop(self) -> None:
        """Settle what has been handed in, then end the threads."""
        self._stopped = True
        for writer in self._writers:
            writer.inbox.put(None)
        for writer in self._writers:
            await asyncio.to_thread(writer.join)

    async def submit(self, submission: messages.Submission) -> messages.Receipt:
        self._refuse_when_stopped()
        answer: asyncio.Future[messages.Receipt] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            if answer.cancelled():
                return
            if isinstance(outcome, messages.Receipt):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome or RuntimeError("no answer"))

        self.post(Item(submission, done))
        return await answer

    def post(self, item: Item) -> None:
        """Hand in work; its outcome is told to item.done on the event loop."""
        work = item.work
        place = hash(work.stream) if isinstance(work, messages.Submission) else work.stream
        self._writers[place % len(self._writers)].inbox.put(item)

    async def errand(self, run: Callable[[protocol.Session], T]) -> T:
        """Run something between two batches on the first writer's own session."""
        self._refuse_when_stopped()
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def go(session: Callable[[], protocol.Session]) -> None:
            # Whoever sent it may have left; from here on nobody can.
            if not answer.set_running_or_notify_cancel():
                return
            # Opening the session may fail too, and whoever waits must hear of that.
            try:
                result = run(session())
            except BaseException as error:
                answer.set_exception(error)
                raise
            answer.set_result(result)

        self._writers[0].inbox.put(_Errand(go))
        return await asyncio.wrap_future(answer)

    def _refuse_when_stopped(self) -> None:
        # The writers are gone: what is handed in now would never be answered.
        if self._stopped:
            raise errors.Unavailable("the engine has stopped", hint="ask one that is running")

    def publish(self, outcomes: list[tuple[Item, Outcome]], committed: Committed | None) -> None:
        """Called by a writer's thread: carry a batch's results over to the event loop."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear
            self._loop.call_soon_threadsafe(self._tell, outcomes, committed)

    def trouble(self) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.hooks.troubled)

    def _tell(self, outcomes: list[tuple[Item, Outcome]], committed: Committed | None) -> None:
        # Effects first: an answer may tell its caller that they are on their way.
        if committed is not None:
            self.hooks.committed(committed)
        for item, outcome in outcomes:
            item.done(outcome)


class _Writer(threading.Thread):
    """One thread, one session, one batch at a time."""

    def __init__(
        self,
        runner: Runner,
        store: protocol.Store,
        repertoire: batch.Repertoire,
        wall: clock.Clock,
    ) -> None:
        super().__init__(name="fairlead-writer", daemon=True)
        self.inbox: queue.SimpleQueue[Item | _Errand | None] = queue.SimpleQueue()
        self._runner = runner
        self._store = store
        self._repertoire = repertoire
        self._clock = wall
        self._session: protocol.Session | None = None
        self._wary = 0
        """Batches still to be locked at once, after races were lost."""

    def run(self) -> None:
        while self._turn():
            pass
        self._drop_session()

    def _turn(self) -> bool:
        items: list[Item] = []
        errands: list[_Errand] = []
        going = self._gather(items, errands)
        if items:
            self._settle(items)
        for errand in errands:
            self._run(errand)
        return going

    def _run(self, errand: _Errand) -> None:
        try:
            errand.run(self._open)
        except protocol.Lost:
            pass  # undone by the session itself, which is as good as before
        except errors.Unavailable:
            # A claim may have been kept although its answer was lost: the rows are held
            # under our fence and nobody knows them. Another fence lets them go.
            self._lose_session()
        except Exception:  # noqa: BLE001 - told to whoever sent it
            self._drop_session()

    def _gather(self, items: list[Item], errands: list[_Errand]) -> bool:
        """Everything that has arrived by now; False when it is time to end."""
        entry = self.inbox.get()
        if self._runner.gather and entry is not None:
            time.sleep(self._runner.gather)
        while entry is not None:
            (items if isinstance(entry, Item) else errands).append(entry)  # type: ignore[arg-type]  # one list for each kind
            if len(items) >= MAX_BATCH:
                return True
            try:
                entry = self.inbox.get_nowait()
            except queue.Empty:
                return True
        return False

    def _settle(self, items: list[Item]) -> None:
        try:
            outcomes, committed = self._persist(items)
        except errors.Unavailable as error:
            self._lose_session()
            outcomes, committed = [(item, error) for item in items], None
        except Exception as error:  # noqa: BLE001 - one bad item must not take the others along
            if len(items) > 1:
                for item in items:
                    self._settle([item])
                return
            _log.exception("batch_failed", work=type(items[0].work).__name__)
            outcomes, committed = [(items[0], error)], None
        self._runner.publish(outcomes, committed)

    def _persist(self, items: list[Item]) -> tuple[list[tuple[Item, Outcome]], Committed | None]:
        # Streams found on the way are locked with the others next time, in one order.
        found: set[str] = set()
        for attempt in range(_CAREFUL_TRIES):
            try:
                return self._attempt(items, found, careful=attempt > 0 or self._wary > 0)
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
        wanted = _wanted(items, found, careful=careful)
        identity = batch.Identity(self._clock.now(), self._runner.hooks.fence())
        with self._open().transaction() as transaction:
            loaded = transaction.load(wanted)
            taken = batch.Batch(self._repertoire, identity, loaded, transaction.number)
            taken.know(wanted.streams, loaded.streams)
            outcomes = [(item, _take(taken, transaction, item.work, found)) for item in items]
            writes = taken.finish()
            if not writes:
                return outcomes, None
            transaction.write(writes)
        if self._runner.hooks.told is not None:
            self._tell(self._runner.hooks.told, taken)
        self._wary = max(0, self._wary - 1)
        return outcomes, _committed(writes, taken.fresh)

    def _tell(self, told: Callable[[Sequence[batch.Told]], None], taken: batch.Batch) -> None:
        try:
            told(taken.told())
        except Exception:  # noqa: BLE001 - the batch is committed; a full disk of logs changes nothing
            _log.exception("transitions_not_told")

    def _open(self) -> protocol.Session:
        if self._session is None:
            self._session = self._store.open()
        return self._session

    def _lose_session(self) -> None:
        # A session that could not even be opened has left nothing of unknown fate; to call
        # that trouble would wake the keeper, which would fail again, without a pause.
        if self._session is not None:
            self._drop_session()
            self._runner.trouble()

    def _drop_session(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):
                self._session.close()
            self._session = None


def _wanted(items: list[Item], found: set[str], *, careful: bool) -> protocol.Wanted:
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
    return protocol.Wanted(list(streams), commands, settles, fires, careful)


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


def _committed(writes: protocol.Writes, fresh: Sequence[batch.Asked]) -> Committed:
    return Committed(
        fresh,
        unheld=len(fresh) < len(writes.effects),
        next_timer=min((timer.due_at for timer in writes.timers), default=None),
        events=len(writes.events),
    )
