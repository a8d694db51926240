"""The operator among faults, meddling hands and its own restarts: it converges, nothing leaks."""

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, key_of, uid_of
from fairlead.kubernetes.schema import CRDS
from tests.fakes.kubernetes.hand_clock import settle
from tests.fakes.kubernetes.server import Server
from tests.fakes.kubernetes.storm import Meddle, Storm
from tests.operator.sample_kind import BUNDLES, CONFIG_MAPS, KIND, bundle
from tests.operator.workers import RunningOperator, working

GADGETS = CONFIG_MAPS
NAMES = [f"fleet-{number}" for number in range(5)]
GUSTS = 25
LULL = 20


def meddling(hand: Client) -> Meddle:
    async def meddle(dice: random.Random) -> None:
        name = dice.choice(NAMES)
        key, gadget = Key("default", name), Key("default", f"{name}-{dice.randrange(3)}")
        match dice.randrange(5):
            case 0:
                await hand.create(BUNDLES, bundle("default", name))
            case 1:
                await hand.delete(BUNDLES, key)
            case 2:
                cargo = dice.choice(["tea", "silk", "salt", "contraband"])
                spec = {"cargo": cargo, "gadgets": dice.randrange(4)}
                await hand.patch(BUNDLES, key, {"spec": spec})
            case 3:
                await hand.patch(GADGETS, gadget, {"data": {"cargo": "rats"}})
            case _:
                await hand.delete(GADGETS, gadget)

    return meddle


async def calm(server: Server, hand: Client, running_operator: RunningOperator) -> None:
    """No more faults, nothing refused: until the server holds exactly what is asked for."""
    server.faults.clear()
    # Those that the server has: the caches may not know of the last one yet.
    for obj in list(server.store.all(server.store.served[str(BUNDLES)])):
        await hand.patch(BUNDLES, key_of(obj), {"spec": {"cargo": "tin"}})
    changed = asyncio.Event()
    server.store.listeners.append(lambda _: changed.set())
    async with asyncio.timeout(60):
        while not (is_true(server) and running_operator.is_done()):
            changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), 0.1)
    await running_operator.settled()


def is_true(server: Server) -> bool:
    """By the server alone: each gadget that is asked for, no other, and its owner alive."""
    fleets = list(server.store.all(server.store.served[str(BUNDLES)]))
    gadgets = list(server.store.all(server.store.served[str(GADGETS)]))
    wanted = {
        (f"{one['metadata']['name']}-{number}", uid_of(one), one["spec"]["cargo"])
        for one in fleets
        for number in range(one["spec"]["gadgets"])
    }
    found = {
        (
            gadget["metadata"]["name"],
            gadget["metadata"]["ownerReferences"][0]["uid"],
            gadget["data"]["cargo"],
        )
        for gadget in gadgets
    }
    return found == wanted and all(one["spec"]["cargo"] == "tin" for one in fleets)


@pytest.mark.parametrize("store", ["kept", "empty"])
@pytest.mark.parametrize("seed", range(4))
async def test_it_converges_after_any_storm(tmp_path: Path, seed: int, store: str) -> None:
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            await hand.create(CRDS, rbac.definition(KIND))
            for name in NAMES[:3]:
                await hand.create(BUNDLES, bundle("default", name))
            storm = Storm(server, meddling(hand), seed)

            async with working(connection, "default", tmp_path / "kept") as running_operator:
                for _ in range(GUSTS):
                    await storm.blow(LULL)
            for _ in range(5):
                await storm.blow(LULL)
            async with working(connection, "default", tmp_path / store) as running_operator:
                await running_operator.operator.leading.wait()
                for _ in range(GUSTS):
                    await storm.blow(LULL)
                await calm(server, hand, running_operator)
                before = running_operator.requests.copy()
                running_operator.reconcile_all()
                await running_operator.settled()
                again = running_operator.requests - before

        assert again.total() == 0
        await settle()
    assert server.watching == 0
