"""From submission to commit: writer threads that settle whatever has gathered, together.

    submit ──► inbox of a writer ──► load ──► decide ──► write + commit ──► answers, effects
                     (all that arrived while the last commit was on its way: one batch)

Each writer is a thread with one session. A stream always goes to the same writer, so its
commands keep their order. Nothing here waits for the outside world. The inbox takes commands up to
MAX_INBOX and MAX_INBOX_BYTES; who finds no place waits, or is refused where MAX_WAITING_BYTES do.
Claims and the like go before all commands.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import functools
from collections.abc import Callable
from typing import TypeVar

import msgspec

from fairlead import errors
from fairlead.engine import batch, clock, messages, writer
from fairlead.engine.store import protocol

T = TypeVar("T")

Work = writer.Work
Outcome = writer.Outcome
Item = writer.Item
Committed = writer.Committed
Hooks = writer.Hooks
MAX_BATCH = writer.MAX_BATCH
MAX_INBOX = 2048
"""Commands from outside that may wait for the writer; whoever comes next waits for a place."""

MAX_INBOX_BYTES = 64 * 1024 * 1024
"""What these may come to, as they are written; the one that passes it is the last."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""The same for those that wait for a place: whoever holds more commands has to hold them back."""


class _Places:
    """A semaphore whose free places cost no coroutine: every command takes one."""

    def __init__(self, count: int, room: int) -> None:
        self._free = count
        self._room = room
        self._waiting: collections.deque[tuple[asyncio.Future[None], int]] = collections.deque()
        self._waiting_bytes = 0

    def take_free(self, size: int) -> bool:
        if self._waiting or not self._is_free:
            return False
        self._take(size)
        return True

    async def wait(self, size: int) -> None:
        """For a place that somebody hands over, in the order of asking."""
        if self._waiting_bytes >= MAX_WAITING_BYTES:
            raise errors.Unavailable(
                f"too many commands wait for the store: {len(self._waiting)}",
                hint="send this one again in a moment, under the same id",
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, size))
        self._waiting_bytes += size
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Handed over in the moment of leaving: to the next, then.
                self.release(size)
            raise
        finally:
            self._waiting_bytes -= size

    def release(self, size: int) -> None:
        self._free += 1
        self._room += size
        while self._waiting and self._is_free:
            turn, wanted = self._waiting.popleft()
            if not turn.done():
                self._take(wanted)
                turn.set_result(None)

    @property
    def _is_free(self) -> bool:
        # Any room will do: a command larger than all of it would wait for ever.
        return self._free > 0 and self._room > 0

    def _take(self, size: int) -> None:
        self._free -= 1
        self._room -= size


class Runner:
    """Takes submissions from the event loop and answers them there."""

    def __init__(
        self,
        store: protocol.Store,
        registry: batch.MachineRegistry,
        wall: clock.Clock,
        hooks: Hooks | None = None,
        gather: float = 0.0,
    ) -> None:
        self.hooks = hooks or Hooks()
        self.gather = gather
        self._writers = [writer.Writer(self, store, registry, wall) for _ in range(store.writers)]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        # For commands from outside only: answers of effects are as many as there are effects, and
        # waiting for a place could make them wait for themselves.
        self._places = _Places(MAX_INBOX, MAX_INBOX_BYTES)

    @property
    def inbox_depth(self) -> int:
        """How much has been handed in and not been taken up."""
        return sum(each.depth for each in self._writers)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for each in self._writers:
            each.start()

    async def stop(self) -> None:
        """Settle what has been handed in, then end the threads."""
        self._stopped = True
        for each in self._writers:
            each.end()
        for each in self._writers:
            await asyncio.to_thread(each.join)

    async def submit(self, submission: messages.Submission) -> messages.Receipt:
        """The answer to a command; waits for a place in the inbox, in the order of asking."""
        size = _size(submission.command)
        if not self._places.take_free(size):
            await self._places.wait(size)
        if self._stopped:
            self._places.release(size)
        self._refuse_when_stopped()
        answer: asyncio.Future[messages.Receipt] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            self._places.release(size)
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
        self._writers[place % len(self._writers)].take(item)

    async def run_on_writer(self, run: Callable[[protocol.Session], T]) -> T:
        """Run something between two batches on the first writer's own session, before commands."""
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

        self._writers[0].take(writer.WriterJob(go))
        return await asyncio.wrap_future(answer)

    async def settled(self) -> None:
        """Until all that has been committed by now was also told here."""
        for each in self._writers:
            told = asyncio.Event()
            each.take(writer.WriterJob(functools.partial(self._pass_by, told)))
            await told.wait()

    def _refuse_when_stopped(self) -> None:
        # The writers are gone: what is handed in now would never be answered.
        if self._stopped:
            raise errors.Unavailable("the engine has stopped", hint="ask one that is running")

    def publish(self, outcomes: list[tuple[Item, Outcome]], committed: Committed | None) -> None:
        """Called by a writer's thread: carry a batch's results over to the event loop."""
        self._call_soon(self._tell, outcomes, committed)

    def trouble(self) -> None:
        self._call_soon(self.hooks.troubled)

    def _pass_by(self, told: asyncio.Event, _: Callable[[], protocol.Session]) -> None:
        # On the writer's thread, after its last batch was published: the order on the loop is
        # that of these calls.
        self._call_soon(told.set)

    def _call_soon(self, function: Callable[..., None], *values: object) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear
            self._loop.call_soon_threadsafe(function, *values)

    def _tell(self, outcomes: list[tuple[Item, Outcome]], committed: Committed | None) -> None:
        # Effects first: an answer may tell its caller that they are on their way.
        if committed is not None:
            self.hooks.committed(committed)
        for item, outcome in outcomes:
            item.done(outcome)


def _size(command: object) -> int:
    """As it is written; nothing for what cannot be, which the writer refuses."""
    try:
        return len(msgspec.json.encode(command))
    except (TypeError, ValueError, OverflowError, RecursionError, AttributeError):
        return 0
