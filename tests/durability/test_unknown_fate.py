"""A commit whose answer never came: it may have happened, and nobody must have to ask."""

import asyncio
import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.engine.store import postgres, protocol
from tests.durability import checks, proxy, story
from tests.durability.conftest import schema

AT_ONCE = 6


async def tell(story_setup: story.StorySetup, wire: proxy.Wire) -> None:
    """The whole story in one process, behind the wire; a start that fails is made again."""
    async with asyncio.timeout(story.PATIENCE), proxy.wired(story_setup.database, wire) as url:
        behind = dataclasses.replace(story_setup, database=url)
        while True:
            try:
                async with story.engine(behind, behind.store()).running() as running:
                    await story.order(running, story_setup.size)
                    await story.over(running, story_setup.size)
            except errors.Unavailable:
                continue
            return


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_connection_cut_at_any_commit_loses_and_doubles_nothing(
    postgres_url: str,
    tmp_path: Path,
    *,
    after: bool,
    record_property: Callable[[str, object], None],
) -> None:
    async def cut_at(commit: int) -> bool:
        story_setup = story.StorySetup(
            schema(postgres_url, f"cut_{commit}"), tmp_path / f"{commit}.book"
        )
        await asyncio.to_thread(story_setup.store().migrate)
        wire = proxy.Wire(commit, after, down_seconds=0.3 * (commit % 2))
        await tell(story_setup, wire)
        again.append(await asyncio.to_thread(checks.check, story_setup))
        return wire.broken

    again: list[int] = []
    cuts = 0
    for first in itertools.count(1, AT_ONCE):
        broken = await asyncio.gather(*map(cut_at, range(first, first + AT_ONCE)))
        cuts += sum(broken)
        if not any(broken):
            break

    record_property("cuts", cuts)
    record_property("performed_again", sum(again))
    assert cuts >= 25


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_server_that_dies_at_a_commit_is_waited_for(tmp_path: Path, *, after: bool) -> None:
    with PostgresServer() as server:
        for commit in (5, 9, 14):
            database = server.create_database(f"death_{commit}")
            story_setup = story.StorySetup(database, tmp_path / f"{commit}.book")
            story_setup.store().migrate()
            wire = proxy.Wire(
                commit, after, blow=lambda: asyncio.to_thread(server.restart, "immediate")
            )

            await tell(story_setup, wire)

            checks.check(story_setup)
            assert wire.broken


ASKED: dict[str, Callable[[protocol.Store], object]] = {
    "LISTEN": lambda store: store.listen("fairlead_work"),
    "clock_timestamp": lambda store: store.now(),
    "to_regclass": lambda store: store.pending_migrations(),
    "CREATE TABLE streams": lambda store: store.migrate(),
}


@pytest.mark.parametrize("text", ASKED)
async def test_a_store_that_breaks_off_says_that_it_is_unavailable(
    postgres_url: str, text: str
) -> None:
    async with proxy.wired(postgres_url, proxy.Wire(1, after=False, text=text)) as url:
        store = postgres.PostgresStore(url)

        with pytest.raises(errors.Unavailable) as caught:
            await asyncio.to_thread(ASKED[text], store)

    assert caught.value.hint
    assert len(postgres.PostgresStore(postgres_url).pending_migrations()) > 0


@pytest.mark.parametrize("claim", ["UPDATE outbox SET owner = $", "UPDATE timers SET owner = $"])
async def test_a_claim_whose_answer_was_lost_is_made_again(
    postgres_url: str, tmp_path: Path, claim: str
) -> None:
    size = story.Size(depots=1, trips=2, legs=1, at_once=2, strikes=1)
    story_setup = story.StorySetup(schema(postgres_url, "claims"), tmp_path / "rollout", size)
    story_setup.store().migrate()
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        await story.order(door, size)
    # Only one claim is needed, and it is the one that is cut.
    wire = proxy.Wire(1, after=True, text=claim)

    await tell(story_setup, wire)

    checks.check(story_setup)
    assert wire.broken
