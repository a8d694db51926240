"""From the effects of deployments to this machine; what a later try may mend is tried again."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta

from fairlead.areas.deployments.databases import report, tried
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import PerformStep, ReportStep, StepStatus
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.plan.steps import works
from fairlead.areas.deployments.domain.spec import Flag, Workload
from fairlead.areas.deployments.local.databases import Databases
from fairlead.areas.rollouts.domain import coordination
from fairlead.areas.rollouts.local.plan_steps import PlanFiles
from fairlead.engine import outbox, service, visibility
from fairlead.engine.store import protocol

_STEP = timedelta(minutes=10)
_ATTEMPTS = 50
_NO_INFRASTRUCTURE = "this machine has no infrastructure that a deployment could change: NOP"


def handlers(
    plans: PlanFiles, databases: Databases, engine: Callable[[], service.Engine]
) -> outbox.Handlers:
    calls = _Calls(plans, databases, engine)
    return {
        messages.StoreTemplate: outbox.Handler(calls.store, attempts=_ATTEMPTS),
        messages.StabilizeStack: outbox.Handler(calls.stabilize, _STEP, _ATTEMPTS),
        messages.PerformStep: outbox.Handler(calls.perform, _STEP, _ATTEMPTS),
        messages.ObserveStep: outbox.Handler(calls.observe, attempts=_ATTEMPTS),
    }


class _Calls:
    """Each effect in a thread, with our errors."""

    def __init__(
        self, plans: PlanFiles, databases: Databases, engine: Callable[[], service.Engine]
    ) -> None:
        self._plans = plans
        self._databases = databases
        self._engine = engine
        self._kinds: Mapping[str, Callable[[PerformStep], ReportStep]] = {
            Kind.CF_PLAN.value: _nothing_to_change,
            **databases.kinds(),
        }

    async def store(
        self, effect: messages.StoreTemplate, _: outbox.EffectContext
    ) -> messages.ReportTemplate:
        def put() -> messages.ReportTemplate:
            for key, text in {effect.place.key: effect.body, **effect.beside}.items():
                self._plans.put(key, text)
            return messages.ReportTemplate()

        return await tried(put, messages.ReportTemplate)

    async def stabilize(
        self, effect: messages.StabilizeStack, _: outbox.EffectContext
    ) -> messages.ReportStackStatus:
        """A workload never moves by itself: a run under way makes room for the next version."""
        spec = effect.spec
        assert spec.workload is not None
        runs = spec.workload
        if not await self._engine().read(lambda session: _is_there(session, runs)):
            return messages.ReportStackStatus(StackStatus.MISSING)
        pending = None
        if spec.has(Flag.QUICK):
            pending = await asyncio.to_thread(self._pending, effect)
        return messages.ReportStackStatus(StackStatus.COMPLETE, pending=pending)

    async def perform(self, effect: PerformStep, _: outbox.EffectContext) -> ReportStep:
        work = self._kinds.get(effect.kind)
        if work is None:
            unknown = f"nobody here performs a step of this kind: {effect.kind}"
            return report(effect, StepStatus.FAILED, unknown)
        return await tried(
            lambda: work(effect), lambda error: report(effect, StepStatus.FAILED, error)
        )

    async def observe(self, effect: messages.ObserveStep, _: outbox.EffectContext) -> ReportStep:
        """None of our steps is ever under way: whoever asks was told the end already."""
        return report(effect.begun, StepStatus.FAILED, "it was never begun on this machine")

    def _pending(self, effect: messages.StabilizeStack) -> dict[str, int] | None:
        every = {key: self._databases.pending(work) for key, work in works(effect.spec).items()}
        return {key: count for key, count in every.items() if count is not None} or None


def _is_there(session: protocol.Session, runs: Workload) -> bool:
    if runs.queue:
        # In Kubernetes its name ends with a UID, which no plan knows.
        found = visibility.StreamFilter("rollout", ended=False, scope=runs.rollout, limit=1)
        return bool([*visibility.streams(session, found)])
    known = visibility.find(session, coordination.rollout_stream(runs.rollout))
    return known is not None and known.ended_at is None


def _nothing_to_change(step: PerformStep) -> ReportStep:
    done = StepStatus.DONE
    reasons = (_NO_INFRASTRUCTURE,)
    return ReportStep(step.step, step.attempt, done, impact=Impact.NOP, reasons=reasons)
