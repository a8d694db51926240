"""Rollouts as people find and read them, on both stores."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.rollouts import projection, requests
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.engine import projections, retention, service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol
from tests.engines import Home
from tests.fakes import fleet

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
IN_CLUSTER = "shops/web/7f3c1a60-0000-4000-8000-000000000001"
LATER = "shops/web/7f3c1a60-0000-4000-8000-000000000002"


@contextlib.asynccontextmanager
async def running(home: Home, *, perform: bool = True) -> AsyncIterator[service.Engine]:
    cast = fleet.Fleet().cast()
    parts = service.Parts(home.store(), cast.machines, cast.handlers, cast.views)
    async with service.Engine(parts, perform=perform).running() as engine:
        yield engine


async def test_the_kept_row_and_the_events_tell_the_same(home: Home) -> None:
    async with running(home) as engine:
        await fleet.halfway(engine, "shop")
    # Nobody performs anything here, so nothing happens between two looks.
    async with running(home, perform=False) as engine:
        row = await _caught_up(engine)
        (told,), further = await engine.read(lambda s: requests.listed(s, 10))
        await engine.write(_forget)
        ((from_events,), _) = await engine.read(lambda s: requests.listed(s, 10))

    assert row[0] == "rollout/shop"
    assert projection.read(row[1]).summary() == told == from_events
    assert further is None


async def _caught_up(engine: service.Engine) -> tuple[str, Any]:
    """The row, once it is there: the feed stops behind any other writer of the same server."""
    async with asyncio.timeout(60):
        while True:
            await engine.projector.catch_up()
            found = await engine.read(lambda s: projections.rows(s, projection.NAME))
            (told,), _ = await engine.read(lambda s: requests.listed(s, 10))
            if found and projection.read(found[0][1]).summary() == told:
                return found[0]
            await asyncio.sleep(0.05)


async def test_a_rollout_whose_queue_nobody_serves_says_so(home: Home) -> None:
    async with running(home) as engine:
        await fleet.want(engine, "shop", "v1", queue="kubernetes@prod")
        await fleet.live(engine, "served")
        now = dt.datetime.now(dt.UTC)
        early = await engine.read(lambda s: requests.read(s, "shop", now))
        late = await engine.read(lambda s: requests.read(s, "shop", now + visibility.GRACE))
        well = await engine.read(lambda s: requests.read(s, "served", now + visibility.GRACE))

    assert early.unserved == well.unserved == ""
    assert late.unserved.startswith("no worker serves kubernetes@prod since ")


def _forget(session: protocol.Session) -> None:
    session.rows("clear_projected", name=projection.NAME)


async def test_an_object_made_again_under_its_name_is_found_by_it(home: Home) -> None:
    async with running(home) as engine:
        await fleet.live(engine, IN_CLUSTER)
        old = coordination.rollout_stream(IN_CLUSTER)
        await engine.submit(old, messages.Delete(), command_id("delete"))
        await fleet.live(engine, LATER)

        found = await engine.read(lambda s: requests.read(s, "shops/web", NOW))
        every, _ = await engine.read(lambda s: requests.listed(s, 10))
        with pytest.raises(errors.NotFound):
            await engine.read(lambda s: requests.read(s, IN_CLUSTER, NOW))

    assert found.rollout.name == LATER
    assert [one.name for one in every] == [LATER]


async def test_rollouts_are_found_by_phase_version_and_namespace(home: Home) -> None:
    async with running(home) as engine:
        await fleet.halfway(engine, IN_CLUSTER)
        await fleet.live(engine, "shop")

        async def found(where: str, scope: str = "") -> list[str]:
            every, _ = await engine.read(lambda s: requests.listed(s, 10, None, scope, where))
            return [one.name for one in every]

        assert await found("phase=AwaitingApproval") == [IN_CLUSTER]
        assert await found("waiting=true and canary=v2 and stable=v1") == [IN_CLUSTER]
        assert await found("phase in (Stable, Paused)") == ["shop"]
        assert await found('namespace=""') == ["shop"]
        assert await found("canary!=v9") == ["shop", IN_CLUSTER]
        assert await found("canary!=v9", "shops") == [IN_CLUSTER]
        assert await found("canary!=v9", "others") == []
        with pytest.raises(errors.Rejected, match="phase is never this: paused") as refused:
            await found("phase=paused")

    assert refused.value.hint.startswith("did you mean Paused?")


@pytest.mark.parametrize("name", ["none", "../etc", "a b", "x" * 300, ""])
async def test_no_name_breaks_the_search(home: Home, name: str) -> None:
    async with running(home) as engine:
        with pytest.raises(errors.NotFound, match="no such rollout"):
            await engine.read(lambda s: requests.find(s, name))


def test_only_what_is_out_of_place_becomes_a_conflict() -> None:
    with pytest.raises(errors.Conflict, match="too late") as late, requests.in_place():
        raise errors.Rejected("too late", hint="wait")
    with pytest.raises(errors.NotFound), requests.in_place():
        raise errors.NotFound("not kept", hint="look")

    assert late.value.hint == "wait"


@pytest.mark.parametrize("how", ["rebuilt", "forgotten"])
async def test_a_rollout_whose_first_events_were_archived_reads_the_same(
    home: Home, tmp_path: Path, how: str
) -> None:
    async with running(home) as engine:
        await fleet.halfway(engine, "shop")
    async with running(home, perform=False) as engine:
        await _caught_up(engine)
        ((before,), _) = await engine.read(lambda s: requests.listed(s, 10))
        now = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
        done = await engine.trim(retention.Age(now, now), tmp_path / "old.jsonl")

        if how == "rebuilt":
            await engine.projector.rebuild(projection.NAME)
        else:
            await engine.write(_forget)
        ((after,), _) = await engine.read(lambda s: requests.listed(s, 10))

    assert done.events > 0
    assert after == before
