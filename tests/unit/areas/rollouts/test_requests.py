"""Rollouts as people find and read them, on both stores."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.domain.rollouts import bonds, messages, rows
from fairlead.engine import projections, service
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol
from fairlead.intents import requests
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
    assert rows.read(row[1]).summary() == told == from_events
    assert further is None


async def _caught_up(engine: service.Engine) -> tuple[str, Any]:
    """The row, once it is there: the feed stops behind any other writer of the same server."""
    async with asyncio.timeout(10):
        while True:
            await engine.projector.catch_up()
            found = await engine.read(lambda s: projections.rows(s, rows.NAME))
            (told,), _ = await engine.read(lambda s: requests.listed(s, 10))
            if found and rows.read(found[0][1]).summary() == told:
                return found[0]
            await asyncio.sleep(0.05)


def _forget(session: protocol.Session) -> None:
    session.rows("clear_projected", name=rows.NAME)


async def test_an_object_made_again_under_its_name_is_found_by_it(home: Home) -> None:
    async with running(home) as engine:
        await fleet.live(engine, IN_CLUSTER)
        old = bonds.rollout_stream(IN_CLUSTER)
        await engine.submit(old, messages.Delete(), command_id("delete"))
        await fleet.live(engine, LATER)

        found = await engine.read(lambda s: requests.look(s, "shops/web", NOW))
        every, _ = await engine.read(lambda s: requests.listed(s, 10))
        with pytest.raises(errors.NotFound):
            await engine.read(lambda s: requests.look(s, IN_CLUSTER, NOW))

    assert found.rollout.name == LATER
    assert [one.name for one in every] == [LATER]


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
