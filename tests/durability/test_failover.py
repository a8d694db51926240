"""PostgreSQL under Patroni loses its leader under load: workers follow, nothing else is lost.

By the names of all nodes, and through a pooler that is told who leads, as a callback of Patroni
would tell it.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from fairlead.clients.postgres.server.home import make_home
from fairlead.clients.postgres.server.identity import unprivileged_identity
from tests import ha
from tests.durability import checks, load, story
from tools.servers import patroni, pgbouncer

Way = Literal["hosts", "session", "transaction"]

SIZE = story.Size(depots=1, trips=4, legs=5, at_once=4, strikes=40)
LEG_SECONDS = 0.2
LEASE_SECONDS = 5.0
ORDER_SECONDS = 0.5
# Patroni's lock lasts 20 s, then comes the election, then workers find the new leader.
STANDSTILL_SECONDS = 90.0

FAULTS: dict[str, tuple[Callable[[patroni.Node], None], Callable[[patroni.Node], None]]] = {
    "killed": (patroni.Node.kill, patroni.Node.start),
    "paused": (patroni.Node.pause, patroni.Node.resume),
    "partitioned": (patroni.Node.cut, patroni.Node.mend),
}


@pytest.mark.ha
@pytest.mark.parametrize("way", ["hosts", "session", "transaction"])
async def test_a_leader_that_dies_or_is_cut_off_costs_time_and_nothing_else(
    patroni_cluster: patroni.PatroniCluster,
    tmp_path: Path,
    way: Way,
    record_property: Callable[[str, object], None],
) -> None:
    database = await asyncio.to_thread(patroni_cluster.databases.create_database, "failover")
    with contextlib.ExitStack() as opened:
        pooler = None
        if way != "hosts":
            pooler = opened.enter_context(pooler_before(patroni_cluster.leader(), way))
            database = pooler.url("failover")
        story_setup = story.StorySetup(
            database, tmp_path / "rollout", SIZE, LEG_SECONDS, LEASE_SECONDS
        )
        await asyncio.to_thread(story_setup.store().migrate)
        stood_still = {}

        workers = opened.enter_context(load.workers(story_setup, tmp_path))
        async with load.running_load(story_setup, ORDER_SECONDS) as (coming, progress):
            await load.at_work(coming.running, workers)
            for name in FAULTS:
                await progress.next()
                progress.restart()
                async with lost_leader(patroni_cluster, name, pooler):
                    await progress.next()
                    stood_still[name] = round(progress.longest, 1)
                await asyncio.to_thread(patroni_cluster.wait_until_whole)

        again = checks.check(dataclasses.replace(story_setup, size=coming.total))
        record_property("failover", {"stood_still": stood_still, "performed_again": again})
        assert epoch_of(story_setup)
        assert max(stood_still.values()) < STANDSTILL_SECONDS


@contextlib.contextmanager
def pooler_before(leader: patroni.Node, mode: pgbouncer.Mode) -> Iterator[pgbouncer.PgBouncer]:
    """In a folder that it may read again when it runs as nobody."""
    ha.needed(pgbouncer.find)
    home = make_home(unprivileged_identity())
    try:
        with pgbouncer.PgBouncer(home.folder / "pooler", leader.port, mode) as pooler:
            yield pooler
    finally:
        home.remove()


@contextlib.asynccontextmanager
async def lost_leader(
    cluster: patroni.PatroniCluster, fault: str, pooler: pgbouncer.PgBouncer | None
) -> AsyncIterator[None]:
    """From another leader on, until the old one is back."""
    begin, end = FAULTS[fault]
    leader = cluster.leader()
    await asyncio.to_thread(begin, leader)
    other = await asyncio.to_thread(cluster.wait_for_another_leader, leader)
    if pooler is not None:
        pooler.follow(other.port)
    yield
    end(leader)


def epoch_of(story_setup: story.StorySetup) -> str:
    """Part of the keys of effects born now; a store that was never led by another has none."""
    with contextlib.closing(story_setup.store().open()) as session:
        ((fact,),) = session.rows("get_fact", name="epoch")
    return str(fact).partition(" ")[2]
