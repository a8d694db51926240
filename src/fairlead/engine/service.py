"""The engine as the rest of the house sees it: submit, read, and stay alive.

One process runs one engine. With handlers it is a worker: it performs effects, fires timers
and folds projections. Without, it only submits and reads, and leaves the work to others.
"""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from fairlead import errors
from fairlead.engine import (
    batch,
    clock,
    housekeeping,
    indexing,
    leases,
    messages,
    notices,
    outbox,
    projections,
    retention,
    runner,
    timers,
)
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol

T = TypeVar("T")
_MOVE_TRIES = 5
_SCHEMA_LOOK = timedelta(seconds=30)
"""How late a worker notices that the store was migrated to what it cannot go on with."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How patient and how busy an engine is; defaults suit one small server."""

    lease: timedelta = timedelta(seconds=15)
    poll: timedelta = timedelta(seconds=1)
    in_flight: int = 1024
    readers: int = 4
    drain: timedelta = timedelta(0)
    """How long a stop waits for effects that are being performed."""

    gather: timedelta = timedelta(0)
    """How long the first of a batch waits for company; fewer and larger commits for later ones."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of."""

    store: protocol.Store
    machines: Sequence[machines.AnyMachine]
    handlers: outbox.Handlers = field(default_factory=dict)
    """Who performs the effects of streams that have no queue."""

    views: Sequence[projections.Projection] = ()
    wall: clock.Clock = field(default_factory=clock.SystemClock)
    tuning: Tuning = field(default_factory=Tuning)
    told: Callable[[Sequence[batch.EventRecord]], None] | None = None
    """Hears of every event after its commit, on a writer's thread; None costs nothing."""

    queues: outbox.QueueHandlers = field(default_factory=dict)
    """Who performs the effects of streams of these queues."""

    retention: housekeeping.Policy | None = None
    """What a worker archives by itself; None keeps everything."""

    @property
    def served(self) -> outbox.QueueHandlers:
        """Everything this process performs, by queue."""
        return {"": self.handlers, **self.queues}


class Engine:
    """Durable machines at work."""

    def __init__(self, parts: Parts, *, perform: bool = True) -> None:
        self._lost: set[int] = set()
        self._parts = parts
        self._perform = perform
        self._registry = batch.MachineRegistry(machines.Machines(parts.machines))
        gather = parts.tuning.gather.total_seconds()
        self._runner = runner.Runner(parts.store, self._registry, parts.wall, gather=gather)
        self._outbox = outbox.Outbox(
            self._runner,
            self._registry,
            parts.served,
            parts.wall,
            outbox.Limits(parts.tuning.in_flight, parts.tuning.poll),
        )
        self.counts = self._outbox.counts
        self._timers = timers.Timers(self._runner, self._registry, parts.wall, parts.tuning.poll)
        self._keeper = leases.Keeper(
            leases.Worker(leases.worker_name(), self._outbox.serves),
            parts.store,
            self._runner,
            parts.wall,
            parts.tuning.lease,
        )
        self._readers = _Readers(parts.store, parts.tuning.readers)
        self.projector = projections.Projector(
            parts.views, self._runner, self.read, parts.wall, parts.tuning.poll
        )
        self._watchers: set[asyncio.Event] = set()
        self._wire()

    @property
    def in_flight(self) -> int:
        return self._outbox.in_flight

    def now(self) -> datetime:
        return self._parts.wall.now()

    @property
    def inbox_depth(self) -> int:
        return self._runner.inbox_depth

    def held(self) -> dict[tuple[str, str], int]:
        """Effects in this process's hands, by type and kind of queue."""
        return self._outbox.held()

    @property
    def registry(self) -> batch.MachineRegistry:
        return self._registry

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Engine"]:
        """Everything on, until the block is left; then nothing is held any more."""
        await asyncio.to_thread(self._check_store)
        self._runner.start()
        try:
            async with self._working() if self._perform else self._following():
                yield self
        finally:
            await self._runner.stop()
            await self._readers.close()

    async def submit(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the domain's word
        *,
        queue: str = "",
    ) -> messages.Receipt:
        """Give a command to a stream; the same id again gets the recorded answer.

        A stream that the command creates gets the queue; one that exists keeps its own. The id
        is kept also where nothing changed, so that a duplicate that comes when it would change
        something gets the answer of the first.
        """
        submission = messages.Submission(stream, command, id, None, queue, remember=True)
        return await self._runner.submit(submission)

    async def observe(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the domain's word
        *,
        queue: str = "",
    ) -> messages.Receipt:
        """Tell a stream what was observed; as submit, but what changes nothing leaves no trace.

        For reconcilers: they tell the same level again and again, and a late one is no harm, for
        the next observation corrects it.
        """
        return await self._runner.submit(messages.Submission(stream, command, id, None, queue))

    async def read(self, function: Callable[[protocol.Session], T]) -> T:
        """Run a reading function on a session of its own, off the event loop."""
        return await self._readers.run(function)

    async def retry(self, key: messages.EffectKey) -> None:
        """A dead effect starts over."""
        now = clock.to_millis(self._parts.wall.now())
        await self._change_dead("revive_effect", key, now=now)
        self._outbox.nudge()

    async def discard(self, key: messages.EffectKey) -> None:
        """A dead effect is given up; an ordered lane behind it goes on."""
        await self._change_dead("discard_effect", key)
        self._outbox.nudge()

    async def retry_timer(self, stream: messages.StreamName, name: str) -> None:
        """A dead timer fires anew."""
        now = clock.to_millis(self._parts.wall.now())
        await self._change_dead_timer("revive_timer", stream, name, now=now)
        self._timers.nudge()

    async def discard_timer(self, stream: messages.StreamName, name: str) -> None:
        """A dead timer is given up."""
        await self._change_dead_timer("discard_timer", stream, name)

    async def move(self, streams: Sequence[messages.StreamName], queue: str) -> tuple[int, int]:
        """Give streams to another queue, with all they asked for; how many of each moved.

        An effect that a worker holds is still performed by it; where that fails, the next try
        is the new queue's.
        """
        values = {"names": list(streams), "queue": messages.parse_queue(queue)}
        steps = [("move_streams", values), ("move_effects", values)]
        for _ in range(_MOVE_TRIES):
            # A batch on the same streams, or a keeper that frees their effects, may close a
            # circle of locks; the database then sends one of the two away.
            with contextlib.suppress(protocol.Lost):
                moved, effects = await self.write(lambda session: session.script(steps))
                self._outbox.nudge()
                return moved, effects
        raise errors.Conflict(
            f"too many writers on these streams: {len(streams)}", hint="try again in a moment"
        )

    async def write(self, function: Callable[[protocol.Session], T]) -> T:
        """Run a small writing function between two batches."""
        return await self._runner.run_on_writer(function)

    async def trim(self, age: retention.Age, file: Path) -> retention.Archived:
        """Move old events of streams that live on into a file, and forget old command ids."""

        def work() -> retention.Archived:
            with contextlib.closing(self._parts.store.open()) as session:
                return retention.trim(session, self._knowledge(), age, file)

        return await asyncio.to_thread(work)

    @contextlib.contextmanager
    def watch(self) -> Iterator[asyncio.Event]:
        """A signal that is set whenever this process commits events."""
        signal = asyncio.Event()
        self._watchers.add(signal)
        try:
            yield signal
        finally:
            self._watchers.discard(signal)

    async def wait(self, signal: asyncio.Event, longest: timedelta) -> None:
        """Until the signal or the time; other processes' commits are seen by the latter."""
        await self._parts.wall.wait(signal, self._parts.wall.now() + longest)
        signal.clear()

    def _wire(self) -> None:
        hooks = self._runner.hooks
        hooks.committed = self._committed
        hooks.troubled = self._troubled
        hooks.told = self._parts.told
        if self._perform:
            hooks.fence = self._keeper.fence
            hooks.room = self._outbox.rooms
        self._outbox.fence = self._timers.fence = self._keeper.fence
        self._outbox.unsure = self._timers.unsure = self._keeper.rotate
        self._keeper.lost = self._abandon
        self._keeper.in_use = self._outbox.uses
        self._keeper.knows = self._outbox.knows
        self._outbox.stands = self._keeper.stands
        self._keeper.freed = self._nudge

    def _abandon(self, fence: int) -> None:
        if fence not in self._lost:
            # Told again and again while the store is away.
            self._lost.add(fence)
            self.counts.lease_losses += 1
        self._outbox.abandon(fence)

    def _knowledge(self) -> retention.Knowledge:
        return retention.Knowledge(self._registry, self._parts.views)

    def _nudge(self) -> None:
        self._outbox.nudge()
        self._timers.nudge()

    def _committed(self, committed: runner.Committed) -> None:
        self.counts.commits += 1
        self.counts.events += committed.events
        self.counts.commit_seconds.observe(committed.seconds)
        # All of a batch are held under one fence. Where we slept between reading it and the commit,
        # it belongs to nobody by now, and whoever frees what it holds performs these too.
        if committed.fresh and self._keeper.stands(committed.fresh[0].hold.fence):
            for asked in committed.fresh:
                self._outbox.accept(asked)
        if committed.unheld:
            self._outbox.nudge()
        if committed.next_timer is not None:
            self._timers.heard(committed.next_timer)
        if committed.events:
            self.projector.nudge()
            for signal in self._watchers:
                signal.set()

    def _troubled(self) -> None:
        self.counts.troubles += 1
        self._keeper.rotate()

    @contextlib.asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        store = self._parts.store
        self._outbox.store_id = await self._runner.run_on_writer(_store_id)
        await self._keeper.start()
        listener = notices.NoticeListener(store, protocol.WORK_CHANNEL, self._outbox.nudge)
        listener.start()
        keeping = asyncio.create_task(self._keeper.run())
        loops = [self._outbox.run, self._timers.run, self.projector.run, self._heed_migrations]
        if (policy := self._parts.retention) is not None:
            keeper = housekeeping.Housekeeper(store, self._knowledge(), self._parts.wall, policy)
            loops.append(keeper.run)
        tasks = [asyncio.create_task(loop()) for loop in loops]
        watching = asyncio.create_task(_fail_loudly([keeping, *tasks], asyncio.current_task()))
        indexed = asyncio.create_task(indexing.catch_up(self.write, self._registry, self._pause))
        try:
            yield
        finally:
            watching.cancel()
            listener.stop()
            # New effects are left to others; the lease is kept until ours are done.
            self._runner.hooks.fence = lambda: None
            await _cancel([*tasks, indexed])
            await self._outbox.drain(self._parts.tuning.drain)
            await _cancel([keeping])
            with contextlib.suppress(errors.Unavailable):
                await self._keeper.stop()
            _raise_fault([keeping, *tasks])

    @contextlib.asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        """Without a lease, whose renewals tell the time, the store is asked for it."""
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            await _cancel([task])

    async def _follow(self) -> None:
        wall = self._parts.wall
        while wall.stated() is None:
            await wall.wait(asyncio.Event(), wall.now() + self._parts.tuning.lease / 3)
            asked = wall.steady()
            with contextlib.suppress(errors.FairleadError):
                ((at,),) = await self.read(lambda session: session.rows("store_clock"))
                wall.follow(clock.from_millis(at), asked)

    async def _pause(self) -> None:
        """For something to pass by itself."""
        wall = self._parts.wall
        await wall.wait(asyncio.Event(), wall.now() + self._parts.tuning.poll)

    async def _heed_migrations(self) -> None:
        """End where a newer program took something away: what we wrote then would be wrong."""
        wall = self._parts.wall
        while True:
            await wall.wait(asyncio.Event(), wall.now() + _SCHEMA_LOOK)
            with contextlib.suppress(errors.Unavailable):
                await asyncio.to_thread(self._parts.store.pending_migrations)

    async def _change_dead(self, query: str, key: messages.EffectKey, **values: int) -> None:
        rows = await self._runner.run_on_writer(
            lambda s: s.rows(query, stream=key.stream, seq=key.seq, n=key.n, **values)
        )
        if not rows:
            raise errors.NotFound(
                f"no dead effect: {key.stream}.{key.seq}.{key.n}",
                hint="list them with fairlead outbox list --dead",
            )

    async def _change_dead_timer(
        self, query: str, stream: messages.StreamName, name: str, **values: int
    ) -> None:
        rows = await self._runner.run_on_writer(
            lambda s: s.rows(query, stream=stream, timer=name, **values)
        )
        if not rows:
            raise errors.NotFound(
                f"no dead timer of {stream}: {name}",
                hint="list them with fairlead timers list --dead",
            )

    def _check_store(self) -> None:
        """Refuse to run on a schema that is not ours, before anything is touched."""
        pending = self._parts.store.pending_migrations()
        if pending:
            raise errors.Conflict(
                f"the database is not migrated: {', '.join(pending)}",
                hint="run fairlead store migrate",
            )
        wall = self._parts.wall
        if wall.stated() is None:
            asked = wall.steady()
            wall.follow(self._parts.store.now(), asked)


class _Readers:
    """A few sessions that only read, each in a thread of its own."""

    def __init__(self, store: protocol.Store, count: int) -> None:
        self._store = store
        self._local = threading.local()
        self._open: list[protocol.Session] = []
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="fairlead-reader")

    async def run(self, function: Callable[[protocol.Session], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._call, function)

    async def close(self) -> None:
        """End the threads without standing in the way: one may wait for a slow server."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        for session in self._open:
            session.close()

    def _call(self, function: Callable[[protocol.Session], T]) -> T:
        kept: protocol.Session | None = getattr(self._local, "session", None)
        if kept is not None:
            # It may have ended while nothing was asked of it, as a restart of the server ends all.
            with contextlib.suppress(errors.Unavailable):
                return self._asked(kept, function)
        session = self._local.session = self._store.open()
        self._open.append(session)
        return self._asked(session, function)

    def _asked(self, session: protocol.Session, function: Callable[[protocol.Session], T]) -> T:
        try:
            return function(session)
        except errors.Unavailable:
            # The connection may be gone for good: the next call opens another.
            self._local.session = None
            self._open.remove(session)
            with contextlib.suppress(Exception):
                session.close()
            raise


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _fail_loudly(
    tasks: Sequence[asyncio.Task[None]], owner: asyncio.Task[object] | None
) -> None:
    """A worker that has lost one of its loops is worse than none: end the whole of it."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if owner is not None:
        owner.cancel()


def _raise_fault(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            # The cancellation was ours, to wake whoever ran the engine; it ends here.
            owner = asyncio.current_task()
            if owner is not None:
                owner.uncancel()
            if isinstance(fault, errors.Conflict):
                raise fault
            raise RuntimeError("a loop of the engine broke") from fault


def _store_id(session: protocol.Session) -> str:
    """Eight letters that tell this store's idempotency keys from any other's."""
    session.rows("put_fact", name="store_id", value=secrets.token_hex(4))
    ((value,),) = session.rows("get_fact", name="store_id")
    return str(value)
