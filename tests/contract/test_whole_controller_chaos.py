"""The sample controller among faults: whatever the server answers, it converges, nothing leaks."""

import asyncio
import contextlib
import random

import pytest

from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, key_of, uid_of, version_of
from tests.contract.kubernetes_samples import (
    CONFIG_MAPS,
    CRDS,
    WIDGETS,
    widget,
    widget_definition,
)
from tests.contract.sample_controller import RunningController, working
from tests.fakes.kubernetes.hand_clock import settle
from tests.fakes.kubernetes.server import Server
from tests.fakes.kubernetes.storm import Meddle, Storm

NAMES = [f"widget-{number}" for number in range(8)]


def meddling(hand: Client) -> Meddle:
    async def meddle(dice: random.Random) -> None:
        name = dice.choice(NAMES)
        key = Key("default", name)
        part = Key("default", f"{name}-{dice.choice(['deck', 'hull', 'mast'])}")
        match dice.randrange(5):
            case 0:
                await hand.create(WIDGETS, widget("default", name))
            case 1:
                await hand.delete(WIDGETS, key)
            case 2:
                spec = {"length": dice.randrange(1, 400), "sails": dice.randrange(3)}
                await hand.patch(WIDGETS, key, {"spec": spec})
            case 3:
                await hand.patch(CONFIG_MAPS, part, {"data": {"length": "x"}})
            case _:
                await hand.delete(CONFIG_MAPS, part)

    return meddle


async def calm(running: RunningController, server: Server) -> None:
    """Until the server itself holds exactly what the widgets ask for."""
    changed = asyncio.Event()
    server.store.listeners.append(lambda _: changed.set())
    async with asyncio.timeout(60):
        while not (is_true(running, server) and running.is_done()):
            changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await changed.wait()


def is_true(running: RunningController, server: Server) -> bool:
    widgets = list(server.store.all(server.store.served[str(WIDGETS)]))
    parts = list(server.store.all(server.store.served[str(CONFIG_MAPS)]))
    wanted = {
        f"{one['metadata']['name']}-{name}"
        for one in widgets
        for name in ("deck", "hull", "mast")[: one["spec"]["sails"] + 1]
    }
    if {part["metadata"]["name"] for part in parts} != wanted:
        return False
    # And the caches hold the same, to the version.
    return all(
        {(key, cache.version(key)) for key in cache.known()}
        == {(key_of(obj), int(version_of(obj))) for obj in held}
        for cache, held in ((running.widgets, widgets), (running.parts, parts))
    )


@pytest.mark.parametrize("seed", range(6))
async def test_it_converges_after_any_storm(seed: int) -> None:
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            await hand.create(CRDS, widget_definition())
            for name in NAMES[:5]:
                await hand.create(WIDGETS, widget("default", name))
            storm = Storm(server, meddling(hand), seed)

            async with working(connection, "default", seed) as running:
                for _ in range(60):
                    await storm.blow()
                server.faults.clear()
                await calm(running, server)
                writes = running.writes
                await running.reconcile_all()

                assert running.writes == writes
                owners = {uid_of(one) for one in running.widgets.all()}
                assert all(
                    part["metadata"]["ownerReferences"][0]["uid"] in owners
                    for part in running.parts.all()
                )
        assert running.queue.backlog.working == 0
        await settle()
    assert server.watching == 0
