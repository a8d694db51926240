"""From the effects of deployments to AWS: what a later try may mend is tried again, all else told.

No error of AWS is swallowed and none leaves a deployment waiting: a refusal fails the step, or the
deployment where no step has begun.
"""

from collections.abc import Callable
from datetime import timedelta

from fairlead.areas.deployments.aws.databases import Databases
from fairlead.areas.deployments.aws.stacks import Stacks
from fairlead.areas.deployments.databases import report, tried
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.infrastructure import StackStatus, from_cloudformation
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.plan.steps import works
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.clients.aws import stores
from fairlead.clients.aws.session import Account, Aws
from fairlead.engine import outbox

_CALL, _STEP = timedelta(minutes=2), timedelta(minutes=20)
_ATTEMPTS = 50
"""Over about four hours: an outage of AWS, or a limit that is raised, takes no longer."""


def handlers(aws: Aws, databases: Databases) -> dict[type, outbox.Handler]:
    calls = _Calls(aws, databases)
    return {
        messages.StoreTemplate: outbox.Handler(calls.store, _CALL, _ATTEMPTS),
        messages.StabilizeStack: outbox.Handler(calls.stabilize, _CALL, _ATTEMPTS),
        messages.PerformStep: outbox.Handler(calls.perform, _STEP, _ATTEMPTS),
        messages.ObserveStep: outbox.Handler(calls.observe, _CALL, _ATTEMPTS),
    }


class _Calls:
    """Each effect in a thread, with our errors."""

    def __init__(self, aws: Aws, databases: Databases) -> None:
        self._aws = aws
        self._databases = databases
        self._stacks = Stacks(aws)

    async def store(
        self, effect: messages.StoreTemplate, _: outbox.EffectContext
    ) -> messages.ReportTemplate:
        where = Account(effect.place.region, effect.assume_role)

        def put() -> messages.ReportTemplate:
            kept = stores.ObjectStore(self._aws.client("s3", where))
            for key, text in {effect.place.key: effect.body, **effect.beside}.items():
                kept.put(effect.place.bucket, key, text)
            return messages.ReportTemplate()

        return await tried(put, messages.ReportTemplate)

    async def stabilize(
        self, effect: messages.StabilizeStack, about: outbox.EffectContext
    ) -> messages.ReportStackStatus:
        token = about.idempotency_key
        return await tried(
            lambda: self._stable(effect, token),
            lambda error: messages.ReportStackStatus(StackStatus.TERMINAL, error),
        )

    async def perform(
        self, effect: messages.PerformStep, _: outbox.EffectContext
    ) -> messages.ReportStep:
        begins = {kind: begin for kind, (begin, _) in self._stacks.kinds().items()}
        work = {**begins, **self._databases.kinds()}.get(effect.kind)
        if work is None:
            unknown = f"nobody here performs a step of this kind: {effect.kind}"
            return report(effect, StepStatus.FAILED, unknown)
        return await self._step(effect, work)

    async def observe(
        self, effect: messages.ObserveStep, _: outbox.EffectContext
    ) -> messages.ReportStep:
        asked = self._stacks.kinds()[effect.begun.kind][1]
        return await self._step(effect.begun, asked)

    async def _step(
        self,
        step: messages.PerformStep,
        work: Callable[[messages.PerformStep], messages.ReportStep],
    ) -> messages.ReportStep:
        return await tried(
            lambda: work(step),
            lambda error: report(step, StepStatus.FAILED, error),
        )

    def _stable(self, effect: messages.StabilizeStack, token: str) -> messages.ReportStackStatus:
        spec = effect.spec
        stacks = self._stacks.of(spec)
        found = stacks.describe(spec.stack)
        if found is None:
            return messages.ReportStackStatus(StackStatus.MISSING)
        if found.status == "UPDATE_IN_PROGRESS" and spec.has(Flag.CANCEL_UPDATES):
            stacks.cancel(spec.stack, token)
        status = from_cloudformation(found.status)
        detail = f"{found.status}: {found.reason}" if found.reason else found.status
        pending = self._pending(effect) if spec.has(Flag.QUICK) else None
        return messages.ReportStackStatus(status, detail, pending)

    def _pending(self, effect: messages.StabilizeStack) -> dict[str, int] | None:
        """Asked only where the plan depends on it: whether quick has anything to migrate."""
        every = {key: self._databases.pending(work) for key, work in works(effect.spec).items()}
        return {key: count for key, count in every.items() if count is not None} or None
