"""A sample controller, kept in tests: a widget owns three config maps and tells so in its status.

Small enough to read at once, and whole: watches, queue, apply, prune, status.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator

from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import Answered, ClientOptions
from fairlead.kubernetes.controller.queue import Queue, QueueOptions
from fairlead.kubernetes.objects import Key, Object, Selection
from fairlead.kubernetes.writes import status
from fairlead.kubernetes.writes.apply import Applier
from tests.contract import whole_controller
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, config_map

PARTS = ("deck", "hull", "mast")


class RunningController:
    """One running controller over one namespace, and the count of its requests."""

    def __init__(
        self, client: Client, options: ClientOptions, namespace: str, requests: Counter[str]
    ) -> None:
        self.requests = requests
        self.namespace = namespace
        self._client = client
        self.watches = Watches(client, options)
        chosen = Selection(namespace)
        self.widgets = self.watches.of(WIDGETS, chosen)
        self.parts = self.watches.of(CONFIG_MAPS, chosen)
        self.queue = Queue(QueueOptions(workers=4, first_delay=0.02, longest_delay=0.2))
        self._applier = Applier(client, self.widgets)
        self.widgets.on_change(self.queue.add)
        self.parts.on_child_change("Widget", self.queue.add)

    @property
    def writes(self) -> int:
        return sum(n for verb, n in self.requests.items() if verb not in ("get", "list", "watch"))

    async def reconcile(self, key: Key) -> float | None:
        widget = self.widgets.get(key)
        if widget is None or objects.is_deleting(widget):
            return None
        wanted = [self.part(widget, name) for name in PARTS[: widget["spec"].get("sails", 2) + 1]]
        for part in wanted:
            await self._applier.ensure(self.parts, part, widget)
        await self._applier.prune(self.parts, widget, [objects.key_of(part) for part in wanted])
        await status.write(self._client, self.widgets, widget, {"phase": f"{len(wanted)} parts"})
        return None

    def part(self, widget: Object, name: str) -> Object:
        length = str(widget["spec"]["length"])
        return config_map(self.namespace, f"{widget['metadata']['name']}-{name}", length=length)

    def is_done(self) -> bool:
        """By the caches alone: every widget has exactly its parts, and says so."""
        return all(self._is_built(widget) for widget in self.widgets.all())

    def _is_built(self, widget: Object) -> bool:
        names = PARTS[: widget["spec"].get("sails", 2) + 1]
        wanted = {f"{widget['metadata']['name']}-{name}" for name in names}
        parts = self.parts.owned_by(widget["metadata"]["uid"])
        return (
            {part["metadata"]["name"] for part in parts} == wanted
            and all(part["data"] == {"length": str(widget["spec"]["length"])} for part in parts)
            and (widget.get("status") or {}).get("phase") == f"{len(names)} parts"
        )

    async def until_done(self, seconds: float = 120.0) -> None:
        """Until the caches say so; every change of them is a reason to look."""
        changed = asyncio.Event()
        for cache in (self.widgets, self.parts):
            cache.on_change(lambda _: changed.set())
        async with asyncio.timeout(seconds):
            while not self.is_done():
                changed.clear()
                await changed.wait()
            # A watch may tell of a write before the write itself is answered.
            await self.queue.idle()

    async def reconcile_all(self) -> None:
        """One more look at every widget, changed or not."""
        for key in self.widgets.known():
            await self.reconcile(key)


@contextlib.asynccontextmanager
async def working(
    connection: Connection, namespace: str, seed: int = 0, page: int = 3
) -> AsyncIterator[RunningController]:
    """A controller at work, with a client of its own."""
    requests: Counter[str] = Counter()

    def count(answered: Answered) -> None:
        requests[answered.verb] += 1

    chance = random.Random(seed).random
    bounds = Limits(rate=10_000, burst=10_000, page=page, first_delay=0.01, longest_delay=0.1)
    # Waits between tries are a twentieth of the real ones: a test has less patience.
    clock = Clock(sleep=lambda seconds: asyncio.sleep(seconds / 20))
    options = ClientOptions(bounds, clock, chance=chance, count=count)
    async with Client(connection, manager="sample", options=options) as client:
        running = RunningController(client, options, namespace, requests)
        task = asyncio.create_task(
            whole_controller.operate(running.watches, running.queue, running.reconcile)
        )
        try:
            await running.watches.synced(30)
            yield running
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
