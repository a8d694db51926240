"""A rollout's context over the fake API server, and a server that plays users and controllers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fairlead.areas.rollouts.kubernetes import names, wiring
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.kinds import CANARIES, RolloutKinds
from fairlead.areas.rollouts.kubernetes.platform import Platform
from fairlead.areas.rollouts.kubernetes.router import Router
from fairlead.kubernetes import rbac
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client, named
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.controller.controller import Controller, Reach
from fairlead.kubernetes.controller.queue import QueueOptions
from fairlead.kubernetes.controller.registration import ControllerContext
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.kinds import stream_key
from fairlead.kubernetes.objects import Key, Object, Resource
from fairlead.kubernetes.schema import CRDS
from fairlead.kubernetes.writes.effects import Performer
from fairlead.kubernetes.writes.events import Recorder
from fairlead.kubernetes.writes.seals import Seals
from fairlead.kubernetes.writes.write_lock import WriteLocks
from tests.fakes.kubernetes.kinds import NAMESPACES
from tests.fakes.kubernetes.server import Server

DEPLOYMENTS = names.DEPLOYMENTS
REVISIONS = names.REVISIONS


class Leader:
    """A term without end."""

    def check(self) -> None:
        """Nobody else is there."""


@dataclass
class RolloutHarness:
    """One rollout's context, and what somebody else does."""

    contexts: RolloutContexts
    canaries: RolloutKinds
    platform: Platform
    router: Router
    hand: Client
    server: Server
    name: str
    """The rollout's, as effects carry it."""

    def context(self) -> RolloutContext:
        found = self.contexts.context_of(self.name)
        assert found is not None
        return found

    async def get(self, name: str) -> Object:
        return await self.hand.get(DEPLOYMENTS, Key("bay", name))

    async def edit(self, name: str, change: Object, *, status: bool = False) -> Object:
        """A merge patch, known to our caches once it returns."""
        where = "status" if status else ""
        done = await self.hand.patch(DEPLOYMENTS, Key("bay", name), change, subresource=where)
        self.contexts.cache(self.context(), names.DEPLOYMENTS).wrote(done)
        return done

    async def rolled(self, name: str) -> None:
        """The controller has made all pods be of the template that stands there."""
        found = await self.get(name)
        count = found["spec"]["replicas"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), count)
        told = {"observedGeneration": found["metadata"]["generation"], "readyReplicas": count}
        await self.edit(name, {"status": {**counts, **told}}, status=True)


@contextlib.asynccontextmanager
async def set_up(obj: Object, *others: tuple[Resource, Object]) -> AsyncIterator[RolloutHarness]:
    """The rollout's object and what stands beside it, and all caches filled."""
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server().running())
        connection = Connection(server.url, credentials.Fixed())
        hand = await stack.enter_async_context(Client(connection, manager="hand"))
        canaries = wiring.canaries()
        canaries.seals = Seals(bytes(32))
        await hand.create(NAMESPACES, named(NAMESPACES, {"metadata": {"name": "bay"}}))
        await _serve(hand, canaries)
        for api, other in others:
            await hand.create(api, named(api, other))
        made = await hand.create(CANARIES, obj)
        client = await stack.enter_async_context(Client(connection))
        watches, recorder, clock = Watches(client), Recorder(client, "test"), Clock()
        reach = Reach("bay", Shard(), QueueOptions(), clock)
        controllers = [
            Controller(kind, watches, client, recorder, reach) for kind in canaries.kinds
        ]
        watching = asyncio.create_task(watches.run())
        stack.push_async_callback(_ended, watching)
        await watches.synced(10)
        write_locks = WriteLocks(Leader())
        held = {str(one.kind.api): one.held for one in controllers}
        performer = Performer(client, held, recorder, write_locks, clock.now)
        contexts = RolloutContexts(
            ControllerContext(
                client, controllers, performer, write_locks, clock, Key("default", "key")
            ),
            canaries,
        )
        name = stream_key(made)
        yield RolloutHarness(
            contexts, canaries, Platform(contexts), Router(contexts), hand, server, name
        )


async def _serve(hand: Client, canaries: RolloutKinds) -> None:
    """Kinds that the fake server does not bring, with no more of a schema than it needs."""
    for kind in canaries.kinds:
        await hand.create(CRDS, rbac.definition(kind))
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
