"""Waiting is a row: due timers become commands for the stream that set them."""

import asyncio
import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog

from fairlead import errors
from fairlead.engine import batch, clock, codec, messages, runner
from fairlead.engine.store import protocol

_BATCH = 256
_LONGEST_DELAY = timedelta(minutes=5)
_log = structlog.get_logger(__name__)


class Timers:
    """Fires timers for one worker."""

    def __init__(
        self,
        runner_: runner.Runner,
        repertoire: batch.Repertoire,
        wall: clock.Clock,
        poll: timedelta,
    ) -> None:
        self._runner = runner_
        self._repertoire = repertoire
        self._clock = wall
        self._poll = poll
        self._wake = asyncio.Event()
        self._until: datetime | None = None
        self.fence: Callable[[], int | None] = lambda: None
        self.unsure: Callable[[], None] = lambda: None
        """A claim may or may not have happened, or a held row could not be given back."""

    def heard(self, due: clock.Millis) -> None:
        """A timer was set here: wake in time for it, not only at the next poll."""
        if self._until is None or clock.from_millis(due) < self._until:
            self._wake.set()

    def nudge(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            self._until = await self._fire()
            await self._clock.wait(self._wake, self._until)

    async def _fire(self) -> datetime:
        """Deliver what is due; when to look again."""
        now = self._clock.now()
        fence = self.fence()
        if fence is None:
            return now + self._poll
        try:
            rows, due = await self._runner.errand(lambda session: _claim_due(session, fence, now))
        except (errors.FairleadError, protocol.Lost) as error:
            _log.warning("claim_failed", error=str(error))
            self.unsure()
            return now + self._poll
        for row in rows:
            self._deliver(row)
        if len(rows) == _BATCH:
            self._wake.set()
        later = now + self._poll
        if due is None or (not rows and clock.from_millis(due) <= now):
            # Due, but another worker is about to take it.
            return later
        return min(later, clock.from_millis(due))

    def _deliver(self, row: tuple[Any, ...]) -> None:
        stream, name, seq, type_, version, data, _due, attempts, stream_name = row
        key = messages.TimerKey(stream, name, seq)
        done = functools.partial(self._delivered, key, attempts)
        try:
            lexicon = self._repertoire.of(stream_name).codec.commands
            command = lexicon.decode(codec.Encoded(type_, version, data))
        except errors.FairleadError as error:
            done(error)
            return
        cause = messages.CommandId(f"timer {name} {stream}.{seq}")
        submission = messages.Submission(stream_name, command, cause, key)
        self._runner.post(runner.Item(submission, done))

    def _delivered(self, key: messages.TimerKey, attempts: int, outcome: runner.Outcome) -> None:
        if not isinstance(outcome, Exception) or isinstance(outcome, batch.Stale):
            return
        _log.warning("timer_failed", stream=key.stream, timer=key.name, error=str(outcome))
        delay = min(timedelta(seconds=0.5) * 2 ** min(attempts, 20), _LONGEST_DELAY)
        due = clock.to_millis(self._clock.now() + delay)
        task = asyncio.get_running_loop().create_task(self._postpone(key, due))
        task.add_done_callback(self._postponed)

    async def _postpone(self, key: messages.TimerKey, due: clock.Millis) -> None:
        await self._runner.errand(
            lambda session: session.rows(
                "postpone_timer", stream=key.stream, name=key.name, seq=key.seq, due=due
            )
        )
        self.nudge()

    def _postponed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            _log.warning("timer_not_postponed", error=str(task.exception()))
            # The row stays held under our fence, known to nobody: the keeper frees it.
            self.unsure()


def _claim_due(
    session: protocol.Session, fence: int, now: datetime
) -> tuple[list[tuple[Any, ...]], int | None]:
    at = clock.to_millis(now)
    ((due,),) = session.rows("next_timer")
    if due is None or due > at:
        return [], due
    rows = session.rows("claim_timers", fence=fence, now=at, limit=_BATCH)
    ((due,),) = session.rows("next_timer")
    return rows, due
