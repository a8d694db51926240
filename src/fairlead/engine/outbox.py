"""From decided effects to the world and back, at least once.

Fresh effects come straight from the runner, already held under this worker's fence; what
others left is claimed when it is due. A handler's answer goes back as a command, in the
same commit that takes the effect out of the outbox. A failure waits longer each time; after
the last attempt the effect lies dead until a person retries or discards it.
"""

import asyncio
import contextlib
import functools
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import batch, clock, codec, messages, runner
from fairlead.engine.store import protocol

MAX_ERROR = 2000
_LEAVE_SECONDS = 5.0
_FOREIGN_DELAY = timedelta(seconds=3)
_log = structlog.get_logger(__name__)


class Context(msgspec.Struct, frozen=True):
    """What a handler may know besides the effect itself."""

    stream: messages.StreamName
    idempotency_key: str
    """The same on every attempt and never used twice: hand it to the outside."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Handler:
    """How one type of effect is performed, and how patiently."""

    perform: Callable[[Any, Context], Awaitable[object | None]]
    """Returns the command that answers, or None where none is needed."""

    timeout: timedelta = timedelta(seconds=30)
    attempts: int = 12
    first_delay: timedelta = timedelta(milliseconds=500)
    longest_delay: timedelta = timedelta(minutes=5)


Handlers = Mapping[type, Handler]
_Part = TypeVar("_Part")


async def together(parts: Iterable[Coroutine[Any, Any, _Part]]) -> list[_Part]:
    """The answers of an effect's parts, performed at the same time; one that fails ends all."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part) for part in parts]
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one worker takes on."""

    in_flight: int = 1024
    poll: timedelta = timedelta(seconds=1)


class Outbox:
    """Performs effects for one worker."""

    def __init__(
        self,
        runner_: runner.Runner,
        repertoire: batch.Repertoire,
        handlers: Handlers,
        wall: clock.Clock,
        limits: Limits,
    ) -> None:
        self._runner = runner_
        self._repertoire = repertoire
        self._handlers = handlers
        self._clock = wall
        self._limits = limits
        self._running: dict[messages.Hold, asyncio.Task[None] | None] = {}
        self._places = asyncio.Semaphore(limits.in_flight)
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._closed = False
        self.fence: Callable[[], int | None] = lambda: None
        self.unsure: Callable[[], None] = lambda: None
        """A claim may or may not have happened."""

        self.store_id = ""

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def has_room(self) -> bool:
        return len(self._running) < self._limits.in_flight

    def uses(self, fence: int) -> bool:
        return any(hold.fence == fence for hold in self._running)

    def nudge(self) -> None:
        """There may be something to claim."""
        self._wake.set()

    def accept(self, asked: batch.Asked) -> None:
        """Start an effect that this worker holds."""
        if self._closed:
            # An answer committed while we were leaving; its effects go free with our fence.
            return
        task = asyncio.get_running_loop().create_task(self._perform(asked))
        self._running[asked.hold] = task

    def abandon(self, fence: int) -> None:
        """The lease is gone: others may do this work now, so stop doing it."""
        for hold in [hold for hold in self._running if hold.fence == fence]:
            task = self._running.pop(hold)
            if task is not None:
                task.cancel()

    async def run(self) -> None:
        """Claim what is due and unheld, until cancelled."""
        while True:
            self._wake.clear()
            until = await self._claim()
            await self._clock.wait(self._wake, until)

    async def drain(self, longest: timedelta) -> None:
        """Let what is being performed end by itself for a while, then stop it."""
        self._closed = True
        self._empty.clear()
        if self._running:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(longest.total_seconds()):
                    await self._empty.wait()
        # It must end before its hold is given back, or two would do it at once.
        tasks = [task for task in self._running.values() if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_LEAVE_SECONDS)
            for task in late:
                _log.error("handler_does_not_end", task=task.get_name())

    async def _claim(self) -> datetime:
        """Take what is due; when to look again."""
        now = self._clock.now()
        room = self._limits.in_flight - len(self._running)
        fence = self.fence()
        if room <= 0 or fence is None:
            return now + self._limits.poll
        try:
            rows, due = await self._runner.errand(lambda s: _claim_due(s, fence, now, room))
        except (errors.FairleadError, protocol.Lost) as error:
            _log.warning("claim_failed", error=str(error))
            # It may have been committed before the line broke: then rows are held under this
            # fence that nobody here knows of.
            self.unsure()
            return now + self._limits.poll
        for row in rows:
            self._start_claimed(row, fence)
        if len(rows) == room:
            self._wake.set()
        later = now + self._limits.poll
        if due is None or (not rows and clock.from_millis(due) <= now):
            # Due, but not to be had: it stands behind another in its lane. Whoever ends that
            # one nudges; asking again at once would only keep the writer busy.
            return later
        return min(later, max(clock.from_millis(due), now))

    def _start_claimed(self, row: tuple[Any, ...], fence: int) -> None:
        stream, seq, n, type_, version, data, attempts, name = row
        hold = messages.Hold(stream, seq, n, fence)
        if hold in self._running:
            return
        try:
            lexicon = self._repertoire.of(name).codec.effects
            effect = lexicon.decode(codec.Encoded(type_, version, data))
        except errors.NotFound as error:
            # A machine that only other workers have (a newer program, another area): put the
            # effect back alive, or an upgrade would bury the work of those who can do it.
            self._postpone(batch.Asked(hold, name, None, attempts), error, last=False)
            return
        except errors.FairleadError as error:
            self._postpone(batch.Asked(hold, name, None, attempts), error, last=True)
            return
        asked = batch.Asked(hold, name, effect, attempts)
        if attempts >= self._handlers.get(type(effect), _NOBODY).attempts:
            # Its workers died over it, one after the other: not this one too.
            fatal = errors.Rejected(f"given up after {attempts} attempts", hint="look at its log")
            self._postpone(asked, fatal, last=True)
            return
        self.accept(asked)

    async def _perform(self, asked: batch.Asked) -> None:
        handler = self._handlers.get(type(asked.effect), _NOBODY)
        try:
            async with self._places, asyncio.timeout(handler.timeout.total_seconds()):
                answer = await handler.perform(asked.effect, self._context(asked))
        except Exception as error:  # noqa: BLE001 - whatever the outside did, it is retried
            self._postpone(asked, error, last=self._is_last(asked, error))
        else:
            self._answer(asked, answer)

    def _context(self, asked: batch.Asked) -> Context:
        hold = asked.hold
        key = f"{self.store_id}-{hold.stream}-{hold.seq}-{hold.n}"
        return Context(asked.stream, key, asked.attempts + 1)

    def _answer(self, asked: batch.Asked, answer: object | None) -> None:
        # From here on the task is over; the hold stays until the answer is committed.
        self._running[asked.hold] = None
        hold = asked.hold
        work: runner.Work = hold
        if answer is not None:
            cause = messages.CommandId(f"effect {hold.stream}.{hold.seq}.{hold.n}")
            work = messages.Submission(asked.stream, answer, cause, hold)
        self._post(asked, work)

    def _post(self, asked: batch.Asked, work: runner.Work) -> None:
        self._runner.post(runner.Item(work, functools.partial(self._settled, asked, work)))

    def _post_later(self, asked: batch.Asked, work: runner.Work) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(random.uniform(0.1, 0.5), self._post, asked, work)  # noqa: S311 - jitter, no secret

    def _settled(self, asked: batch.Asked, work: runner.Work, outcome: runner.Outcome) -> None:
        if asked.hold not in self._running:
            return
        match outcome:
            case None | messages.Receipt() | batch.Stale():
                self._release(asked)
                if isinstance(work, protocol.Postponement):
                    # Wake in time for the next attempt, not only at the next poll.
                    self.nudge()
            case errors.Unavailable():
                # The outside has done its part: keep the answer and hand it in again.
                self._post_later(asked, work)
            case Exception() as error if isinstance(work, messages.Submission):
                self._postpone(asked, error, last=self._is_last(asked, error))
            case Exception() as error:
                # Letting go here would leave the row held by a worker that forgot it.
                _log.error("outbox_not_written", stream=asked.stream, error=str(error))
                self._post_later(asked, work)

    def _is_last(self, asked: batch.Asked, error: Exception) -> bool:
        handler = self._handlers.get(type(asked.effect), _NOBODY)
        return asked.attempts + 1 >= handler.attempts or isinstance(error, errors.Rejected)

    def _postpone(self, asked: batch.Asked, error: Exception, *, last: bool) -> None:
        self._running[asked.hold] = None
        now = self._clock.now()
        text = _describe(error)
        _log.warning(
            "effect_failed",
            stream=asked.stream,
            effect=type(asked.effect).__name__,
            attempt=asked.attempts + 1,
            dead=last,
            error=text,
        )
        due = clock.to_millis(now + self._delay(asked))
        hold = asked.hold
        dead_at = clock.to_millis(now) if last else None
        # What this program cannot even read was not tried.
        attempts = 0 if asked.effect is None else 1
        work = protocol.Postponement(
            hold.stream, hold.seq, hold.n, hold.fence, due, dead_at, text, attempts
        )
        self._post(asked, work)

    def _delay(self, asked: batch.Asked) -> timedelta:
        """Twice as long each time, and never in step with others."""
        if asked.effect is None:
            return _FOREIGN_DELAY
        handler = self._handlers.get(type(asked.effect), _NOBODY)
        doubled: timedelta = handler.first_delay * 2 ** min(asked.attempts, 20)
        return min(doubled, handler.longest_delay) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret

    def _release(self, asked: batch.Asked) -> None:
        was_full = not self.has_room()
        self._running.pop(asked.hold, None)
        if not self._running:
            self._empty.set()
        if was_full or self._in_order(asked.stream):
            self.nudge()

    def _in_order(self, stream: messages.StreamName) -> bool:
        try:
            return self._repertoire.of(stream).machine.effects_in_order
        except errors.NotFound:
            return False


async def _refuse(effect: object, _: Context) -> None:
    raise errors.Rejected(
        f"nothing here performs this effect: {type(effect).__name__}",
        hint="start a worker that has its adapter configured",
    )


_NOBODY = Handler(_refuse)


def _claim_due(
    session: protocol.Session, fence: int, now: datetime, room: int
) -> tuple[list[tuple[Any, ...]], int | None]:
    at = clock.to_millis(now)
    ((due,),) = session.rows("next_effect")
    if due is None or due > at:
        return [], due
    rows = session.rows("claim_effects", fence=fence, now=at, limit=min(room, runner.MAX_BATCH))
    ((due,),) = session.rows("next_effect")
    return rows, due


def _describe(error: Exception) -> str:
    """An error as a row keeps it: its kind and words, no more than fits."""
    if isinstance(error, TimeoutError):
        return "timed out"
    text = f"{type(error).__name__}: {error}".replace("\x00", "")[:MAX_ERROR]
    # Half a character, as paths and foreign bytes may carry, can be stored nowhere.
    return text.encode(errors="replace").decode()
