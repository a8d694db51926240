"""This machine and an engine: handlers for a rollout's effects, and observations in return."""

import asyncio
import contextlib
import datetime as dt
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import structlog

from fairlead import errors
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.rollouts import handlers, workloads
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.local import envoy_mapping, envoy_stats, plan_steps
from fairlead.areas.rollouts.local.envoy_stats import EnvoyStats
from fairlead.areas.rollouts.local.platform import LocalPlatform
from fairlead.areas.rollouts.traffic_stats import TRAFFIC_STATS
from fairlead.areas.rollouts.workload_logs import WORKLOAD_LOGS
from fairlead.checks import providers
from fairlead.checks import wiring as checks
from fairlead.checks.ports import MetricSource
from fairlead.checks.provider import Problem, Provider
from fairlead.checks.registry import Registry
from fairlead.checks.spec import PROMETHEUS, Check, CheckKind
from fairlead.checks.subject import Names, Naming, News, Side, Subject
from fairlead.clients import prometheus
from fairlead.engine import messages as engine_messages
from fairlead.engine import outbox, service, visibility
from fairlead.engine.store import protocol
from fairlead.web.services import Services

ENVOY = "envoy"
"""The source of Envoy's own numbers, which needs no Prometheus."""

Measures = Callable[
    [Registry, Naming, Callable[[], dt.datetime]], contextlib.AbstractAsyncContextManager[None]
]
"""Opens who answers checks elsewhere: Prometheus, and whoever is asked over the web."""

_log = structlog.get_logger(__name__)


class Local:
    """A machine, its numbers, and the world they are to a rollout."""

    def __init__(self, folder: Path, measures: Measures, *, prometheus: bool = False) -> None:
        self.machine = LocalPlatform(folder)
        self.stats = EnvoyStats(self.machine.workloads, _now)
        self._measures = measures
        usual = PROMETHEUS if prometheus else ENVOY
        self._checks = Registry(usual, {ENVOY: self.stats}, {}, {"log": LogNotifier()})
        self.world = handlers.RolloutPorts(
            self.machine, self.machine, self.machine, self._checks, _now, self.stats
        )
        self._told: dict[str, Observation] = {}

    def handlers(self, answers: workloads.Answers) -> outbox.Handlers:
        files = plan_steps.PlanFiles(self.machine.folder)
        steps = plan_steps.handlers(self.machine, files, answers)
        return {**handlers.handlers(self.world), **steps}

    @contextlib.asynccontextmanager
    async def beside(self, engine: service.Engine) -> AsyncIterator[None]:
        """Run what was wanted, and tell the engine what is seen of it."""

        async def tell(name: str) -> None:
            await self._tell(engine, name)

        async with self._measures(self._checks, named, _now), self.machine.running(tell):
            remembered = self.machine.remembered()
            tasks = [
                asyncio.create_task(self._remind(engine, remembered), name="remind rollouts"),
                asyncio.create_task(self.stats.run(), name="sample envoys"),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _tell(self, engine: service.Engine, name: str) -> None:
        seen = await handlers.observed(self.world, name)
        if seen.same_as(self._told.get(name)):
            return
        command_id = engine_messages.CommandId(f"observed {uuid.uuid4()}")
        stream = coordination.rollout_stream(name)
        await engine.observe(stream, messages.Observed(seen), command_id, queue=self.machine.queue)
        self._told[name] = seen

    async def _remind(self, engine: service.Engine, statuses: Mapping[str, RolloutStatus]) -> None:
        """A store that was lost learns from what rollouts told; any other knows better."""
        queue = self.machine.queue
        try:
            await _take_over(engine, list(self.machine.workloads), queue)
        except errors.FairleadError as error:
            _log.warning("rollouts_not_taken_over", error=error.message)
        for name, status in statuses.items():
            digest = hashlib.sha256(msgspec.json.encode(status)).hexdigest()[:32]
            command_id = engine_messages.command_id(f"adopt {digest}")
            stream, adopt = coordination.rollout_stream(name), messages.Adopt(status)
            try:
                await engine.observe(stream, adopt, command_id, queue=queue)
            except errors.FairleadError as error:
                _log.warning("status_not_adopted", workload=name, error=error.message)


def folder(chosen: settings_.Settings) -> Path:
    return chosen.store.state_dir.expanduser() / "local"


def queue(chosen: settings_.Settings) -> str:
    """Of rollouts on this machine, for who plans them."""
    return LocalPlatform(folder(chosen)).queue


def platform(chosen: settings_.Settings) -> parts.Platform:
    """This machine as a platform: processes behind an Envoy of their own."""

    def asked(
        registry: Registry, naming: Naming, now: Callable[[], dt.datetime]
    ) -> contextlib.AbstractAsyncContextManager[None]:
        return checks.opened(chosen.measures, registry, naming, now)

    usual = bool(chosen.measures.prometheus_url)
    here = Local(folder(chosen), asked, prometheus=usual)
    answers = _answers(chosen, here.stats)
    services = (
        Services()
        .provided(TRAFFIC_STATS, here.stats)
        .provided(workloads.DEPLOY_TARGET, here.machine)
        .provided(workloads.ANSWERS, answers)
        .provided(WORKLOAD_LOGS, here.machine)
    )
    return parts.Platform({here.machine.queue: here.handlers(answers)}, here.beside, services)


def _answers(chosen: settings_.Settings, stats: EnvoyStats) -> workloads.Answers:
    envoy: Provider[MetricSource] = Provider(
        lambda _: contextlib.nullcontext(stats), envoy_stats.problems, compares=True
    )
    found = providers.found(chosen.measures)
    known = replace(found, sources={**found.sources, ENVOY: envoy})
    usual = PROMETHEUS if chosen.measures.prometheus_url else ENVOY

    def answers(check: Check, name: str) -> Sequence[Problem]:
        if not check.source and check.kind is not CheckKind.GATE:
            check = replace(check, source=usual)
        return known.problems(check, name, _names(Slot.CANARY, "revision"))

    return answers


def named(about: Subject, side: Side) -> Names:
    """Under which name Envoy, and whoever scrapes it, counts a slot."""
    return _names(Slot(side.value), about.version(side).revision)


def _names(slot: Slot, revision: str) -> Names:
    return Names(prometheus.ENVOY, {"cluster": envoy_mapping.cluster(slot, revision)})


async def _take_over(engine: service.Engine, names: Sequence[str], queue: str) -> None:
    """Rollouts of this machine from before there were queues come into its own."""

    def ours(session: protocol.Session) -> list[engine_messages.StreamName]:
        found = [visibility.find(session, coordination.rollout_stream(name)) for name in names]
        return [each.name for each in found if each is not None and each.queue == ""]

    if found := await engine.read(ours):
        moved, _ = await engine.move(found, queue)
        _log.info("rollouts_taken_over", queue=queue, rollouts=moved)


class LogNotifier:
    """News as lines of the log."""

    async def notify(self, news: News) -> None:
        _log.info("rollout_notification", rollout=news.name, kind=news.kind, text=news.text)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
