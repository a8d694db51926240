"""What an area registers for one term: its effects, and what follows each reconcile."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from prometheus_client import registry

from fairlead.engine import outbox, service
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.controller.controller import AfterReconcile, Controller
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.writes.effects import Performer
from fairlead.kubernetes.writes.write_lock import WriteLocks


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What an area gets to work with: caches are in the controllers, one for each kind."""

    client: Client
    controllers: Sequence[Controller]
    performer: Performer
    """Publishes statuses and records Events, as it does for machines of every other kind."""

    write_locks: WriteLocks
    clock: Clock
    status_key: Key
    """The Secret with the key that seals statuses (writes/seals.py)."""

    engine: Callable[[], service.Engine | None] = lambda: None
    """Of this term, once it runs: for what an area keeps in the store beside its machines."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What an area does in this term."""

    handlers: outbox.Handlers
    after_reconcile: Mapping[str, AfterReconcile] = field(default_factory=dict)
    """By the kind as Kubernetes writes it in full, such as canarydeployments.fairlead.dev."""


@runtime_checkable
class Registrar(Protocol):
    """Those who work for an area, term after term."""

    def registration(
        self, controller_context: ControllerContext
    ) -> AbstractAsyncContextManager[Registration]:
        """Take up what is registered for as long as the block lasts."""
        ...

    @property
    def collectors(self) -> Sequence[registry.Collector]:
        """Figures of the area, for /metrics."""
        ...
