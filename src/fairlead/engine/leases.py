"""Who is at work: a lease per worker, renewed in time, with a fence that never comes again.

An effect is held under its worker's fence. While the lease is renewed, the hold stands;
once it lapses, any other worker frees what it held. A neighbour on the same machine need
not wait: it sees that the process is gone. A worker that finds its own lease
lapsed drops what it was doing and starts over under a new fence, so an answer of its old
life can no longer settle anything that was taken over.
"""

import asyncio
import contextlib
import functools
import os
import socket
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from fairlead import errors
from fairlead.engine import clock, runner
from fairlead.engine.store import protocol

# A worker that lapsed, ended or died may still have a commit on its way: a server does not
# notice that its client is gone while it waits for a lock or the disk. The row stays, so
# that what such a commit writes under the old fence comes free in a later round.
_REMEMBERED = timedelta(hours=1)
_log = structlog.get_logger(__name__)


class Keeper:
    """Keeps one worker's lease and buries others'."""

    def __init__(
        self, name: str, runner_: runner.Runner, wall: clock.Clock, duration: timedelta
    ) -> None:
        self._name = name
        self._runner = runner_
        self._clock = wall
        self._duration = duration
        self._until: datetime | None = None
        self._fence: int | None = None
        self._old: set[int] = set()
        """Fences of before a broken connection, kept until nothing runs under them."""

        self._wake = asyncio.Event()
        self.lost: Callable[[int], None] = lambda _: None
        self.freed: Callable[[], None] = lambda: None
        self.in_use: Callable[[int], bool] = lambda _: False

    def fence(self) -> int | None:
        """The fence to hold new effects under; None while the lease is not certain."""
        if self._until is None or self._clock.now() >= self._until:
            return None
        return self._fence

    async def start(self) -> None:
        await self._register()
        with contextlib.suppress(errors.Unavailable):  # the loop tries again in a moment
            await self._free_the_dead()

    async def run(self) -> None:
        while True:
            await self._clock.wait(self._wake, self._clock.now() + self._duration / 3)
            self._wake.clear()
            try:
                await self._tend()
            except (errors.FairleadError, protocol.Lost) as error:
                # Lost, too: two workers that free the same rows may deadlock, and the one
                # that the database sends away must not stop renewing for that.
                _log.warning("lease_not_renewed", worker=self._name, error=str(error))
                # Try again soon: a second of silence must not cost the lease.
                self._clock_retry()
                self._check_lapsed()

    async def stop(self) -> None:
        """Give back what is held, so that others need not wait for the lease to lapse."""
        fences = {*self._old, *([self._fence] if self._fence is not None else [])}
        self._until = None
        for fence in fences:
            await self._runner.errand(functools.partial(_end, fence=fence, now=self._clock.now()))

    def rotate(self) -> None:
        """After a commit of unknown fate: new work under a new fence, the old runs out.

        Effects that such a commit wrote are held under the old fence but known to nobody;
        they come free when the old fence is ended.
        """
        if self._fence is not None:
            self._old.add(self._fence)
            self._fence = None
        self._wake.set()

    def _check_lapsed(self) -> None:
        """Cut off for too long: others do our work by now, so stop before we are told."""
        if self._until is not None and self._clock.now() >= self._until:
            _log.error("lease_lapsed", worker=self._name, fence=self._fence)
            for fence in [*self._old, *([self._fence] if self._fence is not None else [])]:
                self.lost(fence)

    async def _tend(self) -> None:
        if self._fence is None:
            await self._register()
        for fence in [self._fence, *self._old]:
            if fence is not None:
                await self._renew(fence)
        for fence in [each for each in self._old if not self.in_use(each)]:
            await self._runner.errand(functools.partial(_end, fence=fence, now=self._clock.now()))
            self._old.discard(fence)
            self.freed()
        await self._free_the_dead()

    async def _free_the_dead(self) -> None:
        now = self._clock.now()
        with contextlib.suppress(protocol.Lost):  # another is at it; the next round sees
            if await self._runner.errand(functools.partial(_bury, name=self._name, now=now)):
                self.freed()

    async def _renew(self, fence: int) -> None:
        now = self._clock.now()
        until = now + self._duration
        kept = await self._runner.errand(
            lambda session: session.rows(
                "renew_worker",
                fence=fence,
                now=clock.to_millis(now),
                until=clock.to_millis(until),
            )
        )
        if kept and fence == self._fence:
            self._until = until
        if not kept:
            _log.error("lease_lost", worker=self._name, fence=fence)
            self._old.discard(fence)
            self.lost(fence)
            if fence == self._fence:
                await self._register()

    async def _register(self) -> None:
        until = self._clock.now() + self._duration
        rows = await self._runner.errand(
            lambda session: session.rows(
                "register_worker", name=self._name, until=clock.to_millis(until)
            )
        )
        self._fence, self._until = rows[0][0], until
        _log.info("lease_taken", worker=self._name, fence=self._fence)

    def _clock_retry(self) -> None:
        asyncio.get_running_loop().call_later(1.0, self._wake.set)


def _end(session: protocol.Session, fence: int, now: datetime) -> None:
    # The lease ends now, not at zero: a commit that outlived its broken connection may still
    # write rows under this fence, so it is buried for a while like any other.
    session.script(
        [
            ("release_effects", {"fence": fence}),
            ("release_timers", {"fence": fence}),
            ("end_worker", {"fence": fence, "now": clock.to_millis(now)}),
        ]
    )


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


def _bury(session: protocol.Session, name: str, now: datetime) -> int:
    """Free what dead workers held; how many rows came free."""
    at = clock.to_millis(now)
    for fence, other, _ in session.rows("live_workers", now=at):
        if _died_next_door(other, name):
            session.rows("end_worker", fence=fence, now=at)
    if not session.rows("lapsed_workers", now=at):
        return 0
    before = clock.to_millis(now - _REMEMBERED)
    effects, timers, _ = session.script(
        [
            ("free_effects", {"now": at}),
            ("free_timers", {"now": at}),
            ("forget_workers", {"before": before}),
        ]
    )
    return effects + timers


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
