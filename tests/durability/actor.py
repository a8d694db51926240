"""A process that tells a story and kills itself at one chosen commit.

Started through multiprocessing's fork server, which has the modules loaded already: a start
costs some milliseconds instead of a third of a second, and there are hundreds of them.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fairlead.engine import leases
from fairlead.engine.store import protocol, queries
from tests.durability import story

UNKNOWN = 255
"""What multiprocessing says when its fork server did not tell how a child ended."""
WRITING = frozenset(
    name
    for name, text in queries.load("sqlite").items()
    if not text.startswith("SELECT") and name != "dead_owners"
)
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.durability.actor"])


@dataclass(frozen=True, slots=True)
class Cut:
    """The commit that is the last of a life, and whether it still happens."""

    commit: int
    after: bool
    far: bool
    """As if on another machine: only the lease tells others that it is dead."""


def live(story_setup: story.StorySetup, cut: Cut | None, log: Path) -> bool:
    """One life in a process of its own; True if it was cut short."""
    process = _CONTEXT.Process(target=_live, args=(story_setup, cut, log))
    process.start()
    process.join(story.PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
    code = process.exitcode
    process.close()
    if code == UNKNOWN:
        # How it ended got lost on the way here; what it left in the store is checked anyway.
        return True
    if code not in (0, -signal.SIGKILL) or (code and cut is None):
        raise AssertionError(f"a life ended with {code}: {log.read_text()[-4000:]}")
    return code != 0


def _live(story_setup: story.StorySetup, cut: Cut | None, log: Path) -> None:
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    store = story_setup.store()
    if cut is not None:
        store = DeadlyStore(store, cut)
        if cut.far:
            leases.worker_name = lambda: f"elsewhere/{uuid.uuid4().hex}:{os.getpid()}"
    asyncio.run(_tell(story_setup, store))


async def _tell(story_setup: story.StorySetup, store: protocol.Store) -> None:
    async with story.engine(story_setup, store).running() as running:
        await story.order(running, story_setup.size)
        await story.over(running, story_setup.size)


class DeadlyStore:
    """A store that kills its process right before or right after one commit."""

    def __init__(self, store: protocol.Store, cut: Cut) -> None:
        self._store = store
        self._cut = cut
        self._commits = 0
        self._lock = threading.Lock()
        self.writers = store.writers
        self.migrate = store.migrate
        self.pending_migrations = store.pending_migrations
        self.listen = store.listen

    def open(self, deadline: float | None = None) -> protocol.Session:
        return _DeadlySession(self._store.open(deadline), self)

    def now(self) -> datetime:
        return self._store.now()

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        with self._lock:
            self._commits += 1
            last = self._commits == self._cut.commit
        if last and not self._cut.after:
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if last:
            os.kill(os.getpid(), signal.SIGKILL)


class _DeadlySession:
    def __init__(self, session: protocol.Session, store: DeadlyStore) -> None:
        self._session = session
        self._store = store
        self.page = session.page
        self.close = session.close

    @contextlib.contextmanager
    def transaction(self) -> Iterator[protocol.Transaction]:
        with self._session.transaction() as transaction:
            yield _DeadlyTransaction(transaction, self._store)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        if query not in WRITING:
            return self._session.rows(query, **values)
        with self._store.committing():
            return self._session.rows(query, **values)

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        with self._store.committing():
            return self._session.script(steps, first_must_hit=first_must_hit)


class _DeadlyTransaction:
    def __init__(self, transaction: protocol.Transaction, store: DeadlyStore) -> None:
        self._transaction = transaction
        self._store = store
        self.load = transaction.load
        self.more = transaction.more
        self.number = transaction.number
        self.epoch = transaction.epoch

    def write(self, writes: protocol.Writes) -> None:
        with self._store.committing():
            self._transaction.write(writes)
