"""The operator: caches always, and an engine behind the door while we lead.

watches ─► caches ─► (elected) ─► queue ─► Door ─► engine ─► effects ─► API server ─► watches …

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

from fairlead.adapters import heap
from fairlead.adapters.kubernetes import effects, health, leader
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.crew import Crew, Duties, Gear
from fairlead.adapters.kubernetes.events import Recorder
from fairlead.adapters.kubernetes.leader import Candidacy, Election
from fairlead.adapters.kubernetes.limits import Limits
from fairlead.adapters.kubernetes.objects import Key
from fairlead.adapters.kubernetes.queue import Pace
from fairlead.adapters.kubernetes.reviewing import Desk, Reviews
from fairlead.adapters.kubernetes.shards import Shard
from fairlead.adapters.kubernetes.station import Reach, Station, Tend
from fairlead.adapters.kubernetes.transport import Answered, Tempo
from fairlead.adapters.kubernetes.turns import Turns
from fairlead.adapters.kubernetes.watch import Watches
from fairlead.engine import outbox, service
from fairlead.errors import Rejected
from fairlead.intents.kubernetes import Kind
from fairlead.settings import OperatorSettings

log = structlog.get_logger(__name__)

_SYNC_SECONDS = 120.0
_FLUSH_SECONDS = 2.0
_TIDY_SECONDS = 20.0
# Children change in bursts; a look at each change would be most of the work.
_REST_SECONDS = 0.1
# Events that may wait: a shared config starts thousands of rollouts in one breath.
_EVENTS = 20_000
# Renewals go past the limits of the other client, and are never repeated by the transport.
_RENEWING = Limits(attempts=1, timeout=5.0)

Working = Callable[[outbox.Handlers], AbstractAsyncContextManager[service.Engine]]
"""Makes an engine that performs with these handlers, for as long as the block lasts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Orders:
    """What an operator is told at its start."""

    kinds: Sequence[Kind]
    namespace: str = ""
    shard: Shard = dataclasses.field(default_factory=Shard)
    candidacy: Candidacy | None = None
    """None: act without an election; whoever starts it sees to it that there is one only."""

    pace: Pace = dataclasses.field(default_factory=lambda: Pace(rest=_REST_SECONDS))
    tempo: Tempo = dataclasses.field(default_factory=Tempo)
    identity: str = ""
    desk: Desk | None = None
    """Where objects are reviewed on their way in; None: nowhere."""


def orders(
    chosen: OperatorSettings, kinds: Sequence[Kind], connection: Connection, *, elect: bool
) -> Orders:
    """The orders that settings give."""
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    shard = parse_shard(chosen.operator_shard)
    place = Key(connection.namespace, shard.lease(chosen.operator_lease))
    candidacy = Candidacy(place, identity) if elect else None
    if chosen.operator_secrets == "ignored":
        kinds = [kind.without("secrets") for kind in kinds]
    return Orders(
        *(kinds, chosen.operator_namespace, shard, candidacy),
        identity=identity,
        desk=_desk(chosen, connection.namespace),
    )


def parse_shard(text: str) -> Shard:
    index, slash, count = text.partition("/")
    if not slash or not all(part.isascii() and part.isdecimal() for part in (index, count)):
        raise Rejected(f"not a shard: {text[:40]}", hint="use INDEX/COUNT, such as 0/2")
    return Shard(int(index), int(count))


def _desk(chosen: OperatorSettings, namespace: str) -> Desk | None:
    if not chosen.operator_webhooks_listen:
        return None
    name = chosen.operator_webhooks_name
    host, port = health.parse(chosen.operator_webhooks_listen, "0.0.0.0:8443")
    return Desk(host, port, name, Key(namespace, f"{name}-webhook"))


class Operator:
    """Looks after the objects of some kinds."""

    def __init__(
        self,
        connection: Connection,
        told: Orders,
        working: Working,
        crews: Sequence[Crew] = (),
    ) -> None:
        self._orders = told
        self._working = working
        self._crews = crews
        self._figures = health.Figures(
            self._read, [one for crew in crews for one in crew.collectors]
        )
        tempo = told.tempo
        counted = dataclasses.replace(tempo, count=lambda answered: self._count(tempo, answered))
        self._client = Client(connection, tempo=counted)
        self._lease_client = Client(connection, tempo=dataclasses.replace(tempo, limits=_RENEWING))
        self._watches = Watches(self._client, counted)
        called = told.identity or "operator"
        self._recorder = Recorder(self._client, called, tempo.clock, room=_EVENTS)
        reach = Reach(told.namespace, told.shard, told.pace, tempo.clock)
        self.stations = [
            Station(kind, self._watches, self._client, self._recorder, reach) for kind in told.kinds
        ]
        self.reviews = (
            Reviews(told.desk, told.kinds, self._client, tempo.clock) if told.desk else None
        )
        for station in self.stations:
            machine = station.kind.machine
            station.siblings = [one for one in self.stations if one.kind.machine is machine]
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
        """After a burst of looks, what it used and freed goes back to the system."""
        tidied = 0
        while True:
            await self._clock.sleep(_TIDY_SECONDS)
            looked = sum(one.looked for one in self.stations)
            if looked != tidied and not any(one.waiting for one in self.stations):
                tidied = looked
                heap.give_back()

    @contextlib.asynccontextmanager
    async def answering(self, listen: str) -> AsyncIterator[str]:
        """Serve health and figures inside the block."""
        async with health.answering(listen, self._unready, self._figures) as address:
            yield address

    async def _stand(self) -> None:
        # Nobody stands for leader who could not act: a cache that never fills shows a missing
        # kind or missing rights, which another process may not have.
        await self._watches.synced(_SYNC_SECONDS)
        self._synced = True
        candidacy = self._orders.candidacy
        if candidacy is None:
            await self._lead(_Alone())
        else:
            election = Election(self._lease_client, candidacy, self._clock)
            await election.run(self._lead)

    async def _lead(self, term: "leader.Term | _Alone") -> None:
        turns = Turns(term)
        async with self._duties(turns) as duties, self._working(duties.handlers) as engine:
            self.engine = engine
            for station in self.stations:
                station.begin(turns, duties.tend.get(str(station.kind.api)))
            self.leading.set()
            try:
                async with asyncio.TaskGroup() as tasks:
                    for station in self.stations:
                        tasks.create_task(station.work(engine))
            finally:
                if not self._stopping:
                    turns.abandon()
                self.engine = None
                self.leading.clear()
                for station in self.stations:
                    station.end()

    @contextlib.asynccontextmanager
    async def _duties(self, turns: Turns) -> AsyncIterator[Duties]:
        """What everybody does in this term: the words that all kinds share, and each crew's own."""
        held = {str(station.kind.api): station.held for station in self.stations}
        now = self._clock.now
        performer = effects.Performer(self._client, held, self._recorder, turns, now)
        gear = Gear(self._client, self.stations, self._recorder, turns, self._clock)
        handlers = {**performer.handlers()}
        tend: dict[str, Tend] = {}
        async with contextlib.AsyncExitStack() as crews:
            for crew in self._crews:
                duties = await crews.enter_async_context(crew.duties(gear))
                handlers.update(duties.handlers)
                tend.update(duties.tend)
            yield Duties(handlers, tend)

    async def _last_words(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._recorder.flush()

    def _count(self, tempo: Tempo, answered: Answered) -> None:
        self._figures.count(answered)
        tempo.count(answered)

    def _unready(self) -> list[str]:
        reasons = [] if self._synced else ["the caches are not yet filled"]
        return reasons + (self.reviews.unready() if self.reviews else [])

    def _read(self) -> dict[str, float]:
        return {
            "leader": float(self.leading.is_set()),
            "objects": float(sum(len(one.held.objects) for one in self.stations)),
            "children": float(
                sum(len(cache) for one in self.stations for cache in one.held.children.values())
            ),
            "waiting": float(sum(one.waiting for one in self.stations)),
        }

    @property
    def _clock(self) -> Clock:
        return self._orders.tempo.clock


class _Alone:
    """The term of an operator that stands alone."""

    def check(self) -> None:
        """Nobody else is there to take over."""
