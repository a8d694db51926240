"""A sample controller, kept in tests: a boat owns three config maps and tells so in its status.

Small enough to read at once, and whole: watches, queue, apply, prune, status.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator

from fairlead.adapters.kubernetes import objects, runtime, status
from fairlead.adapters.kubernetes.apply import Applier
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.limits import Limits
from fairlead.adapters.kubernetes.objects import Key, Object, Selection
from fairlead.adapters.kubernetes.queue import Pace, Queue
from fairlead.adapters.kubernetes.transport import Answered, Tempo
from fairlead.adapters.kubernetes.watch import Watches
from tests.contract.kubernetes_samples import BOATS, CONFIG_MAPS, config_map

PARTS = ("deck", "hull", "mast")


class Shipyard:
    """One running controller over one namespace, and the count of its requests."""

    def __init__(
        self, client: Client, tempo: Tempo, namespace: str, requests: Counter[str]
    ) -> None:
        self.requests = requests
        self.namespace = namespace
        self._client = client
        self.watches = Watches(client, tempo)
        chosen = Selection(namespace)
        self.boats = self.watches.of(BOATS, chosen)
        self.parts = self.watches.of(CONFIG_MAPS, chosen)
        self.queue = Queue(Pace(workers=4, first_delay=0.02, longest_delay=0.2))
        self._applier = Applier(client, self.boats)
        self.boats.on_change(self.queue.add)
        self.parts.on_child_change("Boat", self.queue.add)

    @property
    def writes(self) -> int:
        return sum(n for verb, n in self.requests.items() if verb not in ("get", "list", "watch"))

    async def look(self, key: Key) -> float | None:
        boat = self.boats.get(key)
        if boat is None or objects.is_deleting(boat):
            return None
        wanted = [self.part(boat, name) for name in PARTS[: boat["spec"].get("sails", 2) + 1]]
        for part in wanted:
            await self._applier.ensure(self.parts, part, boat)
        await self._applier.prune(self.parts, boat, [objects.key_of(part) for part in wanted])
        await status.write(self._client, self.boats, boat, {"phase": f"{len(wanted)} parts"})
        return None

    def part(self, boat: Object, name: str) -> Object:
        length = str(boat["spec"]["length"])
        return config_map(self.namespace, f"{boat['metadata']['name']}-{name}", length=length)

    def is_done(self) -> bool:
        """By the caches alone: every boat has exactly its parts, and says so."""
        return all(self._is_built(boat) for boat in self.boats.all())

    def _is_built(self, boat: Object) -> bool:
        names = PARTS[: boat["spec"].get("sails", 2) + 1]
        wanted = {f"{boat['metadata']['name']}-{name}" for name in names}
        parts = self.parts.owned_by(boat["metadata"]["uid"])
        return (
            {part["metadata"]["name"] for part in parts} == wanted
            and all(part["data"] == {"length": str(boat["spec"]["length"])} for part in parts)
            and (boat.get("status") or {}).get("phase") == f"{len(names)} parts"
        )

    async def until_done(self, seconds: float = 30.0) -> None:
        """Until the caches say so; every change of them is a reason to look."""
        changed = asyncio.Event()
        for cache in (self.boats, self.parts):
            cache.on_change(lambda _: changed.set())
        async with asyncio.timeout(seconds):
            while not self.is_done():
                changed.clear()
                await changed.wait()
            # A watch may tell of a write before the write itself is answered.
            await self.queue.idle()

    async def look_at_all(self) -> None:
        """One more look at every boat, changed or not."""
        for key in self.boats.known():
            await self.look(key)


@contextlib.asynccontextmanager
async def working(
    connection: Connection, namespace: str, seed: int = 0, page: int = 3
) -> AsyncIterator[Shipyard]:
    """A shipyard at work, with a client of its own."""
    requests: Counter[str] = Counter()

    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    chance = random.Random(seed).random
    bounds = Limits(rate=10_000, burst=10_000, page=page, first_delay=0.01, longest_delay=0.1)
    # Waits between tries are a twentieth of the real ones: a test has less patience.
    clock = Clock(sleep=lambda seconds: asyncio.sleep(seconds / 20))
    tempo = Tempo(bounds, clock, chance=chance, count=count)
    async with Client(connection, manager="shipyard", tempo=tempo) as client:
        yard = Shipyard(client, tempo, namespace, requests)
        task = asyncio.create_task(runtime.operate(yard.watches, yard.queue, yard.look))
        try:
            await yard.watches.synced(30)
            yield yard
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
