"""Where the ports of a rollout find its object, its snapshot and their way to write.

A rollout's name is the key of its stream: namespace, name and UID of its object. Everything is
performed only while we lead, while this very object lives, and one at a time for each object.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.kubernetes import children
from fairlead.areas.rollouts.kubernetes.kinds import RolloutKinds
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout
from fairlead.areas.rollouts.kubernetes.routing.provider import Provider
from fairlead.errors import NotFound
from fairlead.kubernetes import kinds, objects
from fairlead.kubernetes.cache.dependencies import CachedSnapshot
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.controller.controller import Controller
from fairlead.kubernetes.controller.registration import ControllerContext
from fairlead.kubernetes.messages import RecordEvent
from fairlead.kubernetes.objects import Key, Object, Resource
from fairlead.kubernetes.writes import finalizers
from fairlead.kubernetes.writes.apply import Applied


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """One rollout: its object as it stands, and what surrounds it."""

    controller: Controller
    obj: Object
    parsed: ParsedRollout
    snapshot: CachedSnapshot

    @property
    def uid(self) -> str:
        return self.parsed.uid

    @property
    def key(self) -> Key:
        return objects.key_of(self.obj)


class RolloutContexts:
    """Finds rollouts, and writes for them."""

    def __init__(self, controller_context: ControllerContext, canaries: RolloutKinds) -> None:
        self.controller_context = controller_context
        self.orders = canaries.orders
        self._canaries = canaries

    def provider(self, parsed: ParsedRollout) -> Provider:
        return self._canaries.providers[parsed.provider]

    def kept(self, obj: Object, *, under_way: bool) -> Object | None:
        return self._canaries.parse_cache.kept(obj, under_way=under_way)

    def answered(self, controller: Controller, obj: Object) -> Mapping[str, str]:
        return self._canaries.answered(obj, controller.cached_snapshot(obj))

    def seal(self, obj: Object, content: object) -> str:
        assert self._canaries.seals is not None, "taken up with the term"
        return self._canaries.seals.of(obj, content)

    def see(self, context: RolloutContext) -> Observation:
        return self._canaries.see(context.parsed, context.snapshot).observed

    def context_of(self, name: str) -> RolloutContext | None:
        """The rollout as the caches show it; None where its object is gone."""
        held = self.find(name)
        return None if held is None else self.context(*held)

    def context(self, controller: Controller, obj: Object) -> RolloutContext:
        return RolloutContext(
            controller, obj, self._canaries.parse_cache.acting(obj), controller.cached_snapshot(obj)
        )

    @contextlib.asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[RolloutContext | None]:
        """The rollout for writing, while nobody else writes for it; None: it is too late."""
        place = _place(name)
        async with self.controller_context.write_locks.of(place.uid):
            self.controller_context.write_locks.check()
            held = self.find(name)
            if held is None or objects.is_deleting(held[1]):
                yield None
            else:
                yield self.context(*held)

    def find(self, name: str) -> tuple[Controller, Object] | None:
        """This very object, whatever its kind, also one that is on its way out."""
        place = _place(name)
        for controller in self.controller_context.controllers:
            for key in controller.held.objects.beginning(place.namespace, place.name, place.is_cut):
                obj = controller.held.objects.get(key)
                if obj is not None and objects.uid_of(obj) == place.uid:
                    return controller, obj
        return None

    def cache(self, context: RolloutContext, api: Resource) -> Cache:
        return context.controller.dependencies.cache(api)

    async def apply(
        self, context: RolloutContext, api: Resource, desired: Object, *, changing: bool = False
    ) -> Applied:
        """Make a child be as requested; what a namesake left is taken over, and nothing else."""
        self.controller_context.write_locks.check()
        applier, cache = context.controller.held.applier, self.cache(context, api)
        meta = desired["metadata"]
        labels = {**(meta.get("labels") or {}), **children.mark(context.parsed)}
        marked = {**desired, "metadata": {**meta, "labels": labels}}
        live = cache.get(objects.key_of(marked))
        adopt = live is not None and children.is_ours(context.parsed, live)
        return await applier.ensure(cache, marked, context.obj, adopt=adopt, changing=changing)

    async def hold(self, context: RolloutContext) -> None:
        """What is adopted must be given back, so the object waits for us at its end."""
        if finalizers.holds(context.obj, context.controller.kind.finalizer):
            return
        cache = context.controller.held.objects
        live = cache.get(context.key) or context.obj
        await finalizers.hold(
            self.controller_context.client, cache, live, context.controller.kind.finalizer
        )

    async def release(self, controller: Controller, obj: Object) -> None:
        live = controller.held.objects.get(objects.key_of(obj)) or obj
        await finalizers.release(
            self.controller_context.client, controller.held.objects, live, controller.kind.finalizer
        )

    def tell(
        self, context: RolloutContext, reason: str, note: str, *, warning: bool = False
    ) -> None:
        subject = context.controller.kind.subject(context.obj)
        told = RecordEvent(subject, reason, note, warning, topic=note)
        self.controller_context.performer.record(told)


def _place(name: str) -> kinds.Place:
    place = kinds.place_of(f"rollout/{name}")
    if place is None:
        raise NotFound(
            f"rollout of another cluster: {name}",
            hint="move its stream to the queue of the machine that runs it: fairlead queues move",
        )
    return place
