"""The ports of a rollout in memory: pods that are ready at once, proxies that follow at once.

It outlives the control plane, as real ones do, and passes tests/contract/test_rollout_ports.py.
"""

from typing import Any

from fairlead.analysis import conditions
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute, Pods
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.ports import Slots
from fairlead.checks.spec import Check
from fairlead.checks.subject import News, Subject


class FakePlatform:
    """A platform, a router and metrics in one; `errors` is what a query says of a revision."""

    def __init__(self, errors: dict[str, float] | None = None) -> None:
        self.errors = errors or {}
        self.slots: dict[Slot, messages.EnsureVersion | None] = dict.fromkeys(Slot)
        self.orders: dict[object, int] = {}
        self.set: messages.SetRoute | None = None
        self.weights: list[int] = []

    def newest(self, part: object, order: int) -> bool:
        """Orders are remembered for each part, also for a slot that is empty."""
        newest = order >= self.orders.get(part, 0)
        self.orders[part] = max(order, self.orders.get(part, 0))
        return newest

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        if self.newest(wanted.slot, wanted.order):
            self.slots[wanted.slot] = wanted

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        for slot in (Slot.CANARY, Slot.BASELINE):
            if self.newest(slot, wanted.order):
                assert self.set is None or self.set.route.weight == 0
                self.slots[slot] = None

    async def let_go(self, gone: messages.ReleaseResources) -> None:
        self.slots = dict.fromkeys(Slot)

    async def pods(self, name: str) -> Slots:
        return Slots(*map(self._pods, Slot))

    def _pods(self, slot: Slot) -> Pods | None:
        held = self.slots[slot]
        if held is None:
            return None
        count = held.at_least if held.replicas is None else held.replicas
        route = self.set.route if self.set else None
        held_by = {Slot.CANARY: "joined", Slot.BASELINE: "compared"}
        routed = route is not None and (slot is Slot.PRIMARY or getattr(route, held_by[slot]))
        known = count if routed else 0
        return Pods(held.version.revision, count, count, known, self.orders[slot])

    async def route(self, wanted: messages.SetRoute) -> None:
        if not self.newest("route", wanted.order):
            return
        assert self.slots[Slot.CANARY] or not wanted.route.reaches_canary
        assert self.slots[Slot.BASELINE] or not wanted.route.split.baseline
        self.set = wanted
        self.weights.append(wanted.route.weight)

    async def shown(self, name: str) -> ObservedRoute | None:
        return ObservedRoute(self.set.order, self.set.route.weight) if self.set else None

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        self.set = None

    async def ask(self, check: Check, about: Subject) -> conditions.Answer:
        return conditions.Answered(self.errors.get(about.canary.revision, 0.0))

    async def compare(self, check: Check, about: Subject) -> Any:
        raise AssertionError(check)

    async def is_open(self, check: Check, about: Subject) -> tuple[bool, str]:
        raise AssertionError(check)

    async def notify(self, news: News) -> None: ...

    async def publish(self, status: messages.PublishStatus) -> None: ...

    async def reset_override(self, name: str) -> None: ...
