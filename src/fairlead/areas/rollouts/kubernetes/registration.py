"""Rollouts at work during one term of an operator: their ports, handlers, and children."""

import contextlib
import dataclasses
import datetime as dt
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

from prometheus_client import registry

from fairlead.areas.rollouts import handlers
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import parsing, plan_steps
from fairlead.areas.rollouts.kubernetes.child_reconciler import ChildReconciler
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.context import RolloutContexts
from fairlead.areas.rollouts.kubernetes.kinds import RolloutKinds
from fairlead.areas.rollouts.kubernetes.platform import Platform
from fairlead.areas.rollouts.kubernetes.router import Router
from fairlead.areas.rollouts.kubernetes.status_writer import EventNotifier, StatusWriter
from fairlead.checks.registry import Registry
from fairlead.checks.subject import Names, Naming, Side, Subject
from fairlead.engine import outbox
from fairlead.errors import NotFound
from fairlead.kubernetes import objects
from fairlead.kubernetes.controller.controller import Controller
from fairlead.kubernetes.controller.registration import ControllerContext, Registration
from fairlead.kubernetes.writes import seals

Measures = Callable[
    [Registry, Naming, Callable[[], dt.datetime]], AbstractAsyncContextManager[None]
]
"""Opens who answers checks, for as long as the block lasts."""


class RolloutRegistrar:
    """Registers rollouts, term after term."""

    def __init__(self, canaries: RolloutKinds, measures: Measures) -> None:
        self._canaries = canaries
        self._measures = measures
        self._metrics = RolloutMetrics()
        self._heard: set[Controller] = set()

    @property
    def collectors(self) -> Sequence[registry.Collector]:
        return (self._metrics,)

    @contextlib.asynccontextmanager
    async def registration(
        self, controller_context: ControllerContext
    ) -> AsyncIterator[Registration]:
        self._canaries.orders.forget()
        self._canaries.seals = await seals.load(
            controller_context.client, controller_context.status_key
        )
        ours = {str(kind.api) for kind in self._canaries.kinds}
        controllers = [one for one in controller_context.controllers if str(one.kind.api) in ours]
        ours_only = dataclasses.replace(controller_context, controllers=controllers)
        contexts = RolloutContexts(ours_only, self._canaries)
        platform, router = Platform(contexts), Router(contexts)
        checks = Registry(notifiers={"events": EventNotifier(contexts, self._metrics)})
        now = controller_context.clock.now
        async with self._measures(checks, CachedNames(contexts), now):
            world = handlers.RolloutPorts(
                platform=platform,
                router=router,
                owner=StatusWriter(contexts, self._metrics),
                checks=checks,
                now=now,
            )
            self._hear(controllers)
            care = ChildReconciler(contexts, platform, router, self._canaries, self._metrics)
            after_reconcile = {str(one.kind.api): care.of(one) for one in controllers}
            steps = plan_steps.handlers(contexts, self._canaries)
            performed = {**self._counted(handlers.handlers(world)), **steps}
            yield Registration(performed, after_reconcile)

    def _hear(self, controllers: Sequence[Controller]) -> None:
        """Once for each: a cache tells for as long as it lives, which is longer than a term."""
        for controller in set(controllers) - self._heard:
            self._heard.add(controller)
            controller.held.objects.on_change(functools.partial(self._changed, controller))

    def _changed(self, controller: Controller, key: objects.Key) -> None:
        if key not in controller.held.objects:
            self._metrics.gone(controller.kind, key)

    def _counted(self, handlers: outbox.Handlers) -> outbox.Handlers:
        """The same handlers, with an eye on what checks came to."""
        measure = handlers[messages.Measure]

        async def perform(effect: messages.Measure, context: outbox.EffectContext) -> object | None:
            judged = await measure.perform(effect, context)
            if isinstance(judged, messages.Judged):
                for finding in judged.findings:
                    self._metrics.verdict(finding.phase.value if finding.phase else "NoData")
            return judged

        return {**handlers, messages.Measure: dataclasses.replace(measure, perform=perform)}


class CachedNames:
    """Under which names the metrics know the slots of a rollout."""

    def __init__(self, contexts: RolloutContexts) -> None:
        self._contexts = contexts

    def __call__(self, about: Subject, side: Side) -> Names:
        rollout_context = self._contexts.context_of(about.name)
        if rollout_context is None:
            raise NotFound(f"no such rollout: {about.name}", hint="its object is gone")
        return parsing.called(rollout_context.parsed, Slot(side.value))
