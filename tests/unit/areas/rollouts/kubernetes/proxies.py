"""The world of rollouts with a provider between the machine and the proxies.

Proxies follow what is written to the objects after a lag of their own. The machine sees only what
the provider says of it, so a provider that says too much too early is found out.
"""

import dataclasses
import datetime as dt

from fairlead.adapters import gateway_api, istio
from fairlead.adapters.canaries.provider import Apply, Backend, Provider, Remove, Site
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.sight import Sight
from tests.unit.adapters.canaries.hands import Hands
from tests.unit.domain.rollouts.world import SECOND, Habits, Place, World

PARENTS = [{"name": "public"}]


@dataclasses.dataclass(frozen=True)
class Moment:
    """Something that was done, and when."""

    at: dt.datetime
    what: str
    share: int = -1
    joined: bool = False


class Mesh(Place):
    """Two slots behind objects of a provider."""

    def __init__(self, world: World, provider: Provider) -> None:
        super().__init__(world)
        primary, canary = Backend("shop", 80), Backend("shop-canary", 80)
        wish = {"route": {"parentRefs": PARENTS}} if provider.name == "gatewayApi" else {}
        self.hands = Hands(provider, Site("prod", "shop", primary, canary, wish))
        self.done: list[Moment] = []
        self._taken_in: list[tuple[dt.datetime, dict[str, int]]] = []

    def sight(self) -> Sight:
        self._take_in()
        self.hands.now = self.world.now
        shown, _ = self.hands.shown()
        if shown is not None and shown.order > self.route[0]:
            self.hurt.append(f"order {shown.order} called shown before the proxies show it")
        return dataclasses.replace(super().sight(), route=shown)

    def set_route(self, effect: messages.SetRoute) -> None:
        self.hands.now = self.world.now
        before = set(self.hands.found)
        if not self.hands.route(effect.route, effect.order):
            return
        assert before <= set(self.hands.found)
        self._note("route", effect.route.share, joined=effect.route.joined)
        super().set_route(effect)
        seen = {ref.name: obj["metadata"]["generation"] for ref, obj in self.hands.found.items()}
        self._taken_in.append((self.world.now + self.world.habits.lag * SECOND, seen))

    def remove(self, effect: messages.RemoveCanary) -> None:
        self._note("remove")
        super().remove(effect)

    def ensure(self, effect: messages.EnsureVersion) -> None:
        self._note(f"ensure {effect.slot.value}")
        super().ensure(effect)

    def known(self, slot: messages.Slot) -> int:
        """As a platform counts them that sees only readiness, and the provider's delay."""
        held = self.route[1].joined if slot is messages.Slot.CANARY else bool(self.routes)
        return self.ready(slot, self.delay) if held else 0

    @property
    def delay(self) -> float:
        return self.hands.provider.delay(self.hands.site)

    def applied(self, name: str) -> list[Apply]:
        return [
            write
            for write in self.hands.written
            if isinstance(write, Apply) and write.object["metadata"]["name"] == name
        ]

    @property
    def removed(self) -> list[Remove]:
        return [write for write in self.hands.written if isinstance(write, Remove)]

    def _note(self, what: str, share: int = -1, *, joined: bool = False) -> None:
        self.done.append(Moment(self.world.now, what, share, joined))

    def _take_in(self) -> None:
        """A gateway's controller writes what it has seen into the status."""
        past = [seen for at, seen in self._taken_in if at <= self.world.now]
        for ref, obj in self.hands.found.items():
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
