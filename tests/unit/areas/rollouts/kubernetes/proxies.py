"""The world of rollouts with a provider between the machine and the proxies.

Proxies follow what is written to the objects after a lag of their own. The machine sees only what
the provider says of it, so a provider that says too much too early is found out.
"""

import dataclasses
import datetime as dt

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.providers import gateway_api, istio
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    Apply,
    Backend,
    Provider,
    Remove,
    Site,
)
from tests.unit.areas.rollouts.domain.world import SECOND, Habits, Place, World
from tests.unit.areas.rollouts.kubernetes.object_server import ObjectServer

PARENTS = [{"name": "public"}]


@dataclasses.dataclass(frozen=True)
class Moment:
    """Something that was done, and when."""

    at: dt.datetime
    what: str
    weight: int = -1
    joined: bool = False


class Mesh(Place):
    """Two slots behind objects of a provider."""

    def __init__(self, world: World, provider: Provider) -> None:
        super().__init__(world)
        primary, canary = Backend("shop", 80), Backend("shop-canary", 80)
        desired = {"route": {"parentRefs": PARENTS}} if provider.name == "gatewayApi" else {}
        self.server = ObjectServer(provider, Site("prod", "shop", primary, canary, desired))
        self.done: list[Moment] = []
        self._taken_in: list[tuple[dt.datetime, dict[str, int]]] = []

    def observed(self) -> Observation:
        self._take_in()
        self.server.now = self.world.now
        shown, _ = self.server.shown()
        if shown is not None and shown.order > self.route[0]:
            self.hurt.append(f"order {shown.order} called shown before the proxies show it")
        return dataclasses.replace(super().observed(), route=shown)

    def set_route(self, effect: messages.SetRoute) -> None:
        self.server.now = self.world.now
        before = set(self.server.found)
        if not self.server.route(effect.route, effect.order):
            return
        assert before <= set(self.server.found)
        self._note("route", effect.route.weight, joined=effect.route.joined)
        super().set_route(effect)
        seen = {ref.name: obj["metadata"]["generation"] for ref, obj in self.server.found.items()}
        self._taken_in.append((self.world.now + self.world.habits.lag * SECOND, seen))

    def remove(self, effect: messages.RemoveCanary) -> None:
        self._note("remove")
        super().remove(effect)

    def ensure(self, effect: messages.EnsureVersion) -> None:
        self._note(f"ensure {effect.slot.value}")
        super().ensure(effect)

    def known(self, slot: Slot) -> int:
        """As a platform counts them that sees only readiness, and the provider's delay."""
        held = self.route[1].joined if slot is Slot.CANARY else bool(self.routes)
        return self.ready(slot, self.delay) if held else 0

    @property
    def delay(self) -> float:
        return self.server.provider.delay(self.server.site)

    def applied(self, name: str) -> list[Apply]:
        return [
            write
            for write in self.server.written
            if isinstance(write, Apply) and write.object["metadata"]["name"] == name
        ]

    @property
    def removed(self) -> list[Remove]:
        return [write for write in self.server.written if isinstance(write, Remove)]

    def _note(self, what: str, weight: int = -1, *, joined: bool = False) -> None:
        self.done.append(Moment(self.world.now, what, weight, joined))

    def _take_in(self) -> None:
        """A gateway's controller writes what it has seen into the status."""
        past = [seen for at, seen in self._taken_in if at <= self.world.now]
        for ref, obj in self.server.found.items():
            conditions = [
                {"type": kind, "status": "True", "observedGeneration": past[-1].get(ref.name, 0)}
                for kind in ("Accepted", "ResolvedRefs")
                if past
            ]
            obj["status"] = {"parents": [{"conditions": conditions}]}


def world(provider: Provider, habits: Habits | None = None) -> tuple[World, Mesh]:
    made = World(habits)
    mesh = Mesh(made, provider)
    made.places["shop"] = mesh
    return made, mesh


PROVIDERS: dict[str, Provider] = {"istio": istio.Istio(), "gateway": gateway_api.GatewayApi()}
