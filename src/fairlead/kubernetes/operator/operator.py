"""The operator: caches always, and an engine behind the reconcilers while we lead.

watches ─► caches ─► (elected) ─► queue ─► Reconciler ─► engine ─► effects ─► API server ─► watches

Whoever waits to become leader keeps its caches warm and reviews what comes in, and does nothing
else: its engine is made at the start of a term and drained at its end, before the lease is given
back.
"""

import asyncio
import contextlib
import dataclasses
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import structlog

from fairlead.engine import collector, outbox, service
from fairlead.errors import Rejected
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import Answered, ClientOptions
from fairlead.kubernetes.controller import leader
from fairlead.kubernetes.controller.controller import AfterReconcile, Controller, Reach
from fairlead.kubernetes.controller.leader import Candidacy, Election
from fairlead.kubernetes.controller.queue import QueueOptions
from fairlead.kubernetes.controller.registration import ControllerContext, Registrar, Registration
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.operator import cluster_queue, health, heap
from fairlead.kubernetes.webhook.webhook import AdmissionReviews, WebhookPlace
from fairlead.kubernetes.writes import effects
from fairlead.kubernetes.writes.events import Recorder
from fairlead.kubernetes.writes.write_lock import WriteLocks
from fairlead.settings import OperatorSettings

log = structlog.get_logger(__name__)

_SYNC_SECONDS = 120.0
_FLUSH_SECONDS = 2.0
_TIDY_SECONDS = 20.0
# Children change in bursts; a reconcile for each change would be most of the work.
_REST_SECONDS = 0.1
# Events that may wait: a shared config starts thousands of rollouts in one breath.
_EVENTS = 20_000
# Renewals go past the limits of the other client, and are never repeated by the transport.
_RENEWING = Limits(attempts=1, timeout=5.0)

Working = Callable[[outbox.QueueHandlers], AbstractAsyncContextManager[service.Engine]]
"""Makes an engine that performs with these handlers, for as long as the block lasts."""


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorOptions:
    """What an operator is told at its start."""

    kinds: Sequence[Kind]
    namespace: str = ""
    shard: Shard = dataclasses.field(default_factory=Shard)
    candidacy: Candidacy | None = None
    """None: act without an election; whoever starts it sees to it that there is one only."""

    queue_options: QueueOptions = dataclasses.field(
        default_factory=lambda: QueueOptions(rest=_REST_SECONDS)
    )
    options: ClientOptions = dataclasses.field(default_factory=ClientOptions)
    identity: str = ""
    admission_server: WebhookPlace | None = None
    """Where objects are reviewed on their way in; None: nowhere."""

    cluster: str = ""
    """What the cluster is called; empty: by the UID of its namespace kube-system."""

    status_key: str = "fairlead-operator-status"
    """The Secret in the operator's namespace with the key that seals statuses."""


def orders(
    chosen: OperatorSettings, kinds: Sequence[Kind], connection: Connection, *, elect: bool
) -> OperatorOptions:
    """The orders that settings give."""
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    shard = parse_shard(chosen.operator_shard)
    place = Key(connection.namespace, shard.lease(chosen.operator_lease))
    candidacy = Candidacy(place, identity) if elect else None
    if chosen.operator_secrets == "ignored":
        kinds = [kind.without("secrets") for kind in kinds]
    return OperatorOptions(
        *(kinds, chosen.operator_namespace, shard, candidacy),
        identity=identity,
        admission_server=_admission_server(chosen, connection.namespace),
        cluster=cluster_queue.check_name(chosen.operator_cluster),
        status_key=f"{chosen.operator_lease}-status",
    )


def parse_shard(text: str) -> Shard:
    index, slash, count = text.partition("/")
    if not slash or not all(part.isascii() and part.isdecimal() for part in (index, count)):
        raise Rejected(f"not a shard: {text[:40]}", hint="use INDEX/COUNT, such as 0/2")
    return Shard(int(index), int(count))


def _admission_server(chosen: OperatorSettings, namespace: str) -> WebhookPlace | None:
    if not chosen.operator_webhooks_listen:
        return None
    name = chosen.operator_webhooks_name
    host, port = health.parse(chosen.operator_webhooks_listen, "0.0.0.0:8443")
    return WebhookPlace(host, port, name, Key(namespace, f"{name}-webhook"))


class Operator:
    """Reconciles the objects of some kinds."""

    def __init__(
        self,
        connection: Connection,
        told: OperatorOptions,
        working: Working,
        registrars: Sequence[Registrar] = (),
    ) -> None:
        self._orders = told
        self._connection = connection
        self._working = working
        self.queue = ""
        """The queue that is served here, once the cluster's name is known."""

        self._registrars = registrars
        self._figures = health.OperatorMetrics(
            self._read, [one for registrar in registrars for one in registrar.collectors]
        )
        options = told.options
        counted = dataclasses.replace(
            options, count=lambda answered: self._count(options, answered)
        )
        self._client = Client(connection, options=counted)
        self._lease_client = Client(
            connection, options=dataclasses.replace(options, limits=_RENEWING)
        )
        self._watches = Watches(self._client, counted)
        called = told.identity or "operator"
        self._recorder = Recorder(self._client, called, options.clock, room=_EVENTS)
        reach = Reach(told.namespace, told.shard, told.queue_options, options.clock)
        self.controllers = [
            Controller(kind, self._watches, self._client, self._recorder, reach)
            for kind in told.kinds
        ]
        self.reviews = (
            AdmissionReviews(told.admission_server, told.kinds, self._client, options.clock)
            if told.admission_server
            else None
        )
        for controller in self.controllers:
            machine = controller.kind.machine
            controller.siblings = [one for one in self.controllers if one.kind.machine is machine]
        self._synced = self._stopping = False
        self.leading = asyncio.Event()
        self.engine: service.Engine | None = None

    async def run(self) -> None:
        """Operate until cancelled; leaving gives the lease back."""
        async with self._client, self._lease_client:
            tasks = [
                *([asyncio.create_task(self.reviews.run())] if self.reviews else ()),
                asyncio.create_task(self._watches.run()),
                asyncio.create_task(self._recorder.run()),
                asyncio.create_task(self._tidy()),
                asyncio.create_task(self._stand()),
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._stopping = True
                # The election first: its work ends before what it works with. Reviews last: a
                # request that is still sent here is still answered.
                for task in reversed(tasks):
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                await self._last_words()
            for task in done:
                task.result()

    async def _tidy(self) -> None:
        """After a burst of reconciles, what it used and freed goes back to the system."""
        tidied = 0
        while True:
            await self._clock.sleep(_TIDY_SECONDS)
            reconciled = sum(one.reconciled for one in self.controllers)
            if reconciled != tidied and not any(one.waiting for one in self.controllers):
                tidied = reconciled
                heap.give_back()

    @contextlib.asynccontextmanager
    async def answering(self, listen: str) -> AsyncIterator[str]:
        """Serve health and figures inside the block."""
        async with health.answering(listen, self._unready, self._figures.scraped) as address:
            yield address

    async def _stand(self) -> None:
        # Nobody stands for leader who could not act: a cache that never fills shows a missing
        # kind or missing rights, which another process may not have.
        await self._watches.synced(_SYNC_SECONDS)
        self._synced = True
        cluster = self._orders.cluster or await cluster_queue.found_name(
            self._client, self._connection
        )
        self.queue = cluster_queue.queue(cluster, self._orders.namespace, self._orders.shard)
        log.info("kubernetes.queue.served", queue=self.queue)
        candidacy = self._orders.candidacy
        if candidacy is None:
            await self._lead(_Alone())
        else:
            election = Election(self._lease_client, candidacy, self._clock)
            await election.run(self._lead)

    async def _lead(self, term: "leader.Term | _Alone") -> None:
        write_locks = WriteLocks(term)
        async with (
            self._registrations(write_locks) as registration,
            self._working({self.queue: registration.handlers}) as engine,
        ):
            self.engine = engine
            self._figures.engine = collector.EngineCollector(engine)
            for controller in self.controllers:
                controller.begin(
                    write_locks, registration.after_reconcile.get(str(controller.kind.api))
                )
            self.leading.set()
            try:
                async with asyncio.TaskGroup() as tasks:
                    for controller in self.controllers:
                        tasks.create_task(controller.work(engine, self.queue))
            finally:
                if not self._stopping:
                    write_locks.abandon()
                self.engine = self._figures.engine = None
                self.leading.clear()
                for controller in self.controllers:
                    controller.end()

    @contextlib.asynccontextmanager
    async def _registrations(self, write_locks: WriteLocks) -> AsyncIterator[Registration]:
        """Who does what in this term: effects of all kinds, and each registrar's own."""
        held = {str(controller.kind.api): controller.held for controller in self.controllers}
        now = self._clock.now
        performer = effects.Performer(self._client, held, self._recorder, write_locks, now)
        status_key = Key(self._connection.namespace, self._orders.status_key)
        controller_context = ControllerContext(
            *(self._client, self.controllers, performer, write_locks, self._clock, status_key),
            engine=lambda: self.engine,
        )
        handlers = {**performer.handlers()}
        after_reconcile: dict[str, AfterReconcile] = {}
        async with contextlib.AsyncExitStack() as registrars:
            for registrar in self._registrars:
                registration = await registrars.enter_async_context(
                    registrar.registration(controller_context)
                )
                handlers.update(registration.handlers)
                after_reconcile.update(registration.after_reconcile)
            yield Registration(handlers, after_reconcile)

    async def _last_words(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._recorder.flush()

    def _count(self, options: ClientOptions, answered: Answered) -> None:
        self._figures.count(answered)
        options.count(answered)

    def _unready(self) -> list[str]:
        reasons = [] if self._synced else ["caches are not synced yet"]
        if not any(one.held.objects.is_served for one in self.controllers):
            reasons.append("none of its kinds is installed")
        return reasons + (self.reviews.unready() if self.reviews else [])

    def _read(self) -> dict[str, float]:
        return {
            "leader": float(self.leading.is_set()),
            "objects": float(sum(len(one.held.objects) for one in self.controllers)),
            "children": float(
                sum(len(cache) for one in self.controllers for cache in one.held.children.values())
            ),
            "waiting": float(sum(one.waiting for one in self.controllers)),
        }

    @property
    def _clock(self) -> Clock:
        return self._orders.options.clock


class _Alone:
    """The term of an operator that stands alone."""

    def check(self) -> None:
        """Nobody else is there to take over."""
