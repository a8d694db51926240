"""Waiting is a row: due timers become commands for the stream that set them.

A timer needs no handler: any worker fires it that knows the machine, whatever queue the stream
has. A machine, command or version that only a newer program knows is left to that one, and so
is a timer of a stream whose state only that one can read. A timer that its machine refuses waits
longer each time; after the last attempt it lies dead until a person retries or discards it.
"""

import asyncio
import functools
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import batch, clock, codec, failures, messages, runner
from fairlead.engine.store import protocol

_BATCH = 256
_LONGEST_DELAY = timedelta(minutes=5)
_ATTEMPTS = 12
"""As many as an effect has; then a timer lies dead until a person retries or discards it."""

_log = structlog.get_logger(__name__)


class Timers:
    """Fires timers for one worker."""

    def __init__(
        self,
        runner_: runner.Runner,
        registry: batch.MachineRegistry,
        wall: clock.Clock,
        poll: timedelta,
    ) -> None:
        self._runner = runner_
        self._registry = registry
        self._clock = wall
        self._poll = poll
        self._knows = _knows(registry)
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
            rows, due = await self._runner.run_on_writer(
                lambda session: _claim_due(session, fence, self._knows, now)
            )
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
            message_codec = self._registry.of(stream_name).codec.commands
            command = message_codec.decode(codec.Encoded(type_, version, data))
        except Exception as error:  # noqa: BLE001 - whatever an upcaster raises, the others go on
            self._fail(key, attempts, error, unread=not isinstance(error, errors.Newer))
            return
        cause = messages.CommandId(f"timer {name} {stream}.{seq}")
        submission = messages.Submission(stream_name, command, cause, key)
        self._runner.post(runner.Item(submission, done))

    def _delivered(self, key: messages.TimerKey, attempts: int, outcome: runner.Outcome) -> None:
        if not isinstance(outcome, Exception) or isinstance(outcome, batch.Stale):
            return
        self._fail(key, attempts, outcome)

    def _fail(
        self, key: messages.TimerKey, attempts: int, error: Exception, *, unread: bool = False
    ) -> None:
        # What this program cannot read was not tried, and a store that is away is nobody's fault.
        tried = 0 if unread or isinstance(error, errors.Unavailable) else 1
        is_dead = unread or (tried == 1 and attempts + 1 >= _ATTEMPTS)
        text = failures.describe(error)
        _log.warning("timer_failed", stream=key.stream, timer=key.name, dead=is_dead, error=text)
        now = self._clock.now()
        delay = min(timedelta(seconds=0.5) * 2 ** min(attempts, 20), _LONGEST_DELAY)
        if isinstance(error, errors.Newer):
            # A newer worker can fire it as it is: keep it from that one no longer than a poll.
            delay = self._poll
        values = {
            "due": clock.to_millis(now + delay),
            "dead": clock.to_millis(now) if is_dead else None,
            "error": text,
            "attempts": tried,
        }
        task = asyncio.get_running_loop().create_task(self._postpone(key, values))
        task.add_done_callback(self._postponed)

    async def _postpone(self, key: messages.TimerKey, values: Mapping[str, object]) -> None:
        await self._runner.run_on_writer(
            lambda session: session.rows(
                "postpone_timer", stream=key.stream, name=key.name, seq=key.seq, **values
            )
        )
        self.nudge()

    def _postponed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            _log.warning("timer_not_postponed", error=str(task.exception()))
            # The row stays held under our fence, known to nobody: the keeper frees it.
            self.unsure()


def _knows(registry: batch.MachineRegistry) -> str:
    """What can be read here, as claims have it: {"MACHINE TYPE": newest version}.

    With the commands stand the states, as "MACHINE state TYPE": a stream whose state cannot be
    read here cannot be woken here.
    """
    newest: dict[str, int] = {}
    for machine in registry.machines:
        registered = registry.of(machine.name).codec
        newest |= {f"{machine.name} {name}": v for _, name, v in registered.commands.readable}
        newest |= {f"{machine.name} state {name}": v for _, name, v in registered.states.readable}
    return msgspec.json.encode(newest).decode()


def _claim_due(
    session: protocol.Session, fence: int, knows: str, now: datetime
) -> tuple[list[tuple[Any, ...]], int | None]:
    at = clock.to_millis(now)
    ((due,),) = session.rows("next_timer")
    if due is None or due > at:
        return [], due
    rows = session.rows("claim_timers", fence=fence, knows=knows, now=at, limit=_BATCH)
    ((due,),) = session.rows("next_timer")
    if due is not None and due <= at and len(rows) < _BATCH:
        # Due and left lying: what only others can read must not hide when ours is due.
        due = next((known for (known,) in session.rows("next_known_timer", knows=knows)), None)
    return rows, due
