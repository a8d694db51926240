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
from datetime import timedelta
from typing import TypeVar

from fairlead import errors
from fairlead.engine import (
    batch,
    clock,
    leases,
    messages,
    notices,
    outbox,
    projections,
    runner,
    timers,
)
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol

T = TypeVar("T")


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
    views: Sequence[projections.Projection] = ()
    wall: clock.Clock = field(default_factory=clock.SystemClock)
    tuning: Tuning = field(default_factory=Tuning)
    told: Callable[[Sequence[batch.Told]], None] | None = None
    """Hears of every event after its commit, on a writer's thread; None costs nothing."""


@dataclass(slots=True)
class Counts:
    """What this process has done so far."""

    commits: int = 0
    events: int = 0
    troubles: int = 0


class Engine:
    """Durable machines at work."""

    def __init__(self, parts: Parts, *, perform: bool = True) -> None:
        self.counts = Counts()
        self._parts = parts
        self._perform = perform
        self._repertoire = batch.Repertoire(machines.Machines(parts.machines))
        gather = parts.tuning.gather.total_seconds()
        self._runner = runner.Runner(parts.store, self._repertoire, parts.wall, gather=gather)
        self._outbox = outbox.Outbox(
            self._runner,
            self._repertoire,
            parts.handlers,
            parts.wall,
            outbox.Limits(parts.tuning.in_flight, parts.tuning.poll),
        )
        self._timers = timers.Timers(self._runner, self._repertoire, parts.wall, parts.tuning.poll)
        self._keeper = leases.Keeper(
            leases.worker_name(), self._runner, parts.wall, parts.tuning.lease
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

    @property
    def repertoire(self) -> batch.Repertoire:
        return self._repertoire

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Engine"]:
        """Everything on, until the block is left; then nothing is held any more."""
        await asyncio.to_thread(self._check_store)
        self._runner.start()
        try:
            if self._perform:
                async with self._working():
                    yield self
            else:
                yield self
        finally:
            await self._runner.stop()
            await self._readers.close()

    async def submit(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the domain's word
    ) -> messages.Receipt:
        """Give a command to a stream; the same id again gets the recorded answer."""
        return await self._runner.submit(messages.Submission(stream, command, id))

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

    async def write(self, function: Callable[[protocol.Session], T]) -> T:
        """Run a small writing function between two batches."""
        return await self._runner.errand(function)

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
            hooks.fence = lambda: self._keeper.fence() if self._outbox.has_room() else None
        self._outbox.fence = self._timers.fence = self._keeper.fence
        self._outbox.unsure = self._timers.unsure = self._keeper.rotate
        self._keeper.lost = self._outbox.abandon
        self._keeper.in_use = self._outbox.uses
        self._keeper.freed = self._nudge

    def _nudge(self) -> None:
        self._outbox.nudge()
        self._timers.nudge()

    def _committed(self, committed: runner.Committed) -> None:
        self.counts.commits += 1
        self.counts.events += committed.events
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
        self._outbox.store_id = await self._runner.errand(_store_id)
        await self._keeper.start()
        ear = notices.Ear(store, protocol.WORK_CHANNEL, self._outbox.nudge)
        ear.start()
        keeping = asyncio.create_task(self._keeper.run())
        loops = [self._outbox.run, self._timers.run, self.projector.run]
        tasks = [asyncio.create_task(loop()) for loop in loops]
        watching = asyncio.create_task(_fail_loudly([keeping, *tasks], asyncio.current_task()))
        try:
            yield
        finally:
            watching.cancel()
            ear.stop()
            # New effects are left to others; the lease is kept until ours are done.
            self._runner.hooks.fence = lambda: None
            await _cancel(tasks)
            await self._outbox.drain(self._parts.tuning.drain)
            await _cancel([keeping])
            with contextlib.suppress(errors.Unavailable):
                await self._keeper.stop()
            _raise_fault([keeping, *tasks])

    async def _change_dead(self, query: str, key: messages.EffectKey, **values: int) -> None:
        rows = await self._runner.errand(
            lambda s: s.rows(query, stream=key.stream, seq=key.seq, n=key.n, **values)
        )
        if not rows:
            raise errors.NotFound(
                f"no dead effect: {key.stream}.{key.seq}.{key.n}",
                hint="list them with fairlead outbox list --dead",
            )

    def _check_store(self) -> None:
        """Refuse to run on a schema that is not ours, before anything is touched."""
        pending = self._parts.store.pending_migrations()
        if pending:
            raise errors.Conflict(
                f"the database is not migrated: {', '.join(pending)}",
                hint="run fairlead store migrate",
            )
        if isinstance(self._parts.wall, clock.SystemClock):
            self._parts.wall.follow(self._parts.store.now)


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
        session: protocol.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._store.open()
            self._open.append(session)
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
            raise RuntimeError("a loop of the engine broke") from fault


def _store_id(session: protocol.Session) -> str:
    """Eight letters that tell this store's idempotency keys from any other's."""
    session.rows("put_fact", name="store_id", value=secrets.token_hex(4))
    ((value,),) = session.rows("get_fact", name="store_id")
    return str(value)
