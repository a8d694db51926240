"""From decided effects to the world and back, at least once.

Fresh effects come straight from the runner, already held under this worker's fence; what
others left is claimed when it is due, if this worker has a handler for it in the queue of its
stream and can read it. All else is left for others. A handler's answer goes back as a command,
in the same commit that takes the effect out of the outbox. A failure waits longer each time;
after the last attempt the effect lies dead until a person retries or discards it.
"""

import asyncio
import contextlib
import functools
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import (
    batch,
    bulkheads,
    clock,
    codec,
    deadlines,
    failures,
    measurements,
    messages,
    runner,
)
from fairlead.engine.store import protocol

_LEAVE_SECONDS = 5.0
_BEYOND_SECONDS = 10.0
_log = structlog.get_logger(__name__)


class EffectContext(msgspec.Struct, frozen=True):
    """What a handler may know besides the effect itself."""

    stream: messages.StreamName
    idempotency_key: str
    """The same on every attempt and never used twice: hand it to the outside."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Handler:
    """How one type of effect is performed, and how patiently."""

    perform: Callable[[Any, EffectContext], Awaitable[object | None]]
    """Returns the command that answers, or None where none is needed."""

    timeout: timedelta = timedelta(seconds=30)
    attempts: int = 12
    first_delay: timedelta = timedelta(milliseconds=500)
    longest_delay: timedelta = timedelta(minutes=5)
    limit: int | None = None
    """At most so many at once in one worker; without it, as many as the bulkheads let."""


Handlers = Mapping[type, Handler]
"""Who performs the effects of one queue, by type."""

QueueHandlers = Mapping[str, Handlers]
"""All that one worker performs, by queue; empty is the queue of streams that have none."""

_Part = TypeVar("_Part")


def merged(*all_: QueueHandlers) -> QueueHandlers:
    """Several of them as one: areas may perform different effects for the same queue."""
    found: dict[str, dict[type, Handler]] = {}
    for queue, handlers in (pair for each in all_ for pair in each.items()):
        found.setdefault(queue, {}).update(handlers)
    return found


async def together(parts: Iterable[Coroutine[Any, Any, _Part]]) -> list[_Part]:
    """The answers of an effect's parts, performed at the same time; one that fails ends all."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part) for part in parts]
    return [task.result() for task in tasks]


def serves(registry: batch.MachineRegistry, handlers: QueueHandlers) -> str:
    """What a worker can read and perform, as claims and the list of workers have it.

    A JSON list of [queue, machine, type, version]: a machine, type or version that only a
    newer program knows is not among them, so it waits for that one.
    """
    known = [key for _, key in _served(registry, handlers)]
    return msgspec.json.encode(known).decode()


def _served(
    registry: batch.MachineRegistry, handlers: QueueHandlers
) -> list[tuple[bulkheads.Kind, tuple[str, str, str, int]]]:
    return [
        ((queue, type_), (queue, machine.name, name, version))
        for queue, performed in handlers.items()
        for machine in registry.machines
        for type_, name, version in registry.of(machine.name).codec.effects.readable
        if type_ in performed
    ]


def _states(registry: batch.MachineRegistry) -> dict[str, dict[str, int]]:
    """The newest version of every state that can be read here, by machine and type.

    The answer to an effect goes to its stream: where only a newer program can read that, only a
    newer program may perform the effect, or it would be performed again by that one.
    """
    return {
        machine.name: {name: v for _, name, v in registry.of(machine.name).codec.states.readable}
        for machine in registry.machines
    }


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one worker takes on."""

    in_flight: int = 1024
    poll: timedelta = timedelta(seconds=1)


_Performing = tuple[asyncio.Task[None], batch.PendingEffect]


class Outbox:
    """Performs effects for one worker."""

    def __init__(
        self,
        runner_: runner.Runner,
        registry: batch.MachineRegistry,
        handlers: QueueHandlers,
        wall: clock.Clock,
        limits: Limits,
    ) -> None:
        self._runner = runner_
        self._registry = registry
        self._handlers = handlers
        self.serves = serves(registry, handlers)
        self._served = _served(registry, handlers)
        self._states = _states(registry)
        self._clock = wall
        self._limits = limits
        self._running: dict[messages.Hold, _Performing | None] = {}
        """What is held here; None once its task is over and its outcome is on its way."""

        self._places = bulkheads.Bulkheads(limits.in_flight, _kinds(handlers))
        self._deadlines = deadlines.Deadlines()
        self._newest = False
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._closed = False
        self._stopping = False
        self.fence: Callable[[], int | None] = lambda: None
        self.unsure: Callable[[], None] = lambda: None
        """A claim may or may not have happened."""

        self.stands: Callable[[int], bool] = lambda _: True
        """Whether a fence is certainly still ours."""

        self.store_id = ""
        self.counts = measurements.Measurements()

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def rooms(self) -> dict[bulkheads.Kind, int]:
        """How many new effects of each kind may be held here; a kind that is absent, none."""
        return self._places.rooms()

    def held(self) -> dict[tuple[str, str], int]:
        """How many are performed here, by type and kind of queue."""
        found: Counter[tuple[str, str]] = Counter()
        for (queue, type_), used in self._places.used().items():
            found[type_.__name__, queue.partition("@")[0]] += used
        return found

    def uses(self, fence: int) -> bool:
        return any(hold.fence == fence for hold in self._running)

    def knows(self, hold: messages.Hold) -> bool:
        return hold in self._running

    def nudge(self) -> None:
        """There may be something to claim."""
        self._wake.set()

    def accept(self, asked: batch.PendingEffect) -> None:
        """Start an effect that this worker holds."""
        if self._closed:
            # An answer committed while we were leaving; its effects go free with our fence.
            return
        if not self._places.enter(asked):
            # Taken on before the places of others were known: back it goes, unharmed.
            self._running[asked.hold] = None
            key, fence = asked.hold.key, asked.hold.fence
            back = protocol.Postponement(key.stream, key.seq, key.n, fence, attempts=0)
            self._post(asked, back)
            return
        task = asyncio.get_running_loop().create_task(self._perform(asked))
        self._running[asked.hold] = task, asked

    def abandon(self, fence: int) -> None:
        """The lease is gone: others may do this work now, so stop doing it."""
        for hold in [hold for hold in self._running if hold.fence == fence]:
            performing = self._running.pop(hold)
            if performing is not None:
                performing[0].cancel()
            self._places.leave(hold)
        self.nudge()

    async def run(self) -> None:
        """Claim what is due and unheld, until cancelled."""
        while True:
            self._wake.clear()
            self._sweep()
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
        self._stopping = True
        tasks = [each[0] for each in self._running.values() if each is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_LEAVE_SECONDS)
            for task in late:
                _log.error("handler_does_not_end", task=task.get_name())

    async def _claim(self) -> datetime:
        """Take what is due; when to look again."""
        now = self._clock.now()
        fence = self.fence()
        if fence is None or not self._served:
            return now + self._limits.poll
        claim = functools.partial(self._take, fence=fence, now=clock.to_millis(now))
        try:
            rows, due = await self._runner.run_on_writer(claim)
        except (errors.FairleadError, protocol.Lost) as error:
            _log.warning("claim_failed", error=str(error))
            # It may have been committed before the line broke: then rows are held under this
            # fence that nobody here knows of.
            self.unsure()
            return now + self._limits.poll
        for row in rows if self.stands(fence) else ():
            self._start_claimed(row, fence)
        later = now + self._limits.poll
        if due is None or (not rows and clock.from_millis(due) <= now):
            # Due, but not to be had: it stands behind another in its lane. Whoever ends that
            # one nudges; asking again at once would only keep the writer busy.
            return later
        return min(later, max(clock.from_millis(due), now))

    def _take(
        self, session: protocol.Session, fence: int, now: clock.Millis
    ) -> tuple[list[tuple[Any, ...]], clock.Millis | None]:
        """On the writer, so that it knows the room of this moment: rows, and when to look again."""
        rooms = self._places.rooms()
        kinds = {kind: (room, self._places.busy(kind)) for kind, room in rooms.items() if room}
        known = [
            (*key, *kinds[kind], self._states[key[1]])
            for kind, key in self._served
            if kind in kinds
        ]
        serves = msgspec.json.encode(known).decode()
        ((due,),) = session.rows("next_effect", serves=serves) if known else ((None,),)
        if due is None or due > now:
            return [], due
        limit = min(sum(room for room, _ in kinds.values()), runner.MAX_BATCH)
        # From either end in turn: the oldest must not wait for ever, and newcomers not for all
        # of a backlog that one stream has piled up.
        queries = ("claim_effects", "claim_newest")
        rows: list[tuple[Any, ...]] = []
        for query in reversed(queries) if self._newest else queries:
            rows = rows or session.rows(query, fence=fence, serves=serves, now=now, limit=limit)
        self._newest = not self._newest
        ((due,),) = session.rows("next_effect", serves=serves)
        return rows, due

    def _start_claimed(self, row: tuple[Any, ...], fence: int) -> None:
        stream, seq, n, type_, version, data, attempts, queue, name, epoch = row
        hold = messages.Hold(stream, seq, n, fence)
        if hold in self._running:
            return
        try:
            message_codec = self._registry.of(name).codec.effects
            effect = message_codec.decode(codec.Encoded(type_, version, data))
        except Exception as error:  # noqa: BLE001 - whatever an upcaster raises, the others go on
            unread = batch.PendingEffect(hold, name, None, attempts)
            self._postpone(unread, error, last=not isinstance(error, errors.Newer))
            return
        asked = batch.PendingEffect(hold, name, effect, attempts, queue, epoch)
        if attempts >= self._handler(asked).attempts:
            # Its workers died over it, one after the other: not this one too.
            fatal = errors.Rejected(f"given up after {attempts} attempts", hint="look at its log")
            self._postpone(asked, fatal, last=True)
            return
        self.accept(asked)

    async def _perform(self, asked: batch.PendingEffect) -> None:
        handler = self._handler(asked)
        seconds = handler.timeout.total_seconds()
        task = asyncio.current_task()
        assert task is not None
        started = time.monotonic()
        self._deadlines.begin(task, started, seconds)
        try:
            answer = await handler.perform(asked.effect, self._context(asked))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            late = self._deadlines.end(task, seconds)
            if self._is_stopped(asked.hold):
                raise
            # Whatever the outside did, it is retried; also a cancellation that is none of ours,
            # such as that of a connection pool which closes.
            if late and isinstance(error, asyncio.CancelledError):
                error = TimeoutError(f"no answer within {seconds:g} s")
            self._postpone(asked, error, last=self._is_last(asked, error))
        else:
            self._deadlines.end(task, seconds)
            self._answer(asked, answer)
        self.counts.effect_seconds[_kind(asked)].observe(time.monotonic() - started)

    def _is_stopped(self, hold: messages.Hold) -> bool:
        """Whether we ended this task ourselves: its lease is gone, or the worker leaves."""
        return self._stopping or hold not in self._running

    def _sweep(self) -> None:
        """A net: a task that ended in any other way must not leave its effect held."""
        over = [each for each in self._running.values() if each is not None and each[0].done()]
        for task, asked in over:
            fault = None if task.cancelled() else task.exception()
            fault = fault or asyncio.CancelledError("ended from outside")
            self._postpone(asked, fault, last=self._is_last(asked, fault))

    def _handler(self, asked: batch.PendingEffect) -> Handler:
        """There is one: what has none here is neither held at birth nor claimed."""
        return self._handlers[asked.queue][type(asked.effect)]

    def _context(self, asked: batch.PendingEffect) -> EffectContext:
        hold = asked.hold
        epoch = f"-{asked.epoch}" if asked.epoch else ""
        key = f"{self.store_id}{epoch}-{hold.stream}-{hold.seq}-{hold.n}"
        return EffectContext(asked.stream, key, asked.attempts + 1)

    def _answer(self, asked: batch.PendingEffect, answer: object | None) -> None:
        # From here on the task is over; the hold stays until the answer is committed.
        self._running[asked.hold] = None
        hold = asked.hold
        work: runner.Work = hold
        if answer is not None:
            cause = messages.CommandId(f"effect {hold.stream}.{hold.seq}.{hold.n}")
            work = messages.Submission(asked.stream, answer, cause, hold)
        self._post(asked, work)

    def _post(self, asked: batch.PendingEffect, work: runner.Work) -> None:
        self._runner.post(runner.Item(work, functools.partial(self._settled, asked, work)))

    def _post_later(
        self, asked: batch.PendingEffect, work: runner.Work, longest: float = 0.5
    ) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(random.uniform(longest / 5, longest), self._post, asked, work)  # noqa: S311 - jitter, no secret

    def _settled(
        self, asked: batch.PendingEffect, work: runner.Work, outcome: runner.Outcome
    ) -> None:
        if asked.hold not in self._running:
            return
        match outcome:
            case None | messages.Receipt() | batch.Stale():
                self._release(asked)
                if isinstance(work, protocol.Postponement):
                    # Wake in time for the next attempt, not only at the next poll.
                    self.nudge()
            case batch.Beyond():
                # Given back, it would come back to us and be performed again and again. A newer
                # worker gets it with our lease: where there is one, we are on our way out.
                self._post_later(asked, work, _BEYOND_SECONDS)
            case errors.Newer() if isinstance(work, messages.Submission):
                # Only a newer program can take the answer, so it has to do the effect itself.
                unread = batch.PendingEffect(asked.hold, asked.stream, None, asked.attempts)
                self._postpone(unread, outcome, last=False)
            case errors.Unavailable():
                # The outside has done its part: keep the answer and hand it in again.
                self._post_later(asked, work)
            case Exception() as error if isinstance(work, messages.Submission):
                self._postpone(asked, error, last=self._is_last(asked, error))
            case Exception() as error:
                # Letting go here would leave the row held by a worker that forgot it.
                _log.error("outbox_not_written", stream=asked.stream, error=str(error))
                self._post_later(asked, work)

    def _is_last(self, asked: batch.PendingEffect, error: BaseException) -> bool:
        handler = self._handler(asked)
        return asked.attempts + 1 >= handler.attempts or isinstance(error, errors.Rejected)

    def _postpone(self, asked: batch.PendingEffect, error: BaseException, *, last: bool) -> None:
        self._running[asked.hold] = None
        now = self._clock.now()
        text = failures.describe(error)
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
        # What this program cannot even read, or whose answer it cannot, was not tried.
        attempts = 0 if asked.effect is None else 1
        if attempts:
            self.counts.effect_failures[_kind(asked)] += 1
        work = protocol.Postponement(
            hold.stream, hold.seq, hold.n, hold.fence, due, dead_at, text, attempts
        )
        self._post(asked, work)

    def _delay(self, asked: batch.PendingEffect) -> timedelta:
        """Twice as long each time, and never in step with others."""
        if asked.effect is None:
            return self._limits.poll
        handler = self._handler(asked)
        doubled: timedelta = handler.first_delay * 2 ** min(asked.attempts, 20)
        return min(doubled, handler.longest_delay) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret

    def _release(self, asked: batch.PendingEffect) -> None:
        self._running.pop(asked.hold, None)
        was_full = self._places.leave(asked.hold)
        if not self._running:
            self._empty.set()
        if was_full or self._in_order(asked.stream):
            self.nudge()

    def _in_order(self, stream: messages.StreamName) -> bool:
        try:
            return self._registry.of(stream).machine.effects_in_order
        except errors.NotFound:
            return False


def _kind(asked: batch.PendingEffect) -> measurements.EffectKind:
    return asked.stream.partition("/")[0], type(asked.effect), asked.queue


def _kinds(handlers: QueueHandlers) -> dict[bulkheads.Kind, int | None]:
    return {
        (queue, type_): handler.limit
        for queue, performed in handlers.items()
        for type_, handler in performed.items()
    }
