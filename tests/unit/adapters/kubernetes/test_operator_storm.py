"""The operator among faults, meddling hands and its own restarts: it converges, nothing leaks."""

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from fairlead.adapters.kubernetes import credentials, rights
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.objects import Key, key_of, uid_of
from fairlead.adapters.kubernetes.schema import CRDS
from fairlead.errors import FairleadError
from tests.fakes.kubernetes.hand_clock import settle
from tests.fakes.kubernetes.server import Fault, Server
from tests.operator.flotilla import CONFIG_MAPS, FLOTILLAS, KIND, flotilla
from tests.operator.working import Fleet, working

FLEETS = rights.resource(FLOTILLAS)
SHIPS = rights.resource(CONFIG_MAPS)
NAMES = [f"fleet-{number}" for number in range(5)]
GUSTS = 25


class Storm:
    """Random faults and random hands, from one seed."""

    def __init__(self, server: Server, hand: Client, seed: int) -> None:
        self.server = server
        self.hand = hand
        self.dice = random.Random(seed)

    async def blow(self) -> None:
        match self.dice.randrange(7):
            case 0:
                self.server.cut_watches()
            case 1:
                self.server.store.compact()
                self.server.cut_watches()
            case 2:
                code = self.dice.choice([409, 429, 500, 503])
                headers = {"Retry-After": "0"} if code == 429 else {}
                reason = "Conflict" if code == 409 else "Injected"
                self.server.faults.append(Fault(code, self.dice.randrange(1, 6), headers, reason))
            case _:
                with contextlib.suppress(FairleadError):
                    await self._meddle()
        # Some gusts come together, some after the dust has settled.
        for _ in range(self.dice.randrange(20)):
            await settle()

    async def _meddle(self) -> None:
        name = self.dice.choice(NAMES)
        key, ship = Key("default", name), Key("default", f"{name}-{self.dice.randrange(3)}")
        match self.dice.randrange(5):
            case 0:
                await self.hand.create(FLEETS, flotilla("default", name))
            case 1:
                await self.hand.delete(FLEETS, key)
            case 2:
                cargo = self.dice.choice(["tea", "silk", "salt", "contraband"])
                spec = {"cargo": cargo, "ships": self.dice.randrange(4)}
                await self.hand.patch(FLEETS, key, {"spec": spec})
            case 3:
                await self.hand.patch(SHIPS, ship, {"data": {"cargo": "rats"}})
            case _:
                await self.hand.delete(SHIPS, ship)


async def calm(storm: Storm, fleet: Fleet) -> None:
    """No more faults, nothing refused: until the server holds exactly what is asked for."""
    storm.server.faults.clear()
    # Those that the server has: the caches may not know of the last one yet.
    for obj in list(storm.server.store.all(storm.server.store.served[str(FLEETS)])):
        await storm.hand.patch(FLEETS, key_of(obj), {"spec": {"cargo": "tin"}})
    changed = asyncio.Event()
    storm.server.store.listeners.append(lambda _: changed.set())
    async with asyncio.timeout(60):
        while not (is_true(storm.server) and fleet.is_done()):
            changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), 0.1)
    await fleet.settled()


def is_true(server: Server) -> bool:
    """By the server alone: each ship that is asked for, no other, and its owner alive."""
    fleets = list(server.store.all(server.store.served[str(FLEETS)]))
    ships = list(server.store.all(server.store.served[str(SHIPS)]))
    wanted = {
        (f"{one['metadata']['name']}-{number}", uid_of(one), one["spec"]["cargo"])
        for one in fleets
        for number in range(one["spec"]["ships"])
    }
    found = {
        (
            ship["metadata"]["name"],
            ship["metadata"]["ownerReferences"][0]["uid"],
            ship["data"]["cargo"],
        )
        for ship in ships
    }
    return found == wanted and all(one["spec"]["cargo"] == "tin" for one in fleets)


@pytest.mark.parametrize("store", ["kept", "empty"])
@pytest.mark.parametrize("seed", range(4))
async def test_it_converges_after_any_storm(tmp_path: Path, seed: int, store: str) -> None:
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            await hand.create(CRDS, rights.definition(KIND))
            for name in NAMES[:3]:
                await hand.create(FLEETS, flotilla("default", name))
            storm = Storm(server, hand, seed)

            async with working(connection, "default", tmp_path / "kept") as fleet:
                for _ in range(GUSTS):
                    await storm.blow()
            for _ in range(5):
                await storm.blow()
            async with working(connection, "default", tmp_path / store) as fleet:
                await fleet.operator.leading.wait()
                for _ in range(GUSTS):
                    await storm.blow()
                await calm(storm, fleet)
                before = fleet.requests.copy()
                fleet.look_at_all()
                await fleet.settled()
                again = fleet.requests - before

        assert again.total() == 0
        await settle()
    assert server.watching == 0
