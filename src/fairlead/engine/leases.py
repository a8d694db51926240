"""Who is at work: a lease per worker, renewed in time, with a fence that never comes again.

An effect is held under its worker's fence. While the lease is renewed, the hold stands;
once it lapses, any other worker frees what it held. A neighbour on the same machine need
not wait: it sees that the process is gone. A worker whose lease has lapsed by its own steady
clock drops what it was doing at that moment, whatever the store is doing, and starts over under a
new fence, so an answer of its old life can no longer settle anything that was taken over.

Renewals have a session and a thread of their own with a deadline: they wait behind no commit.
That thread also renews unasked while the loop is too busy to ask (tens of thousands of commands
at once, a handler that computes): what this worker does would be done twice otherwise.
Freeing what others held may wait for locks, so it goes by way of the writer.
"""

import asyncio
import contextlib
import functools
import json
import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from fairlead import errors
from fairlead.engine import clock, messages, runner, sessions
from fairlead.engine.store import protocol

# Nothing needs the row of a worker that is gone; people may want to see that it was there.
_REMEMBERED = 3_600_000
_LOOK = timedelta(seconds=1)
"""A suspended machine stops the loop's own timers: how late a lapse is noticed at most."""

_START_SECONDS = 10.0
"""What the first registration may take, with opening the session: there is nothing to lose yet."""

_SHORTEST = timedelta(seconds=0.5)
"""What a renewal may take, also where a lease is shorter than anybody would have it."""

_UNASKED = 20
"""Renewals in a row, each half a lease after the last, or soon after one that failed, while the
loop is silent."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who holds a lease."""

    name: str
    serves: str
    """What this worker performs, for all to see (outbox.serves)."""


class Keeper:
    """Keeps one worker's lease and frees what dead ones held."""

    def __init__(
        self,
        worker: Worker,
        store: protocol.Store,
        runner_: runner.Runner,
        wall: clock.Clock,
        duration: timedelta,
    ) -> None:
        self._worker = worker
        self._runner = runner_
        self._clock = wall
        self._duration = duration
        self._deadline = max(duration / 5, min(duration / 2, _SHORTEST)).total_seconds()
        self._retry = min(1.0, duration.total_seconds() / 15)
        self._line = sessions.SessionThread(
            functools.partial(store.open, self._deadline),
            "fairlead-lease",
            # A clock that somebody winds by hand passes no time while nobody asks.
            self._unasked() if wall.stated() is None else None,
        )
        self._fence: int | None = None
        self._until: dict[int, float] = {}
        """By the steady clock, until when each of our fences is certain."""

        self._kept: dict[int, float] = {}
        """The same, as threads know it that the loop may not have heard of; always set whole."""

        self._old: set[int] = set()
        """Fences of before a broken connection, kept until nothing runs under them."""

        self._renew_now = asyncio.Event()
        self._free_now = asyncio.Event()
        self.lost: Callable[[int], None] = lambda _: None
        self.freed: Callable[[], None] = lambda: None
        self.in_use: Callable[[int], bool] = lambda _: False
        self.knows: Callable[[messages.Hold], bool] = lambda _: True

    def fence(self) -> int | None:
        """The fence to hold new effects under; None while the lease is not certain."""
        fence = self._fence
        return fence if fence is not None and self.stands(fence) else None

    def stands(self, fence: int) -> bool:
        """Whether nobody else can have taken over what this fence holds."""
        return fence in self._until and self._clock.steady() < self._certain_until(fence)

    async def start(self) -> None:
        # A file that others write to may be busy for longer than a renewal may take.
        until = asyncio.get_running_loop().time() + _START_SECONDS
        while not await self._registered(until):  # noqa: ASYNC110 - a busy store sets no event
            await asyncio.sleep(self._retry)
        with contextlib.suppress(errors.Unavailable):  # the loop tries again in a moment
            await self._free_the_dead()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._repeat(self._renew_now, self._renew_all))
            group.create_task(self._repeat(self._free_now, self._tend))

    async def stop(self) -> None:
        """Give back what is held, so that others need not wait for the lease to lapse."""
        fences = {*self._old, *([self._fence] if self._fence is not None else [])}
        self._until.clear()
        try:
            for fence in fences:
                await self._runner.run_on_writer(functools.partial(self._end, fence))
        finally:
            self._line.leave()

    def rotate(self) -> None:
        """After a commit of unknown fate: new work under a new fence, the old runs out.

        Effects that such a commit wrote are held under the old fence but known to nobody; they
        are found by asking, and come free while the others under that fence go on.
        """
        if self._fence is not None:
            self._old.add(self._fence)
            self._fence = None
        self._renew_now.set()
        self._free_now.set()

    async def _repeat(self, signal: asyncio.Event, work: Callable[[], Any]) -> None:
        while True:
            await self._clock.wait(signal, self._clock.now() + self._duration / 3)
            signal.clear()
            try:
                await work()
            except (errors.FairleadError, protocol.Lost) as error:
                # Lost, too: two workers that free the same rows may deadlock, and the one
                # that the database sends away must not stop for that.
                _log.warning("lease_work_failed", worker=self._worker.name, error=str(error))
                # Again soon, in real time: a moment of silence must not cost the lease.
                asyncio.get_running_loop().call_later(self._retry, signal.set)

    async def _watch(self) -> None:
        """Stop in time: cut off for so long, others do our work by now."""
        never = asyncio.Event()
        while True:
            left = min(map(self._certain_until, self._until), default=0.0) - self._clock.steady()
            pause = min(timedelta(seconds=left), _LOOK) if left > 0 else _LOOK
            await self._clock.wait(never, self._clock.now() + pause)
            for fence in [fence for fence in self._until if not self.stands(fence)]:
                _log.error("lease_lapsed", worker=self._worker.name, fence=fence)
                self._forget(fence)

    def _certain_until(self, fence: int) -> float:
        return max(self._until[fence], self._kept.get(fence, 0.0))

    def _forget(self, fence: int) -> None:
        self._until.pop(fence, None)
        self._old.discard(fence)
        if fence == self._fence:
            self._fence = None
            self._renew_now.set()
        self.lost(fence)

    async def _renew_all(self) -> None:
        fences = [*self._old, *([self._fence] if self._fence is not None else [])]
        for fence in fences:
            await self._renew(fence)
        if self._fence is None:
            await self._register()

    async def _renew(self, fence: int) -> None:
        kept, until = await self._ask("renew_worker", {"fence": fence})
        if fence not in self._until:
            # Lapsed here or given back meanwhile: nothing runs under it any more.
            return
        if kept:
            self._until[fence] = until
        else:
            _log.error("lease_lost", worker=self._worker.name, fence=fence)
            self._forget(fence)

    def _unasked(self) -> sessions.Unasked:
        half = self._duration.total_seconds() / 2
        return sessions.Unasked(self._renew_unasked, half, again=self._retry, most=_UNASKED)

    def _renew_unasked(self, session: protocol.Session) -> None:
        """In the thread. What was lost is left for the loop to find, which ends what runs."""
        for fence in tuple(self._until):
            values = {"fence": fence, **self._terms()}
            self._rows(session, "renew_worker", values, self._clock.steady())

    async def _registered(self, until: float) -> bool:
        """False where it is worth another try."""
        try:
            await self._register(_START_SECONDS)
        except errors.Unavailable:
            if asyncio.get_running_loop().time() >= until:
                raise
            return False
        return True

    async def _register(self, patience: float = 0.0) -> None:
        worker = self._worker
        values = {"name": worker.name, "serves": worker.serves}
        (fence,), until = await self._ask("register_worker", values, patience)
        self._fence = fence
        self._until[fence] = until
        _log.info("lease_taken", worker=worker.name, fence=fence)
        # What waits was not claimed while there was no fence.
        self.freed()

    async def _ask(
        self, query: str, values: dict[str, Any], patience: float = 0.0
    ) -> tuple[list[int], float]:
        """The fences that answer, and until when they are certain: counted from the asking."""
        asked = self._clock.steady()
        values |= self._terms()
        # The store has its own deadline; ours is for one that does not keep it.
        longest = max(patience, 1.25 * self._deadline)
        rows = await self._line.run(lambda s: self._rows(s, query, values, asked), longest)
        if rows:
            self._clock.follow(clock.from_millis(rows[0][1]), asked)
        return [row[0] for row in rows], asked + self._duration.total_seconds()

    def _rows(
        self, session: protocol.Session, query: str, values: dict[str, Any], asked: float
    ) -> list[tuple[Any, ...]]:
        """In the thread, and noted there.

        What a slow disk commits after the loop gave up waiting has renewed the lease all the same.
        """
        rows = session.rows(query, **values)
        until = asked + self._duration.total_seconds()
        known = {fence: at for fence, at in self._kept.items() if fence in self._until}
        self._kept = known | {row[0]: max(until, known.get(row[0], until)) for row in rows}
        return rows

    def _terms(self) -> dict[str, int | None]:
        return {
            "now": self._clock.stated(),
            "lease": int(self._duration.total_seconds() * 1000),
        }

    async def _tend(self) -> None:
        for fence in list(self._old):
            await self._let_go(fence)
        await self._free_the_dead()

    async def _let_go(self, fence: int) -> None:
        """Free what a fence of before holds and nobody here knows; end it if it holds no more."""
        rows = await self._runner.run_on_writer(lambda s: s.rows("effects_under", fence=fence))
        # Only now is it certain that all that was committed under it is known here. Ended before
        # that, it would free effects that are about to start.
        await self._runner.settled()
        if not self.in_use(fence):
            # Forgotten first: a renewal on its way must not take the end for a loss. If it cannot
            # be ended, its lease lapses.
            self._old.discard(fence)
            self._until.pop(fence, None)
            await self._runner.run_on_writer(functools.partial(self._end, fence))
            self.freed()
            return
        unknown = [key for key in rows if not self.knows(_hold(key, fence))]
        steps: list[tuple[str, dict[str, Any]]] = [
            ("release_some", {"fence": fence, "keys": json.dumps(unknown)}),
            # A timer that is delivered twice is stale the second time.
            ("release_timers", {"fence": fence}),
        ]
        if any(await self._runner.run_on_writer(lambda session: session.script(steps))):
            self.freed()

    async def _free_the_dead(self) -> None:
        with contextlib.suppress(protocol.Lost):  # another is at it; the next round sees
            if await self._runner.run_on_writer(self._bury):
                self.freed()

    def _bury(self, session: protocol.Session) -> int:
        """Free what is held under fences that no living worker has; how many rows came free.

        Also under one that was forgotten: a server may finish a commit of a worker that is long
        gone, and a suspended one may wake with a commit on its way.
        """
        now = self._clock.stated()
        for fence, other, *_ in session.rows("live_workers", now=now):
            if _died_next_door(other, self._worker.name):
                session.rows("end_worker", fence=fence, now=now)
        if session.rows("lapsed_workers", now=now, ago=_REMEMBERED):
            session.rows("forget_workers", now=now, ago=_REMEMBERED)
        # By name: a row that is freed and held again while we wait for its lock has another
        # owner, who may have registered after we looked.
        dead = [row[0] for row in session.rows("dead_owners", now=now)]
        if not dead:
            return 0
        _log.info("work_taken_over", fences=dead)
        fences = {"fences": dead}
        return sum(session.script([("free_effects", fences), ("free_timers", fences)]))

    def _end(self, fence: int, session: protocol.Session) -> None:
        session.script(
            [
                ("release_effects", {"fence": fence}),
                ("release_timers", {"fence": fence}),
                ("end_worker", {"fence": fence, "now": self._clock.stated()}),
            ]
        )


def _hold(key: tuple[Any, ...], fence: int) -> messages.Hold:
    stream, seq, n = key
    return messages.Hold(stream, seq, n, fence)


def worker_name() -> str:
    """Where a process lives, so that its neighbours can see for themselves that it died."""
    return f"{_place()}:{os.getpid()}"


def _place() -> str:
    """This machine's boot and process namespace; containers never share both."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        # Not Linux: no neighbour can tell, so only the lease counts.
        return f"{socket.gethostname()}/{uuid.uuid4().hex}"
    return f"{socket.gethostname()}/{boot[:8]}/{namespace}"


def _died_next_door(other: str, ours: str) -> bool:
    """A process of this very machine that is no more: no need to wait for its lease."""
    place, _, pid = other.rpartition(":")
    if place != ours.rpartition(":")[0]:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
