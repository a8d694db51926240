"""Where a rollout's versions run: Deployments, one for each slot, and the revisions kept of them.

The primary's version is kept as a ControllerRevision before it becomes the primary, so that it
can be made again by name; the canary's stands in the object, or is kept already.
"""

from collections.abc import Sequence
from typing import Any

import structlog

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import adopted_deployment, children, names, observe_cluster
from fairlead.areas.rollouts.kubernetes import parsing as parse_cache
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.routing.provider import ORDER
from fairlead.areas.rollouts.ports import Slots
from fairlead.errors import NotFound
from fairlead.kubernetes import objects
from fairlead.kubernetes.objects import Key, Resource
from fairlead.kubernetes.writes import compare

log = structlog.get_logger(__name__)
Object = dict[str, Any]


class Platform:
    """The port of a rollout over Deployments."""

    def __init__(self, contexts: RolloutContexts) -> None:
        self._contexts = contexts

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        async with self._contexts.turn(wanted.name) as context:
            if context is None or self._is_late(context, wanted.slot, wanted.order):
                return
            template = await self.template(context, wanted.version)
            if wanted.slot is Slot.PRIMARY:
                await self.keep(context, wanted.version, template)
                await self._forget_oldest(context, wanted.version)
            if wanted.slot is Slot.PRIMARY and context.parsed.is_target:
                await adopted_deployment.roll(self._contexts, context, self, wanted)
            else:
                await self._apply(context, wanted, template)
            part = wanted.slot.value
            self._contexts.orders.perform(context.uid, part, wanted.order, wanted)
            context.controller.requeue(context.key)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        async with self._contexts.turn(wanted.name) as context:
            if context is None:
                return
            for slot in (Slot.CANARY, Slot.BASELINE):
                if not self._is_late(context, slot, wanted.order):
                    await self._remove(context, slot, wanted.order)
            context.controller.requeue(context.key)

    async def _remove(self, context: RolloutContext, slot: Slot, order: int) -> None:
        live = observe_cluster.slot_of(context.parsed, slot, context.snapshot)
        if live is not None and objects.owner_of(live) == context.uid:
            cache = self._contexts.cache(context, names.DEPLOYMENTS)
            await context.controller.held.applier.delete(cache, live)
        self._contexts.orders.perform(context.uid, slot.value, order)

    async def let_go(self, gone: messages.ReleaseResources) -> None:
        """Nothing: garbage collection ends what we own, `after_reconcile` gives the rest back."""

    async def pods(self, name: str) -> Slots:
        context = self._contexts.context_of(name)
        if context is None:
            return Slots()
        observed = self._contexts.see(context)
        return Slots(observed.primary, observed.canary, observed.baseline)

    async def restore(self, context: RolloutContext) -> None:
        """Put slots back to what they were asked to be, where a hand changed them."""
        for slot in Slot:
            if slot is Slot.PRIMARY and context.parsed.is_target:
                continue
            live = observe_cluster.slot_of(context.parsed, slot, context.snapshot)
            version = children.version_in(live) if live is not None else None
            if live is None or version is None or objects.owner_of(live) != context.uid:
                continue
            asked = self._contexts.orders.desired(context.uid, slot.value)
            replicas = int((live.get("spec") or {}).get("replicas", 1))
            if asked is not None and asked.replicas is not None and asked.version == version:
                replicas = asked.replicas
            order, since = children.order_in(live), children.since_in(live)
            hold = children.Hold(slot, version, replicas, order, since)
            template = await self.template(context, version)
            desired = self._deployment(context, template, hold)
            # Not by the digest of the apply: a template may be spelled anew and mean the same.
            changed = compare.differences(desired, live)
            if changed:
                await self._contexts.apply(context, names.DEPLOYMENTS, desired)
            if changed and not any(names.SHAPE in path for path in changed):
                self._restored(context, desired, changed)

    async def serve(self, context: RolloutContext) -> None:
        """The Services of the slots; those beside the primary are made with it and stay."""
        parsed = context.parsed
        workload = parse_cache.workload_of(parsed, context.snapshot)
        found = context.snapshot.found(names.SERVICES, parsed.names.service)
        if not parsed.is_target and parsed.provider != children.RATIO:
            own = children.service(parsed, workload, Slot.PRIMARY)
            await self._put_back(context, names.SERVICES, own)
        theirs = found[0] if parsed.is_target and found else None
        beside = [Slot.CANARY, *([Slot.BASELINE] if parsed.spec.strategy.baseline else [])]
        for slot in beside:
            desired = children.service(parsed, workload, slot, theirs)
            await self._put_back(context, names.SERVICES, desired)

    async def _put_back(self, context: RolloutContext, api: Resource, desired: Object) -> None:
        applied = await self._contexts.apply(context, api, desired)
        made = not applied.changed or applied.fields == ("",)
        if not made and not any(compare.DIGEST in path for path in applied.fields):
            self._restored(context, desired, applied.fields)

    def _restored(self, context: RolloutContext, desired: Object, fields: Sequence[str]) -> None:
        called = f"{desired['kind']} {desired['metadata']['name']}"
        told = f"something else changed {called}; restored: {', '.join(fields[:3])}"
        self._contexts.tell(context, "Restored", told, warning=True)

    async def template(self, context: RolloutContext, version: Version) -> Object:
        """The pod template of a version: as it is wanted, as it is kept, or as it runs."""
        orders = self._contexts.orders
        known = orders.template(context.uid, version.revision)
        if known is not None:
            return known
        wanted = parse_cache.template_of(context.parsed, context.snapshot)
        if triggers.template_hash(wanted) == version.template:
            return wanted
        kept = await self._kept(context, version)
        orders.keep_template(context.uid, version.revision, kept)
        return kept

    async def _kept(self, context: RolloutContext, version: Version) -> Object:
        key = Key(
            context.parsed.namespace,
            children.revision_name(context.parsed, version.revision),
        )
        if key in self._contexts.cache(context, names.REVISIONS):
            found = await self._contexts.controller_context.client.get(names.REVISIONS, key)
            return dict((found.get("data") or {}).get("template") or {})
        for slot in Slot:
            live = observe_cluster.slot_of(context.parsed, slot, context.snapshot)
            if live is not None and children.version_in(live) == version:
                return dict(live["spec"]["template"])
        raise NotFound(
            f"the template of this version is no longer kept: {version}",
            hint="a newer version was requested and follows by itself",
        )

    async def _apply(
        self, context: RolloutContext, wanted: messages.EnsureVersion, template: Object
    ) -> None:
        live = observe_cluster.slot_of(context.parsed, wanted.slot, context.snapshot)
        since, most = _since(wanted, live), wanted.at_least
        if wanted.slot is Slot.PRIMARY:
            most = observe_cluster.most_pods(context.parsed, context.snapshot, most)
        replicas = _scale(wanted, live, most)
        hold = children.Hold(wanted.slot, wanted.version, replicas, wanted.order, since)
        desired = self._deployment(context, template, hold)
        if live is not None and not _differs(desired, live):
            # Only its order is new: the applied orders remember that, and the request is spared.
            return
        applied = await self._contexts.apply(context, names.DEPLOYMENTS, desired)
        if live is None or children.version_in(live) != wanted.version:
            # Exactly: another hand may have made a generation in between.
            born = int(objects.metadata(applied.object).get("generation") or 1)
            self._contexts.orders.note(context.uid, observe_cluster.since_part(wanted.slot), born)

    def _deployment(self, context: RolloutContext, template: Object, hold: children.Hold) -> Object:
        workload = parse_cache.workload_of(context.parsed, context.snapshot)
        theirs = None
        if context.parsed.is_target:
            found = context.snapshot.found(names.SERVICES, context.parsed.names.service)
            target = observe_cluster.slot_of(context.parsed, Slot.PRIMARY, context.snapshot)
            theirs = children.Theirs(target, found[0] if found else None)
        return children.deployment(context.parsed, workload, template, hold, theirs)

    async def keep(self, context: RolloutContext, version: Version, template: Object) -> None:
        """Keep the version by its name."""
        cache = self._contexts.cache(context, names.REVISIONS)
        name = children.revision_name(context.parsed, version.revision)
        if Key(context.parsed.namespace, name) in cache:
            return
        kept = sorted(cache.owned_by(context.uid), key=lambda one: int(one.get("revision", 0)))
        number = int(kept[-1].get("revision", 0)) + 1 if kept else 1
        made = children.revision(context.parsed, version, template, number)
        await self._contexts.apply(context, names.REVISIONS, made)
        self._contexts.orders.keep_template(context.uid, version.revision, template)

    async def _forget_oldest(self, context: RolloutContext, version: Version) -> None:
        """Of the earlier ones no more than the object asks for; an edit that waits is none."""
        live = observe_cluster.slot_of(context.parsed, Slot.PRIMARY, context.snapshot)
        waits = parse_cache.parked(live) if live is not None else None
        held = children.version_in(live) if live is not None else None
        if held == version:
            return
        spared = {
            children.revision_name(context.parsed, one.revision)
            for one in (version, held, waits)
            if one is not None
        }
        cache = self._contexts.cache(context, names.REVISIONS)
        kept = sorted(cache.owned_by(context.uid), key=lambda one: int(one.get("revision", 0)))
        others = [one for one in kept if one["metadata"]["name"] not in spared]
        room = context.parsed.spec.keep - (held is not None)
        for old in others[: max(0, len(others) - room)]:
            await context.controller.held.applier.delete(cache, old)

    def _is_late(self, context: RolloutContext, slot: Slot, order: int) -> bool:
        live = observe_cluster.slot_of(context.parsed, slot, context.snapshot)
        shown = children.order_in(live)
        if live is None and slot is not Slot.PRIMARY:
            # An empty slot shows no order; the route was written after both were made.
            observed = self._contexts.see(context).route
            shown = observed.order if observed else 0
        return order < max(shown, self._contexts.orders.order(context.uid, slot.value))


def _scale(wanted: messages.EnsureVersion, live: Object | None, at_least: int) -> int:
    """As asked; where an autoscaler decides, as it stands, but enough for what is to come."""
    if wanted.replicas is not None:
        return wanted.replicas
    standing = int((live.get("spec") or {}).get("replicas", 1)) if live is not None else 0
    return max(standing, at_least)


def _since(wanted: messages.EnsureVersion, live: Object | None) -> int:
    if live is None:
        return 1
    if children.version_in(live) == wanted.version:
        return children.since_in(live)
    return int(objects.metadata(live).get("generation") or 0) + 1


def _differs(desired: Object, live: Object) -> bool:
    meta = {key: value for key, value in desired["metadata"].items() if key != "annotations"}
    told = {k: v for k, v in desired["metadata"]["annotations"].items() if k != ORDER}
    bare = {**desired, "metadata": {**meta, "annotations": told}}
    return bool(compare.differences(bare, live))
