"""Who works beside the door during one term: the effects of an area, and what it looks after."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import registry

from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.events import Recorder
from fairlead.adapters.kubernetes.station import Station, Tend
from fairlead.adapters.kubernetes.turns import Turns
from fairlead.engine import outbox


@dataclass(frozen=True, slots=True)
class Gear:
    """What an area gets to work with: caches are in the stations, one for each kind."""

    client: Client
    stations: Sequence[Station]
    recorder: Recorder
    turns: Turns
    clock: Clock


@dataclass(frozen=True, slots=True)
class Duties:
    """What an area does in this term."""

    handlers: outbox.Handlers
    tend: Mapping[str, Tend] = field(default_factory=dict)
    """By the kind as Kubernetes writes it in full, such as canarydeployments.fairlead.dev."""


class Crew(Protocol):
    """Those who work for an area, term after term."""

    def duties(self, gear: Gear) -> AbstractAsyncContextManager[Duties]:
        """Take up the duties for as long as the block lasts."""
        ...

    @property
    def collectors(self) -> Sequence[registry.Collector]:
        """Figures of the area, for /metrics."""
        ...
