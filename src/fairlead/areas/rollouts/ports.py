"""What a rollout needs of the world; adapters (local, Kubernetes, Istio, …) implement it.

Every writing call carries an order. Calls may come late, twice and out of order: one whose order
is lower than the highest that was performed for the same rollout and part (primary, canary, route,
status) must change nothing, and one performed before may be performed again without effect.
"""

from typing import NamedTuple, Protocol

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute, Pods
from fairlead.areas.rollouts.domain.slots import SlotTraffic
from fairlead.checks.subject import Subject


class Platform(Protocol):
    """Where the workload runs."""

    async def ensure(self, desired: messages.EnsureVersion) -> None:
        """Let the version run in its slot at its scale; do not wait for it to be ready."""
        ...

    async def remove_canary(self, desired: messages.RemoveCanary) -> None:
        """Empty the slots of canary and baseline, letting their requests end; empty is well."""
        ...

    async def let_go(self, gone: messages.ReleaseResources) -> None:
        """The rollout was deleted: stop what nobody else collects; make nothing."""
        ...

    async def pods(self, name: str) -> "Slots":
        """Those of every slot.

        `Pods.known` counts endpoints that the router has taken in; a platform that cannot see
        that counts those which are ready longer than the router's stated delay.
        """
        ...


class Slots(NamedTuple):
    """The pods of each slot; None where it is empty."""

    primary: Pods | None = None
    canary: Pods | None = None
    baseline: Pods | None = None


class Router(Protocol):
    """What shares requests between the slots."""

    async def route(self, desired: messages.SetRoute) -> None:
        """Change the route in place, in one write; never delete and make it again.

        While `route.joined`, the canary's backend is held by the proxies even at weight 0, and
        while `route.compared` the baseline's.
        """
        ...

    async def shown(self, name: str) -> ObservedRoute | None:
        """What the proxies really do, with the order of the write they show; None: no route."""
        ...

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        """The rollout was deleted: restore a route that was adopted; one of ours is collected."""
        ...


class Owner(Protocol):
    """The object that people look at and edit."""

    async def publish(self, status: messages.PublishStatus) -> None:
        """Show the status; one with a lower round than shown is old news."""
        ...

    async def reset_override(self, name: str) -> None:
        """Set the override flag to false and touch nothing else, whatever changed meanwhile."""
        ...


class Counter(Protocol):
    """Who counts requests, where the platform can."""

    def traffic(self, about: Subject) -> tuple[SlotTraffic, ...]:
        """Each slot that is counted since the canary has its weight, as checks saw it last."""
        ...
