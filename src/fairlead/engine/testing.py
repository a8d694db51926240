"""How machines and what stands on them are tested: pure tables, wound clocks, crashes.

given(TRIP, Departed("depot/a", 1, 2)).when(Arrive(1)).then(LegDriven(1))

await crash_at_every_commit(Play(fresh_store, build, act, settled), each_life=check)
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fairlead import errors
from fairlead.engine import clock, messages, service
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol

START = datetime(2030, 1, 1, tzinfo=UTC)


class HandWoundClock:
    """Time that moves only when a test says so."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self._waiting: set[asyncio.Event] = set()

    def now(self) -> datetime:
        return self._now

    def steady(self) -> float:
        return (self._now - START).total_seconds()

    def stated(self) -> clock.Millis:
        return clock.to_millis(self._now)

    def follow(self, theirs: datetime, asked: float) -> None:
        """A test's word counts, not the store's."""

    def advance(self, by: timedelta) -> None:
        """Move on; whoever waits looks at the time again."""
        self._now += by
        for waiting in list(self._waiting):
            waiting.set()

    async def wait(self, signal: asyncio.Event, until: datetime) -> None:
        moved = asyncio.Event()
        self._waiting.add(moved)
        try:
            while self._now < until and not signal.is_set():
                moved.clear()
                await _first(signal, moved)
        finally:
            self._waiting.discard(moved)


async def _first(*signals: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(signal.wait()) for signal in signals]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


@dataclass(frozen=True, slots=True)
class Given:
    """A machine at a point of its life."""

    machine: machines.AnyMachine
    state: Any
    now: datetime = START

    def when(self, command: object) -> "When":
        return When(self, self.machine.decide(self.state, command, self.now))


@dataclass(frozen=True, slots=True)
class When:
    """What a machine decided."""

    given: Given
    decision: messages.Decision

    @property
    def state(self) -> Any:
        state = self.given.state
        for event in self.decision.events:
            state = self.given.machine.evolve(state, event)
        return state

    def then(self, *events: object) -> "When":
        """Exactly these events."""
        assert self.decision.events == events, self.decision
        return self

    def asks(self, *effects: object) -> "When":
        """Exactly these effects."""
        assert self.decision.effects == effects, self.decision
        return self

    def withdraws(self, *effects: object) -> "When":
        """Exactly these effects of before are no longer wanted: values, or classes."""
        assert tuple(each.effect for each in self.decision.withdraws) == effects, self.decision
        return self

    def sends(self, *sends: messages.Send) -> "When":
        """Exactly these commands to other machines."""
        assert self.decision.sends == sends, self.decision
        return self


def given(machine: machines.AnyMachine, *events: object) -> Given:
    """A machine after these events."""
    state = machine.initial
    for event in events:
        state = machine.evolve(state, event)
    return Given(machine, state)


@dataclass(slots=True)
class Fuse:
    """Burns down with each commit; at zero the store is gone, before or after that commit."""

    commits: int
    after: bool
    blown: bool = field(default=False, init=False)

    def check(self) -> None:
        if self.blown:
            raise errors.Unavailable("crashed", hint="this is a test")

    @contextlib.contextmanager
    def around_commit(self) -> Iterator[None]:
        self.check()
        self.commits -= 1
        if self.commits == 0 and not self.after:
            self.blown = True
        self.check()
        yield
        if self.commits == 0:
            self.blown = True
        self.check()


class FusedStore:
    """A store whose connection breaks for good at one chosen commit."""

    def __init__(self, store: protocol.Store, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    @property
    def writers(self) -> int:
        return self._store.writers

    def open(self, deadline: float | None = None) -> protocol.Session:
        self._fuse.check()
        return _FusedSession(self._store.open(deadline), self._fuse)

    def migrate(self) -> list[str]:
        return self._store.migrate()

    def pending_migrations(self) -> list[str]:
        return self._store.pending_migrations()

    def now(self) -> datetime:
        return self._store.now()

    def listen(self, channel: str) -> protocol.Listener | None:  # noqa: ARG002 - nobody else writes
        return None


class _FusedSession:
    def __init__(self, session: protocol.Session, fuse: Fuse) -> None:
        self._session = session
        self._fuse = fuse

    @contextlib.contextmanager
    def transaction(self) -> Iterator[protocol.Transaction]:
        self._fuse.check()
        with self._session.transaction() as transaction:
            yield _FusedTransaction(transaction, self._fuse)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        if not query.startswith(("claim", "register", "renew")):
            self._fuse.check()
            return self._session.rows(query, **values)
        with self._fuse.around_commit():
            return self._session.rows(query, **values)

    def page(
        self, query: str, limit: int, most_bytes: int, **values: Any
    ) -> tuple[list[tuple[Any, ...]], bool]:
        self._fuse.check()
        return self._session.page(query, limit, most_bytes, **values)

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        with self._fuse.around_commit():
            return self._session.script(steps, first_must_hit=first_must_hit)

    def close(self) -> None:
        self._session.close()


class _FusedTransaction:
    def __init__(self, transaction: protocol.Transaction, fuse: Fuse) -> None:
        self._transaction = transaction
        self._fuse = fuse
        self.load = transaction.load
        self.more = transaction.more
        self.number = transaction.number
        self.epoch = transaction.epoch

    def write(self, writes: protocol.Writes) -> None:
        with self._fuse.around_commit():
            self._transaction.write(writes)


@dataclass(frozen=True, slots=True)
class Play:
    """A story that must come out the same wherever it is cut."""

    fresh_store: Callable[[], protocol.Store]
    build: Callable[[protocol.Store, clock.Clock], service.Engine]
    act: Callable[[service.Engine], Awaitable[None]]
    """Submit the story's commands under fixed ids; safe to do again."""

    settled: Callable[[service.Engine], Awaitable[bool]]
    lease: timedelta = timedelta(seconds=15)
    patience: float = 120.0
    """Seconds of real time, on a machine that is as busy as it likes."""


async def crash_at_every_commit(
    play: Play, check: Callable[[service.Engine], Awaitable[None]]
) -> int:
    """Cut the story before and after its 1st, 2nd, … commit; how many cuts there were."""
    cuts = 0
    while True:
        blown = [await _cut(play, Fuse(cuts + 1, after), check) for after in (False, True)]
        if not any(blown):
            return cuts
        cuts += 1


async def _cut(play: Play, fuse: Fuse, check: Callable[[service.Engine], Awaitable[None]]) -> bool:
    store = play.fresh_store()
    store.migrate()
    wall = HandWoundClock()
    with contextlib.suppress(errors.Unavailable):
        async with _life(play, FusedStore(store, fuse), wall) as engine:
            await _until_settled(play, engine, wall, fuse)
    # The dead worker's lease must run out before anybody may touch what it held.
    wall.advance(play.lease * 2)
    async with _life(play, store, wall) as engine:
        await _until_settled(play, engine, wall, Fuse(0, after=True))
        await check(engine)
    return fuse.blown


@contextlib.asynccontextmanager
async def _life(
    play: Play, store: protocol.Store, wall: clock.Clock
) -> AsyncIterator[service.Engine]:
    async with play.build(store, wall).running() as engine:
        await play.act(engine)
        yield engine


async def _until_settled(
    play: Play, engine: service.Engine, wall: HandWoundClock, fuse: Fuse
) -> None:
    async with asyncio.timeout(play.patience):
        while not fuse.blown and not await play.settled(engine):
            # Real time for threads to work, wound time for backoffs and timers to pass.
            await asyncio.sleep(0.002)
            wall.advance(timedelta(milliseconds=250))
