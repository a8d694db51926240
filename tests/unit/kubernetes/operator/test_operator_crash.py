"""The operator dies at every commit of a flotilla's life, and the next one goes on.

The store breaks for good before or after its 1st, 2nd, … commit, and the process is cancelled
there; the next one finds either that store or none at all.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.adapters.kubernetes import credentials, rights
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.objects import Key, Selection
from fairlead.adapters.kubernetes.operator import Working
from fairlead.adapters.kubernetes.schema import CRDS
from fairlead.engine import outbox, service
from fairlead.engine.testing import Fuse, FusedStore
from tests.fakes.kubernetes.server import Request, Server
from tests.operator.flotilla import CONFIG_MAPS, FLOTILLAS, KIND, flotilla
from tests.operator.working import Fleet, quick, working

FLEETS = rights.resource(FLOTILLAS)
SHIPS = rights.resource(CONFIG_MAPS)
HERE = Key("default", "north")
LEASE = 0.5
# The worker registers, then: the plan, the confirmed children, the published status.
LEAST_CUTS = 4


def fused(folder: Path, fuse: Fuse) -> Working:
    """An engine whose store ends with the fuse."""
    chosen = quick(folder, LEASE)

    @contextlib.asynccontextmanager
    async def made(handlers: outbox.Handlers) -> AsyncIterator[service.Engine]:
        cast = bootstrap.Cast(machines=[KIND.machine], handlers=handlers)
        kept = bootstrap.store(chosen.store, cast)
        kept.migrate()
        async with bootstrap.engine(chosen, cast, FusedStore(kept, fuse)).running() as engine:
            yield engine

    return made


async def burn(fleet: Fleet, fuse: Fuse) -> None:
    """Until the fuse has blown or the work is done; either may come without a word."""
    async with asyncio.timeout(30):
        while not fuse.blown and not fleet.task.done() and not (fleet.flotillas and done(fleet)):
            await asyncio.wait({fleet.task}, timeout=0.005)


def done(fleet: Fleet) -> bool:
    engine = fleet.operator.engine
    return fleet.is_done() and engine is not None and not engine.in_flight


async def cut(folder: Path, fuse: Fuse, *, empty: bool) -> None:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed()), manager="hand") as hand,
    ):
        connection = Connection(server.url, credentials.Fixed())
        await hand.create(CRDS, rights.definition(KIND))
        await hand.create(FLEETS, flotilla("default", "north"))
        async with working(connection, "default", fused(folder / "kept", fuse)) as fleet:
            await burn(fleet, fuse)
        store = folder / ("empty" if empty else "kept")
        async with working(connection, "default", store) as fleet:
            await fleet.until_done()
        found = await hand.get(FLEETS, HERE)
        ships = [ship["data"]["cargo"] async for ship in hand.each(SHIPS, Selection("default"))]
        made = sum(request.path.endswith("/configmaps") for request in creates(server))

    assert found["status"]["voyages"] == 1
    assert ships == ["tea"] * 3
    assert made == 3


def creates(server: Server) -> list[Request]:
    return [request for request in server.requests if request.method == "POST"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("empty", [False, True], ids=["kept", "empty"])
async def test_it_dies_at_every_commit_and_goes_on(
    tmp_path: Path, *, after: bool, empty: bool
) -> None:
    cuts = 0
    while True:
        fuse = Fuse(cuts + 1, after)
        await cut(tmp_path / str(cuts), fuse, empty=empty)
        if not fuse.blown:
            break
        cuts += 1

    assert cuts >= LEAST_CUTS
