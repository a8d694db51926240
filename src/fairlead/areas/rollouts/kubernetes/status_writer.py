"""What people see of a rollout on its object: the status, Events, and the flag that is put back.

Status and Events are written by the runtime, as for every other kind; here the name by which a
rollout knows itself becomes its object, and its words become those of the runtime's effects.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog

from fairlead.areas.rollouts.domain import messages as rollouts
from fairlead.areas.rollouts.domain.status import Condition, RolloutStatus
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.context import RolloutContexts
from fairlead.checks.subject import News
from fairlead.errors import Conflict, NotFound, Rejected
from fairlead.kubernetes import messages, objects
from fairlead.kubernetes.messages import PublishStatus, RecordEvent

log = structlog.get_logger(__name__)
Object = dict[str, Any]

PAUSE_SECONDS = 0.15
"""So long a status waits for a newer one, for a rollout says several things in one breath."""

_WARNINGS = frozenset({"RollingBack", "RolledBack", "Stalled", "Drifted"})
_STATUSES: Mapping[str, bool | None] = {"True": True, "False": False}


class StatusWriter:
    """The port of a rollout to its object."""

    def __init__(self, contexts: RolloutContexts, metrics: RolloutMetrics) -> None:
        self._contexts = contexts
        self._metrics = metrics
        self._newest: dict[str, int] = {}

    async def publish(self, effect: rollouts.PublishStatus) -> None:
        name, round_ = effect.name, effect.status.round
        if self._newest.get(name, 0) > round_:
            return
        self._newest[name] = round_
        await self._contexts.controller_context.clock.sleep(PAUSE_SECONDS)
        if self._newest.get(name, 0) > round_:
            return
        try:
            await self._write(name, effect.status)
        finally:
            if self._newest.get(name) == round_:
                del self._newest[name]

    async def reset_override(self, name: str) -> None:
        async with self._contexts.turn(name) as context:
            if context is None or not context.parsed.override:
                return
            change: list[Object] = [
                {"op": "test", "path": "/metadata/uid", "value": context.uid},
                {"op": "test", "path": "/spec/override", "value": True},
                {"op": "replace", "path": "/spec/override", "value": False},
            ]
            resource = context.controller.kind.api
            try:
                answer = await self._contexts.controller_context.client.patch(
                    resource, context.key, change, kind="json"
                )
            except NotFound:
                return
            except (Conflict, Rejected) as error:
                # Somebody set it back first, or it is a namesake: the next reconcile shows.
                log.info("canaries.override.changed", name=name, error=error.message)
                return
            context.controller.held.objects.wrote(answer)

    async def _write(self, name: str, status: RolloutStatus) -> None:
        held = self._contexts.find(name)
        if held is None:
            return
        controller, live = held
        effect = PublishStatus(
            controller.kind.subject(live),
            status.round,
            status.observed_generation,
            status.plain(),
            tuple(_condition(one) for one in status.conditions),
        )

        def beside(live: Object) -> Object:
            # A rollback or a release follows it, should the next spec be invalid.
            kept = self._contexts.kept(live, under_way=bool(status.canary_revision))
            done = self._contexts.answered(controller, live)
            whole = msgspec.structs.replace(status, accepted=kept, requests=dict(done))
            said = {"seal": self._contexts.seal(live, whole.remembered), "requests": done}
            return said if kept is None else {**said, "accepted": kept}

        if await self._contexts.controller_context.performer.publish(effect, beside):
            self._metrics.phase(controller.kind, objects.key_of(live), status.phase)


def _condition(one: Condition) -> messages.Condition:
    return messages.Condition(one.type, _STATUSES.get(one.status), one.reason, one.message)


class EventNotifier:
    """News as Events of the object, and counted."""

    def __init__(self, contexts: RolloutContexts, metrics: RolloutMetrics) -> None:
        self._contexts = contexts
        self._metrics = metrics

    async def notify(self, news: News) -> None:
        self._metrics.news(news.kind)
        held = self._contexts.find(news.name)
        if held is not None and not objects.is_deleting(held[1]):
            subject, warning = held[0].kind.subject(held[1]), news.kind in _WARNINGS
            told = RecordEvent(subject, news.kind, news.text, warning, topic=news.text)
            self._contexts.controller_context.performer.record(told)
