"""Races that a worker loses: nothing of it may stop working, and nothing may stay held."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.engine import leases, messages
from fairlead.engine.store import protocol
from tests.durability import checks, story
from tests.durability.conftest import schema


class StumblingStore:
    """A store where one named statement loses its race once, as by a deadlock."""

    def __init__(self, store: protocol.Store, query: str) -> None:
        self._store = store
        self._query = query
        self.stumbled = False
        self.writers = store.writers
        self.migrate = store.migrate
        self.pending_migrations = store.pending_migrations
        self.listen = store.listen

    def open(self, deadline: float | None = None) -> protocol.Session:
        return _StumblingSession(self._store.open(deadline), self)

    def now(self) -> datetime:
        return self._store.now()

    def step(self, query: str) -> None:
        if query == self._query and not self.stumbled:
            self.stumbled = True
            raise protocol.Lost


class _StumblingSession:
    def __init__(self, session: protocol.Session, store: StumblingStore) -> None:
        self._session = session
        self._store = store
        self.transaction = session.transaction
        self.page = session.page
        self.close = session.close

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        self._store.step(query)
        return self._session.rows(query, **values)

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        self._store.step(steps[0][0])
        return self._session.script(steps, first_must_hit=first_must_hit)


@pytest.mark.parametrize(
    "query",
    ["renew_worker", "dead_owners", "claim_effects", "claim_timers", "advance_projection"],
)
async def test_a_lost_race_ends_no_loop(tmp_path: Path, query: str) -> None:
    # Long enough for a lease that nobody renews to lapse on the way.
    size = story.Size(strikes=30)
    story_setup = story.StorySetup(
        str(tmp_path / "races.db"), tmp_path / "rollout", size, lease_seconds=0.6
    )
    store = StumblingStore(story_setup.store(), query)
    store.migrate()
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        await story.order(door, size)
        await door.write(_leave_a_lapsed_worker)

    async with story.engine(story_setup, store).running() as running:
        await story.over(running, size)

    checks.check(story_setup)
    assert store.stumbled


async def test_a_commit_that_outlives_its_worker_is_taken_over(
    postgres_url: str, tmp_path: Path
) -> None:
    size = story.Size(trips=1, strikes=1)
    story_setup = story.StorySetup(schema(postgres_url, "late"), tmp_path / "rollout", size)
    story_setup.store().migrate()
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        await story.order(door, size)
        fence = await door.write(_leave_a_dead_neighbour)
    # The worker is dead, but the server still has its claim to commit.
    with open_claim(story_setup.database, fence) as late:
        async with story.engine(story_setup, story_setup.store()).running() as running:
            await _until_buried(story_setup.database, fence)

            late.commit()

            await story.over(running, size)
    checks.check(story_setup)


@pytest.mark.slow
async def test_locks_of_a_worker_that_fell_silent_are_taken_from_it(
    postgres_url: str, tmp_path: Path
) -> None:
    story_setup = story.StorySetup(schema(postgres_url, "silent"), tmp_path / "rollout")
    story_setup.store().migrate()
    depot = messages.stream_name("depot", "d0")
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        await story.order(door, story_setup.size)
    with contextlib.closing(story_setup.store().open()) as session:
        # Its machine is suspended between what it read under lock and what it would write.
        silent = session.transaction()
        silent.__enter__().load(protocol.Needed([depot], careful=True))

        async with story.engine(story_setup, story_setup.store()).running() as running:
            await story.over(running, story_setup.size)

        with pytest.raises(errors.Unavailable):
            session.rows("count_rows")
        with contextlib.suppress(errors.Unavailable):
            silent.__exit__(None, None, None)
    checks.check(story_setup)


@contextlib.contextmanager
def open_claim(url: str, fence: int) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url) as connection:
        claimed = connection.execute("UPDATE outbox SET owner = %s RETURNING 1", [fence])
        assert len(claimed.fetchall()) == 1
        yield connection


async def _until_buried(url: str, fence: int) -> None:
    """Until the dead worker has been found, and the finder has looked around once more."""
    async with asyncio.timeout(story.PATIENCE):
        while _lease(url, fence) > 0:  # noqa: ASYNC110 - a row of the database sets no event
            await asyncio.sleep(0.02)
        await asyncio.sleep(story.LEASE.total_seconds())


def _lease(url: str, fence: int) -> int:
    """How long, in milliseconds, a worker is still thought alive."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT lease_until - extract(epoch FROM now()) * 1000 FROM workers WHERE fence = %s",
            [fence],
        ).fetchone()
    return int(row[0]) if row else 0


def _leave_a_lapsed_worker(session: protocol.Session) -> None:
    session.rows("register_worker", name="elsewhere:1", now=0, lease=1, serves="[]")


def _leave_a_dead_neighbour(session: protocol.Session) -> int:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    name = leases.worker_name().replace(f":{os.getpid()}", f":{gone.pid}")
    ((fence, _),) = session.rows("register_worker", name=name, now=0, lease=2**53, serves="[]")
    return int(fence)


KNOCKS = 60


class LeavingStore:
    """A store that can be gone, and tells of each who knocks meanwhile."""

    def __init__(self, store: protocol.Store) -> None:
        self._store = store
        self.gone = False
        self.knocks: asyncio.Queue[None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self.writers = store.writers
        self.migrate = store.migrate
        self.pending_migrations = store.pending_migrations
        self.listen = store.listen
        self.now = store.now

    def open(self, deadline: float | None = None) -> protocol.Session:
        if self.gone:
            self._loop.call_soon_threadsafe(self.knocks.put_nowait, None)
            raise errors.Unavailable("gone", hint="this is a test")
        return self._store.open()


async def test_a_store_that_is_away_is_not_stormed(tmp_path: Path) -> None:
    story_setup = story.StorySetup(str(tmp_path / "away.db"), tmp_path / "rollout")
    store = LeavingStore(story_setup.store())
    store.migrate()
    async with story.engine(story_setup, store).running() as running:
        store.gone = True
        with contextlib.suppress(errors.Unavailable):
            await running.write(_break_off)

        begun = time.monotonic()
        async with asyncio.timeout(story.PATIENCE):
            for _ in range(KNOCKS):
                await store.knocks.get()
        seconds = time.monotonic() - begun

        # Each loop looks once a poll, and the keeper a little more often; none of them spins. So
        # many knocks take a second; a machine that stands still makes it longer, never shorter.
        assert seconds > 1.0
        store.gone = False
        await story.order(running, story_setup.size)
        await story.over(running, story_setup.size)


def _break_off(session: protocol.Session) -> None:
    raise errors.Unavailable("the connection broke", hint="this is a test")
