"""This machine joined to an engine: handlers for a rollout's effects, and sights in return."""

import asyncio
import contextlib
import datetime as dt
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import msgspec
import structlog

from fairlead import errors
from fairlead.adapters.local import tables
from fairlead.adapters.local.machine import Machine
from fairlead.adapters.local.sampler import Sampler
from fairlead.domain.analysis import conditions
from fairlead.domain.rollouts import bonds, effects, messages, ports
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Check
from fairlead.engine import messages as engine_messages
from fairlead.engine import outbox, service

Both = tuple[ports.Metrics, ports.Gates]
Measures = Callable[
    [ports.Naming, Callable[[], dt.datetime]], contextlib.AbstractAsyncContextManager[Both]
]
"""Opens what answers checks elsewhere: Prometheus, and whoever is asked over the web."""

_log = structlog.get_logger(__name__)


class Local:
    """A machine, its numbers, and the world they are to a rollout."""

    def __init__(self, folder: Path, measures: Measures, *, prometheus: bool = False) -> None:
        self.machine = Machine(folder)
        self.sampler = Sampler(self.machine.workloads, _now)
        self._measures = measures
        self._asked = asked = _Asked(self.sampler, prometheus=prometheus)
        self.world = effects.World(self.machine, self.machine, asked, asked, self.machine, _now)
        self._told: dict[str, Sight] = {}

    @property
    def handlers(self) -> outbox.Handlers:
        return effects.handlers(self.world)

    @contextlib.asynccontextmanager
    async def beside(self, engine: service.Engine) -> AsyncIterator[None]:
        """Run what was wanted, and tell the engine what is seen of it."""

        async def tell(name: str) -> None:
            await self._tell(engine, name)

        async with self._measures(named, _now) as both, self.machine.running(tell):
            self._asked.elsewhere = both
            remembered = self.machine.remembered()
            tasks = [
                asyncio.create_task(_remind(engine, remembered), name="remind rollouts"),
                asyncio.create_task(self.sampler.run(), name="sample envoys"),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _tell(self, engine: service.Engine, name: str) -> None:
        seen = await effects.sight(self.world, name)
        if seen.same_as(self._told.get(name)):
            return
        command_id = engine_messages.CommandId(f"sight {uuid.uuid4()}")
        await engine.submit(bonds.rollout_stream(name), messages.Observed(seen), command_id)
        self._told[name] = seen


def named(about: messages.Measure, slot: Slot) -> ports.Names:
    """Under which name Envoy, and whoever scrapes it, counts a slot."""
    version = about.canary if slot is Slot.CANARY else about.primary
    return ports.Names("envoy", {"cluster": tables.cluster(slot, version.revision)})


async def _remind(engine: service.Engine, statuses: Mapping[str, Mapping[str, object]]) -> None:
    """A store that was lost learns from what rollouts told; any other knows better."""
    for name, status in statuses.items():
        digest = hashlib.sha256(msgspec.json.encode(status)).hexdigest()[:32]
        command_id = engine_messages.command_id(f"adopt {digest}")
        try:
            await engine.submit(
                bonds.rollout_stream(name), messages.Adopt(dict(status)), command_id
            )
        except errors.FairleadError as error:
            _log.warning("status_not_adopted", workload=name, error=error.message)


class _Asked:
    """Metrics and gates: Envoy's own numbers where no Prometheus is named, else that one."""

    def __init__(self, sampler: Sampler, *, prometheus: bool) -> None:
        self._sampler = sampler
        self._prometheus = prometheus
        self.elsewhere: Both | None = None

    async def ask(self, check: Check, about: messages.Measure) -> conditions.Answer:
        return await self._metrics(check).ask(check, about)

    async def compare(self, check: Check, about: messages.Measure) -> ports.Samples:
        return await self._metrics(check).compare(check, about)

    async def is_open(self, check: Check, about: messages.Measure) -> tuple[bool, str]:
        return await self._both()[1].is_open(check, about)

    async def read(self, check: Check, about: messages.Measure) -> conditions.Answer:
        return await self._both()[1].read(check, about)

    async def notify(self, news: messages.Notify) -> None:
        _log.info("rollout_news", rollout=news.name, kind=news.kind, text=news.text)
        await self._both()[1].notify(news)

    def _metrics(self, check: Check) -> ports.Metrics:
        if self._prometheus or check.server:
            return self._both()[0]
        return self._sampler

    def _both(self) -> Both:
        if self.elsewhere is None:
            raise errors.Unavailable("the control plane is stopping", hint="it is asked again")
        return self.elsewhere


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
