"""The one loop beside the machine: what is done for a rollout's object after each reconcile.

It makes the Services, puts slots back that a hand changed, holds a target again once it is
promoted, and at the end gives back what was adopted and lets the object go. The machine does none
of that: it runs without a cluster too and has no words for it, nothing is decided in it, and a
target must be held in the moment it is seen whole, not after a way through the store
(docs/decisions/0037-beside-the-machine.md). All that can be decided is asked for by effects.
"""

import contextlib
from collections import OrderedDict
from typing import Any

import structlog

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import adopted_deployment, names, parsing
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.kinds import RolloutKinds
from fairlead.areas.rollouts.kubernetes.platform import Platform
from fairlead.areas.rollouts.kubernetes.router import Router
from fairlead.errors import Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.store import Cache, number
from fairlead.kubernetes.controller.controller import AfterReconcile, Controller
from fairlead.kubernetes.kinds import InvalidSpec
from fairlead.kubernetes.writes import finalizers

log = structlog.get_logger(__name__)
Object = dict[str, Any]
_REMEMBERED = 20_000


class ChildReconciler:
    """What is done for an object after each reconcile, beside its machine."""

    def __init__(
        self,
        contexts: RolloutContexts,
        platform: Platform,
        router: Router,
        canaries: RolloutKinds,
        metrics: RolloutMetrics,
    ) -> None:
        self._contexts = contexts
        self._platform = platform
        self._router = router
        self._canaries = canaries
        self._metrics = metrics
        self._in_order: OrderedDict[str, tuple[object, ...]] = OrderedDict()
        """How rollouts stood when there was nothing to do for them, by UID."""

    def of(self, controller: Controller) -> AfterReconcile:
        async def after_reconcile(obj: Object) -> float | None:
            return await self.after_reconcile(controller, obj) or None

        return after_reconcile

    async def after_reconcile(self, controller: Controller, obj: Object) -> float:
        """In how many seconds it is to be done again; 0: when something changes."""
        self._count(controller, obj)
        async with self._contexts.controller_context.write_locks.of(objects.uid_of(obj)):
            self._contexts.controller_context.write_locks.check()
            live = _as_held(controller.held.objects, obj)
            if live is None or objects.uid_of(live) != objects.uid_of(obj):
                return 0.0
            if objects.is_deleting(live):
                return await self._leave(controller, live)
            if objects.uid_of(live) not in self._canaries.refused:
                with contextlib.suppress(InvalidSpec):
                    # The reconcile has said it: a target that is gone cannot be served.
                    await self._look_after(self._contexts.context(controller, live))
            return 0.0

    async def _look_after(self, rollout_context: RolloutContext) -> None:
        before = self._stand(rollout_context)
        if self._in_order.get(rollout_context.uid) == before:
            return
        await self._platform.serve(rollout_context)
        await self._platform.restore(rollout_context)
        if rollout_context.parsed.is_target:
            await adopted_deployment.hold_again(self._contexts, rollout_context, self._platform)
        if self._stand(rollout_context) == before:
            self._in_order[rollout_context.uid] = before
            if len(self._in_order) > _REMEMBERED:
                self._in_order.popitem(last=False)

    def _stand(self, rollout_context: RolloutContext) -> tuple[object, ...]:
        """All that decides whether the children are as they should be; any hand changes it."""
        called, orders = rollout_context.parsed.names, self._contexts.orders
        places = ((names.DEPLOYMENTS, called.deployments), (names.SERVICES, called.services))
        versions = (
            self._contexts.cache(rollout_context, api).version(
                objects.Key(rollout_context.parsed.namespace, name)
            )
            for api, named in places
            for name in named.values()
        )
        desired_objects = (orders.desired(rollout_context.uid, slot.value) for slot in Slot)
        return (rollout_context.parsed.generation, *versions, *desired_objects)

    async def _leave(self, controller: Controller, obj: Object) -> float:
        """Give back what was adopted; only then may the object go. Without a finalizer: nothing."""
        if not finalizers.holds(obj, names.FINALIZER):
            return 0.0
        try:
            rollout_context = self._contexts.context(controller, obj)
        except Rejected as error:
            # One that could never be read must not stay for ever.
            log.warning("canaries.released_unread", key=str(objects.key_of(obj)), error=str(error))
        else:
            again = await self._give_back(rollout_context)
            if again:
                return again
        await self._contexts.release(controller, obj)
        return 0.0

    async def _give_back(self, rollout_context: RolloutContext) -> float:
        """All that can be; where some of it was refused, that is said and tried again."""
        refused: list[Rejected] = []
        again = 0.0
        try:
            again = await self._router.restore(rollout_context)
        except Rejected as error:
            # The target is another object: it is given back all the same.
            refused.append(error)
        try:
            if rollout_context.parsed.is_target:
                await adopted_deployment.give_back(self._contexts, rollout_context, self._platform)
        except Rejected as error:
            refused.append(error)
        if refused:
            why = "; ".join(map(str, refused))
            told = f"not given back, so the object stays: {why}"
            await rollout_context.controller.stays(rollout_context.obj, told)
            raise refused[0]
        return again

    def _count(self, controller: Controller, obj: Object) -> None:
        phase = parsing.status_of(obj).phase
        if phase:
            self._metrics.phase(controller.kind, objects.key_of(obj), phase)


def _as_held(cache: Cache, obj: Object) -> Object | None:
    """The object as it is held now; mostly that is the one we have."""
    key = objects.key_of(obj)
    if cache.version(key) == number(objects.version_of(obj)):
        return obj
    return cache.get(key)
