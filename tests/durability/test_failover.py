"""PostgreSQL under Patroni loses its leader under load: workers follow, nothing else is lost."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.durability import checks, load, story
from tools.servers import patroni

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
async def test_a_leader_that_dies_or_is_cut_off_costs_time_and_nothing_else(
    patroni_cluster: patroni.PatroniCluster,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    database = await asyncio.to_thread(patroni_cluster.databases.create_database, "failover")
    story_setup = story.StorySetup(database, tmp_path / "rollout", SIZE, LEG_SECONDS, LEASE_SECONDS)
    await asyncio.to_thread(story_setup.store().migrate)
    stood_still = {}

    with load.workers(story_setup, tmp_path) as workers:
        async with load.running_load(story_setup, ORDER_SECONDS) as (coming, progress):
            await load.at_work(coming.running, workers)
            for name, (begin, end) in FAULTS.items():
                await progress.next()
                leader = patroni_cluster.leader()
                progress.restart()
                await asyncio.to_thread(begin, leader)
                await asyncio.to_thread(patroni_cluster.wait_for_another_leader, leader)
                await progress.next()
                stood_still[name] = round(progress.longest, 1)
                end(leader)
                await asyncio.to_thread(patroni_cluster.wait_until_whole)

    again = checks.check(dataclasses.replace(story_setup, size=coming.total))
    record_property("failover", {"stood_still": stood_still, "performed_again": again})
    assert epoch_of(story_setup)
    assert max(stood_still.values()) < STANDSTILL_SECONDS


def epoch_of(story_setup: story.StorySetup) -> str:
    """Part of the keys of effects born now; a store that was never led by another has none."""
    with contextlib.closing(story_setup.store().open()) as session:
        ((fact,),) = session.rows("get_fact", name="epoch")
    return str(fact).partition(" ")[2]
