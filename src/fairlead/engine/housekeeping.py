"""A worker that keeps its store small: now and then, old streams and events go to files.

One process on a store at a time, in small steps with pauses between them, on a thread and a
session of its own: whoever commits waits for one step at most.
"""

import asyncio
import contextlib
import secrets
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import structlog

from fairlead.engine import clock, retention
from fairlead.engine.store import protocol

_PAUSE_SECONDS = 0.02
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """How long what is kept, and where it goes."""

    events: timedelta
    commands: timedelta
    folder: Path
    every: timedelta = timedelta(hours=1)


class _Stopping(Exception):
    """The worker ends; the rest is left to the next turn."""


class Housekeeper:
    """Takes its turn again and again."""

    def __init__(
        self,
        store: protocol.Store,
        knows: retention.Knowledge,
        wall: clock.Clock,
        policy: Policy,
    ) -> None:
        self._store = store
        self._knows = knows
        self._clock = wall
        self._policy = policy

    async def run(self) -> None:
        while True:
            try:
                await self.turn()
            except Exception as error:  # noqa: BLE001 - a full archive disk must not end the worker
                _log.warning("retention_waits", error=repr(error))
            await self._clock.wait(asyncio.Event(), self._clock.now() + self._policy.every)

    async def turn(self) -> None:
        """Archive what is old, unless another process did so lately."""
        stopping = threading.Event()
        try:
            await asyncio.to_thread(self._work, stopping)
        finally:
            stopping.set()

    def _work(self, stopping: threading.Event) -> None:
        def pause() -> None:
            if stopping.wait(_PAUSE_SECONDS):
                raise _Stopping

        with contextlib.closing(self._store.open()) as session, contextlib.suppress(_Stopping):
            now = self._clock.now()
            due = clock.to_millis(now - self._policy.every)
            at = str(clock.to_millis(now))
            if session.rows("take_turn", name="retention", now=at, due=due):
                self._archive(session, pause)

    def _archive(self, session: protocol.Session, pause: retention.Pause) -> None:
        now, policy = self._clock.now(), self._policy
        policy.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}.jsonl"
        before = now - policy.events
        ended = retention.archive(session, before, policy.folder / f"streams-{stamp}", pause)
        age = retention.Age(before, now - policy.commands)
        file = policy.folder / f"events-{stamp}"
        living = retention.trim(session, self._knows, age, file, pause)
        for done in (ended, living):
            if done.file is not None:
                _log.info("archived", streams=done.streams, events=done.events, file=str(done.file))
