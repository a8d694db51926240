"""A desk over the fake API server: one rollout, and hands that play users and controllers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fairlead.adapters.canaries import names, wiring
from fairlead.adapters.canaries.desk import Case, Desk
from fairlead.adapters.canaries.kinds import CANARIES, Canaries
from fairlead.adapters.canaries.platform import Platform
from fairlead.adapters.canaries.router import Router
from fairlead.adapters.kubernetes import credentials, rights
from fairlead.adapters.kubernetes.client import Client, named
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.crew import Gear
from fairlead.adapters.kubernetes.events import Recorder
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.adapters.kubernetes.queue import Pace
from fairlead.adapters.kubernetes.schema import CRDS
from fairlead.adapters.kubernetes.shards import Shard
from fairlead.adapters.kubernetes.station import Reach, Station
from fairlead.adapters.kubernetes.turns import Turns
from fairlead.adapters.kubernetes.watch import Watches
from fairlead.intents.kubernetes import Api, stream_key
from tests.fakes.kubernetes.kinds import NAMESPACES
from tests.fakes.kubernetes.server import Server

DEPLOYMENTS = rights.resource(names.DEPLOYMENTS)
REVISIONS = rights.resource(names.REVISIONS)


class Leader:
    """A term without end."""

    def check(self) -> None:
        """Nobody else is there."""


@dataclass
class Stage:
    """One rollout's desk, and the hand of somebody else."""

    desk: Desk
    canaries: Canaries
    platform: Platform
    router: Router
    hand: Client
    server: Server
    name: str
    """The rollout's, as effects carry it."""

    def case(self) -> Case:
        found = self.desk.look(self.name)
        assert found is not None
        return found

    async def get(self, name: str) -> Object:
        return await self.hand.get(DEPLOYMENTS, Key("bay", name))

    async def edit(self, name: str, change: Object, *, status: bool = False) -> Object:
        """A merge patch, known to our caches once it returns."""
        where = "status" if status else ""
        done = await self.hand.patch(DEPLOYMENTS, Key("bay", name), change, subresource=where)
        self.desk.cache(self.case(), names.DEPLOYMENTS).wrote(done)
        return done

    async def rolled(self, name: str) -> None:
        """The controller has made all pods be of the template that stands there."""
        found = await self.get(name)
        count = found["spec"]["replicas"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), count)
        told = {"observedGeneration": found["metadata"]["generation"], "readyReplicas": count}
        await self.edit(name, {"status": {**counts, **told}}, status=True)


@contextlib.asynccontextmanager
async def set_up(obj: Object, *others: tuple[Api, Object]) -> AsyncIterator[Stage]:
    """The rollout's object and what stands beside it, and all caches filled."""
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server().running())
        connection = Connection(server.url, credentials.Fixed())
        hand = await stack.enter_async_context(Client(connection, manager="hand"))
        canaries = wiring.canaries()
        await hand.create(NAMESPACES, named(NAMESPACES, {"metadata": {"name": "bay"}}))
        await _serve(hand, canaries)
        for api, other in others:
            await hand.create(rights.resource(api), named(rights.resource(api), other))
        made = await hand.create(rights.resource(CANARIES), obj)
        client = await stack.enter_async_context(Client(connection))
        watches, recorder, clock = Watches(client), Recorder(client, "test"), Clock()
        reach = Reach("bay", Shard(), Pace(), clock)
        stations = [Station(kind, watches, client, recorder, reach) for kind in canaries.kinds]
        watching = asyncio.create_task(watches.run())
        stack.push_async_callback(_ended, watching)
        await watches.synced(10)
        desk = Desk(Gear(client, stations, recorder, Turns(Leader()), clock), canaries)
        name = stream_key(made)
        yield Stage(desk, canaries, Platform(desk), Router(desk), hand, server, name)


async def _serve(hand: Client, canaries: Canaries) -> None:
    """Kinds that the fake server does not bring, with no more of a schema than it needs."""
    for kind in canaries.kinds:
        await hand.create(CRDS, rights.definition(kind))
    related = {one.api for kind in canaries.kinds for one in kind.related}
    brought = {names.DEPLOYMENTS, names.SERVICES, names.CONFIG_MAPS, names.SECRETS}
    for api in sorted(related - brought, key=str):
        open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": api.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": open_},
        }
        called = {"plural": api.plural, "kind": api.kind}
        spec = {"group": api.group, "names": called, "scope": "Namespaced", "versions": [version]}
        await hand.create(CRDS, named(CRDS, {"metadata": {"name": str(api)}, "spec": spec}))


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
