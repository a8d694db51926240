"""What shares requests out between Services: one provider for each way of routing.

A provider is pure. It says which objects carry a route, reads what they show, and says what is
to be written; `platform` looks them up in caches and performs the writes, in the order given.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import msgspec

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.plan.strategy import Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing.permitted import Permitted
from fairlead.kubernetes.objects import Resource
from fairlead.traffic.routes import Route

Object = dict[str, Any]

ORDER = "fairlead.dev/order"
"""Annotation: the order of the write that made an object what it is; it survives a restart."""


class Ref(NamedTuple):
    """An object by name, in the namespace of the rollout."""

    api: Resource
    name: str


@dataclass(frozen=True, slots=True)
class Backend:
    """A Service of one slot, as routes name it."""

    service: str
    port: int


@dataclass(frozen=True, slots=True)
class Site:
    """One rollout's place among routes."""

    namespace: str
    name: str
    primary: Backend
    canary: Backend
    desired: Mapping[str, Any] = field(default_factory=dict)
    """What the object's spec says to this provider, checked and with defaults filled in."""

    baseline: Backend = Backend("", 0)
    """Of the stable version once more; routes name it only while it has joined."""

    def at(self, slot: Slot) -> Backend:
        found: Backend = getattr(self, slot.value)
        return found


@dataclass(frozen=True, slots=True)
class Apply:
    """A write of an object that the rollout owns; only what is named here is ours.

    `platform` puts the owner reference on it.
    """

    object: Object


@dataclass(frozen=True, slots=True)
class Amend:
    """A write in place to an object of somebody else, as a JSON patch.

    It is refused by the server where the object is no longer at `resource_version`; then the
    provider is asked again.
    """

    ref: Ref
    operations: tuple[Object, ...]
    resource_version: str

    @property
    def patch(self) -> list[Object]:
        """What is sent: an object of another version answers 409, as it does to a replace."""
        path = "/metadata/resourceVersion"
        return [
            {"op": "replace", "path": path, "value": self.resource_version},
            *self.operations,
        ]


@dataclass(frozen=True, slots=True)
class Remove:
    """A deletion of an object that the rollout owns; one that is gone is a success."""

    ref: Ref


Write = Apply | Amend | Remove
Found = Mapping[Ref, Object]
"""What the caches hold of `refs`; absent where there is no such object."""


@dataclass(frozen=True, slots=True)
class DesiredRoute:
    """A route as it is to be, with the order of the request."""

    order: int
    route: Route
    at: dt.datetime
    """When it is being written, by the clock that `shown` is asked with."""


def beside(route: Route) -> tuple[Slot, ...]:
    """The slots that share with the primary in this route, or are about to."""
    joined = (Slot.CANARY,) if route.joined else ()
    return (*joined, Slot.BASELINE) if route.compared else joined


class Open(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of somebody else's kind: what is not named here is kept as it stands."""

    __open__: ClassVar[bool] = True


@runtime_checkable
class Provider(Protocol):
    """One way of routing: Istio, Gateway API, or the ratio of replicas.

    Who inherits from it has what most have: nothing that is unsupported or asks for more.
    """

    name: str
    """The field of `spec.provider` that chooses it."""

    words: type[msgspec.Struct]
    """What may stand in that field, with its rules; each field may be left out."""

    apis: Sequence[Resource]
    """Kinds that are read and written, for watches and rights."""

    metrics: Mapping[str, str]
    """Templates of the built-in metrics, where it counts requests."""

    adopted: str
    """The field that names an object of others, which is given back; empty where none is."""

    def unsupported(self, strategy: Strategy, *, is_target: bool) -> Iterable[tuple[str, str]]:
        """What it cannot do, as pairs of a field of the spec and a reason."""
        del strategy, is_target
        return ()

    def delay(self, site: Site) -> float:
        """Seconds after which proxies are held to know a write, or a ready endpoint."""
        ...

    def refs(self, site: Site) -> tuple[Ref, ...]:
        """The objects that carry this route, or are read for it; owned, adopted or neither."""
        ...

    def problems(self, site: Site, found: Found) -> tuple[tuple[str, str], ...]:
        """Why the route cannot be kept here: pairs of a field path and a reason; empty if it can.

        Paths begin at the request: `vsName`, `virtualService.http[0].route`.
        Read with the object; `InvalidSpec` and no child is written while there is one.
        """
        ...

    def beyond(self, site: Site, permitted: Permitted) -> Iterable[tuple[str, str]]:
        """What the request asks for beyond its namespace that the operator does not permit."""
        del site, permitted
        return ()

    def writes(self, site: Site, desired: DesiredRoute, found: Found) -> tuple[Write, ...]:
        """What is to be written so that the route is as desired; nothing where it is already.

        Empty as well where an object shows a higher order than the request.
        """
        ...

    def shown(
        self, site: Site, found: Found, now: dt.datetime
    ) -> tuple[ObservedRoute | None, float]:
        """What the proxies do by the best knowledge, and in how many seconds to requeue.

        A write that its controller has not taken in, or that is younger than the provider's
        stated delay, is not yet shown: the route before it is. 0 means: nothing is awaited.
        """
        ...

    def give_back(self, site: Site, found: Found) -> tuple[Write, ...]:
        """The rollout is going: an adopted object gets all traffic on the primary, as before."""
        ...
