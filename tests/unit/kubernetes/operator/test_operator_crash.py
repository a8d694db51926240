"""The operator dies at every commit of a bundle's life, and the next one goes on.

The store breaks for good before or after its 1st, 2nd, … commit, and the process is cancelled
there; the next one finds either that store or none at all.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.engine import outbox, service
from fairlead.engine.testing import Fuse, FusedStore
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Selection
from fairlead.kubernetes.operator.operator import Working
from fairlead.kubernetes.schema import CRDS
from tests.fakes.kubernetes.server import Request, Server
from tests.operator.sample_kind import BUNDLES, CONFIG_MAPS, KIND, bundle
from tests.operator.workers import RunningOperator, quick, working

GADGETS = CONFIG_MAPS
HERE = Key("default", "north")
LEASE = 0.5
# The worker registers, then: the plan, the confirmed children, the published status.
LEAST_CUTS = 4


def fused(folder: Path, fuse: Fuse) -> Working:
    """An engine whose store ends with the fuse."""
    chosen = quick(folder, LEASE)

    @contextlib.asynccontextmanager
    async def made(handlers: outbox.QueueHandlers) -> AsyncIterator[service.Engine]:
        cast = bootstrap.Installation(machines=[KIND.machine], queues=handlers)
        kept = cast.store(chosen.store)
        kept.migrate()
        async with cast.engine(chosen, FusedStore(kept, fuse)).running() as engine:
            yield engine

    return made


async def burn(running_operator: RunningOperator, fuse: Fuse) -> None:
    """Until the fuse has blown or the work is done; either may come without a word."""
    async with asyncio.timeout(30):
        while (
            not fuse.blown
            and not running_operator.task.done()
            and not (running_operator.bundles and done(running_operator))
        ):
            await asyncio.wait({running_operator.task}, timeout=0.005)


def done(running_operator: RunningOperator) -> bool:
    engine = running_operator.operator.engine
    return running_operator.is_done() and engine is not None and not engine.in_flight


async def cut(folder: Path, fuse: Fuse, *, empty: bool) -> None:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed()), manager="hand") as hand,
    ):
        connection = Connection(server.url, credentials.Fixed())
        await hand.create(CRDS, rbac.definition(KIND))
        await hand.create(BUNDLES, bundle("default", "north"))
        async with working(connection, "default", fused(folder / "kept", fuse)) as running_operator:
            await burn(running_operator, fuse)
        store = folder / ("empty" if empty else "kept")
        async with working(connection, "default", store) as running_operator:
            await running_operator.until_done()
        found = await hand.get(BUNDLES, HERE)
        gadgets = [
            gadget["data"]["cargo"] async for gadget in hand.each(GADGETS, Selection("default"))
        ]
        made = sum(request.path.endswith("/configmaps") for request in creates(server))

    assert found["status"]["voyages"] == 1
    assert gadgets == ["tea"] * 3
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
