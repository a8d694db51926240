"""Workers killed one by one behind pgbouncer: in either mode nothing is lost or doubled."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.clients.postgres.server.running import PostgresServer
from tests import ha
from tests.durability import checks, load, story, test_storm
from tools.servers import pgbouncer

SIZE = story.Size(depots=1, trips=4, legs=5, at_once=4, strikes=40)
LEASE_SECONDS = 5.0
ORDER_SECONDS = 0.5
KILLS = 5


@pytest.mark.ha
@pytest.mark.parametrize("mode", ["session", "transaction"])
async def test_a_storm_through_a_pooler_loses_nothing(
    mode: pgbouncer.Mode, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ha.needed(pgbouncer.find)
    with (
        PostgresServer() as server,
        pgbouncer.PgBouncer(tmp_path / "pooler", server.port, mode) as pooler,
    ):
        server.create_database("storm")
        story_setup = replace(
            test_storm.story_setup_of(pooler.url("storm"), tmp_path),
            size=SIZE,
            lease_seconds=LEASE_SECONDS,
        )

        with test_storm.pool(story_setup, tmp_path) as hired:
            async with load.running_load(story_setup, ORDER_SECONDS) as (coming, progress):
                for number in range(KILLS):
                    # After a restart the pooler turns newcomers away for a moment.
                    await load.at_work(coming.running, hired.workers, hired.hire_again)
                    if number == KILLS // 2:
                        await asyncio.to_thread(server.restart, "immediate")
                    await progress.next()
                    hired.strike()

        again = checks.check(replace(story_setup, size=coming.total))

    record_property("storm", {"kills": hired.kills, "performed_again": again})
    assert hired.kills == KILLS
