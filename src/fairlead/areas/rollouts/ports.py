"""What a rollout needs of the world; adapters (local, Kubernetes, Istio, …) implement it.

Every writing call carries an order. Calls may come late, twice and out of order: one whose order
is lower than the highest that was performed for the same rollout and part (primary, canary, route,
status) must change nothing, and one performed before may be performed again without effect.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fairlead.domain.analysis.conditions import Answer
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.sight import Pods, Shown
from fairlead.domain.rollouts.spec import Check


class Platform(Protocol):
    """Where the workload runs."""

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        """Let the version run in its slot at its scale; do not wait for it to be ready."""
        ...

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        """Empty the slots of canary and baseline, letting their requests end; empty is well."""
        ...

    async def let_go(self, gone: messages.LetGo) -> None:
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

    async def route(self, wanted: messages.SetRoute) -> None:
        """Change the route in place, in one write; never delete and make it again.

        While `route.joined`, the canary's backend is held by the proxies even at weight 0, and
        while `route.compared` the baseline's.
        """
        ...

    async def shown(self, name: str) -> Shown | None:
        """What the proxies really do, with the order of the write they show; None: no route."""
        ...

    async def give_back(self, gone: messages.LetGo) -> None:
        """The rollout was deleted: restore a route that was adopted; one of ours is collected."""
        ...


@dataclass(frozen=True, slots=True)
class Names:
    """Under which names the metrics know one slot of a rollout."""

    provider: str
    """Whose built-in metrics count its requests: a key of `prometheus.BUILT_IN`; "" for none."""

    arguments: Mapping[str, str]
    """What queries may ask for: namespace, target, service and port on Kubernetes, cluster on
    the local platform. `rollout`, `revision`, `share` and `interval` are added by the metrics."""


Naming = Callable[[messages.Measure, messages.Slot], Names]
"""A platform's answer, at once and from memory; NotFound for a rollout that it does not run."""


class Samples(Protocol):
    """The numbers of both sides for the judge, one for each moment; None where one is missing."""

    control: dict[str, list[float | None]]
    experiment: dict[str, list[float | None]]


class Metrics(Protocol):
    """What answers queries."""

    async def ask(self, check: Check, about: messages.Measure) -> Answer:
        """A value, silence, or why the question could not be asked: three different things."""
        ...

    async def compare(self, check: Check, about: messages.Measure) -> Samples:
        """Series of both sides since `about.since`; Unavailable where they cannot be read."""
        ...


class Gates(Protocol):
    """What is asked over the web: gates with people behind them, numbers, and who hears news."""

    async def is_open(self, check: Check, about: messages.Measure) -> tuple[bool, str]:
        """Whether one may pass, and what was said."""
        ...

    async def read(self, check: Check, about: messages.Measure) -> Answer:
        """What stands where the check's address points: a value, silence, or why not."""
        ...

    async def notify(self, news: messages.Notify) -> None: ...


class Owner(Protocol):
    """The object that people look at and edit."""

    async def publish(self, status: messages.PublishStatus) -> None:
        """Show the status; one with a lower serial than shown is old news."""
        ...

    async def reset_override(self, name: str) -> None:
        """Set the override flag to false and touch nothing else, whatever changed meanwhile."""
        ...


Status = dict[str, Any]
