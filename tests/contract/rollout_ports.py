"""A place where a rollout's platform and router can be tried, whatever they are made of."""

import asyncio
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Iterator

from fairlead.areas.rollouts import ports
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute, Pods
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.traffic.routes import Route


@dataclasses.dataclass(frozen=True)
class Site:
    """One workload on one platform behind one router.

    `versions` are two that the platform can make; an adapter has shown them to it before.
    """

    platform: ports.Platform
    router: ports.Router
    versions: tuple[Version, Version]
    name: str = "shop"
    patience: float = 120.0
    orders: Iterator[int] = dataclasses.field(default_factory=lambda: itertools.count(1))

    async def ensure(self, slot: Slot, version: Version, replicas: int, order: int = 0) -> int:
        order = order or next(self.orders)
        wanted = messages.EnsureVersion(self.name, order, slot, version, replicas, replicas)
        await self.platform.ensure(wanted)
        return order

    async def route(self, route: Route, order: int = 0) -> int:
        order = order or next(self.orders)
        await self.router.route(messages.SetRoute(self.name, order, route))
        return order

    async def remove(self, order: int = 0) -> int:
        order = order or next(self.orders)
        await self.platform.remove_canary(messages.RemoveCanary(self.name, order))
        return order

    async def pods(self, slot: Slot) -> Pods | None:
        found: Pods | None = getattr(await self.platform.pods(self.name), slot.value)
        return found

    async def shown(self) -> ObservedRoute | None:
        return await self.router.shown(self.name)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for what is seen; the world outside takes its time."""
        async with asyncio.timeout(self.patience):
            while not await holds():  # noqa: ASYNC110 - the outside sends no event
                await asyncio.sleep(0.05)
