"""Where a rollout's versions run: Deployments, one for each slot, and the revisions kept of them.

The primary's version is kept as a ControllerRevision before it becomes the primary, so that it
can be made again by name; the canary's stands in the object, or is kept already.
"""

from collections.abc import Sequence
from typing import Any

import structlog

from fairlead.adapters.canaries import children, names, seeing, targets
from fairlead.adapters.canaries import reading as readings
from fairlead.adapters.canaries.desk import Case, Desk
from fairlead.adapters.canaries.provider import ORDER
from fairlead.adapters.kubernetes import compare, objects, rights
from fairlead.adapters.kubernetes.objects import Key
from fairlead.domain.rollouts import messages, triggers
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Slots
from fairlead.domain.rollouts.spec import Version
from fairlead.errors import NotFound
from fairlead.intents.kubernetes import Api

log = structlog.get_logger(__name__)
Object = dict[str, Any]


class Platform:
    """The port of a rollout over Deployments."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        async with self._desk.turn(wanted.name) as case:
            if case is None or self._is_late(case, wanted.slot, wanted.order):
                return
            template = await self.template(case, wanted.version)
            if wanted.slot is Slot.PRIMARY:
                await self.keep(case, wanted.version, template)
                await self._forget_oldest(case, wanted.version)
            if wanted.slot is Slot.PRIMARY and case.reading.is_target:
                await targets.roll(self._desk, case, self, wanted)
            else:
                await self._apply(case, wanted, template)
            part = wanted.slot.value
            self._desk.ledger.perform(case.uid, part, wanted.order, wanted)
            case.station.look_again(case.key)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        async with self._desk.turn(wanted.name) as case:
            if case is None:
                return
            for slot in (Slot.CANARY, Slot.BASELINE):
                if not self._is_late(case, slot, wanted.order):
                    await self._remove(case, slot, wanted.order)
            case.station.look_again(case.key)

    async def _remove(self, case: Case, slot: Slot, order: int) -> None:
        live = seeing.slot_of(case.reading, slot, case.around)
        if live is not None and objects.owner_of(live) == case.uid:
            cache = self._desk.cache(case, names.DEPLOYMENTS)
            await case.station.held.applier.delete(cache, live)
        self._desk.ledger.perform(case.uid, slot.value, order)

    async def let_go(self, gone: messages.LetGo) -> None:
        """Nothing: garbage collection ends what we own, and `tend` gives back what we do not."""

    async def pods(self, name: str) -> Slots:
        case = self._desk.look(name)
        if case is None:
            return Slots()
        sight = self._desk.see(case)
        return Slots(sight.primary, sight.canary, sight.baseline)

    async def restore(self, case: Case) -> None:
        """Put slots back to what they were asked to be, where a hand changed them."""
        for slot in Slot:
            if slot is Slot.PRIMARY and case.reading.is_target:
                continue
            live = seeing.slot_of(case.reading, slot, case.around)
            version = children.version_in(live) if live is not None else None
            if live is None or version is None or objects.owner_of(live) != case.uid:
                continue
            asked = self._desk.ledger.wish(case.uid, slot.value)
            replicas = int((live.get("spec") or {}).get("replicas", 1))
            if asked is not None and asked.replicas is not None and asked.version == version:
                replicas = asked.replicas
            order, since = children.order_in(live), children.since_in(live)
            hold = children.Hold(slot, version, replicas, order, since)
            template = await self.template(case, version)
            wish = self._deployment(case, template, hold)
            # Not by the digest of the apply: a template may be spelled anew and mean the same.
            changed = compare.differences(wish, live)
            if changed:
                await self._desk.apply(case, names.DEPLOYMENTS, wish)
            if changed and not any(names.SHAPE in path for path in changed):
                self._restored(case, wish, changed)

    async def serve(self, case: Case) -> None:
        """The Services of the slots; those beside the primary are made with it and stay."""
        reading = case.reading
        workload = readings.workload_of(reading, case.around)
        found = case.around.found(names.SERVICES, reading.names.service)
        if not reading.is_target and reading.provider != children.RATIO:
            own = children.service(reading, workload, Slot.PRIMARY)
            await self._put_back(case, names.SERVICES, own)
        theirs = found[0]["spec"] if reading.is_target and found else None
        beside = [Slot.CANARY, *([Slot.BASELINE] if reading.spec.strategy.baseline else [])]
        for slot in beside:
            wish = children.service(reading, workload, slot, theirs)
            await self._put_back(case, names.SERVICES, wish)

    async def _put_back(self, case: Case, api: Api, wish: Object) -> None:
        applied = await self._desk.apply(case, api, wish)
        made = not applied.changed or applied.fields == ("",)
        if not made and not any(compare.DIGEST in path for path in applied.fields):
            self._restored(case, wish, applied.fields)

    def _restored(self, case: Case, wish: Object, fields: Sequence[str]) -> None:
        called = f"{wish['kind']} {wish['metadata']['name']}"
        told = f"{called} was changed by hand, and is put back: {', '.join(fields[:3])}"
        self._desk.tell(case, "Restored", told, warning=True)

    async def template(self, case: Case, version: Version) -> Object:
        """The pod template of a version: as it is wanted, as it is kept, or as it runs."""
        ledger = self._desk.ledger
        known = ledger.template(case.uid, version.revision)
        if known is not None:
            return known
        wanted = readings.template_of(case.reading, case.around)
        if triggers.template_hash(wanted) == version.template:
            return wanted
        kept = await self._kept(case, version)
        ledger.keep_template(case.uid, version.revision, kept)
        return kept

    async def _kept(self, case: Case, version: Version) -> Object:
        key = Key(case.reading.namespace, children.revision_name(case.reading, version.revision))
        if key in self._desk.cache(case, names.REVISIONS):
            found = await self._desk.gear.client.get(rights.resource(names.REVISIONS), key)
            return dict((found.get("data") or {}).get("template") or {})
        for slot in Slot:
            live = seeing.slot_of(case.reading, slot, case.around)
            if live is not None and children.version_in(live) == version:
                return dict(live["spec"]["template"])
        raise NotFound(
            f"nobody has the template of this version any more: {version}",
            hint="a newer version is wanted by now; it follows by itself",
        )

    async def _apply(self, case: Case, wanted: messages.EnsureVersion, template: Object) -> None:
        live = seeing.slot_of(case.reading, wanted.slot, case.around)
        since = _since(wanted, live)
        hold = children.Hold(wanted.slot, wanted.version, _scale(wanted, live), wanted.order, since)
        wish = self._deployment(case, template, hold)
        if live is not None and not _differs(wish, live):
            # Only its order is new: the ledger remembers that, and the request is spared.
            return
        applied = await self._desk.apply(case, names.DEPLOYMENTS, wish)
        if live is None or children.version_in(live) != wanted.version:
            # Exactly: another hand may have made a generation in between.
            born = int(objects.metadata(applied.object).get("generation") or 1)
            self._desk.ledger.note(case.uid, seeing.since_part(wanted.slot), born)

    def _deployment(self, case: Case, template: Object, hold: children.Hold) -> Object:
        workload = readings.workload_of(case.reading, case.around)
        found = case.around.found(names.SERVICES, case.reading.names.service)
        theirs = found[0]["spec"] if case.reading.is_target and found else None
        return children.deployment(case.reading, workload, template, hold, theirs)

    async def keep(self, case: Case, version: Version, template: Object) -> None:
        """Keep the version by its name."""
        cache = self._desk.cache(case, names.REVISIONS)
        name = children.revision_name(case.reading, version.revision)
        if Key(case.reading.namespace, name) in cache:
            return
        kept = sorted(cache.owned_by(case.uid), key=lambda one: int(one.get("revision", 0)))
        number = int(kept[-1].get("revision", 0)) + 1 if kept else 1
        made = children.revision(case.reading, version, template, number)
        await self._desk.apply(case, names.REVISIONS, made)
        self._desk.ledger.keep_template(case.uid, version.revision, template)

    async def _forget_oldest(self, case: Case, version: Version) -> None:
        """Of the earlier ones no more than the object asks for; an edit that waits is none."""
        live = seeing.slot_of(case.reading, Slot.PRIMARY, case.around)
        waits = readings.parked(live) if live is not None else None
        held = children.version_in(live) if live is not None else None
        if held == version:
            return
        spared = {
            children.revision_name(case.reading, one.revision)
            for one in (version, held, waits)
            if one is not None
        }
        cache = self._desk.cache(case, names.REVISIONS)
        kept = sorted(cache.owned_by(case.uid), key=lambda one: int(one.get("revision", 0)))
        others = [one for one in kept if one["metadata"]["name"] not in spared]
        room = case.reading.spec.keep - (held is not None)
        for old in others[: max(0, len(others) - room)]:
            await case.station.held.applier.delete(cache, old)

    def _is_late(self, case: Case, slot: Slot, order: int) -> bool:
        live = seeing.slot_of(case.reading, slot, case.around)
        shown = children.order_in(live)
        if live is None and slot is not Slot.PRIMARY:
            # An empty slot shows no order; the route was written after both were made.
            sight = self._desk.see(case).route
            shown = sight.order if sight else 0
        return order < max(shown, self._desk.ledger.order(case.uid, slot.value))


def _scale(wanted: messages.EnsureVersion, live: Object | None) -> int:
    """As asked; where an autoscaler decides, as it stands, but enough for what is to come."""
    if wanted.replicas is not None:
        return wanted.replicas
    standing = int((live.get("spec") or {}).get("replicas", 1)) if live is not None else 0
    return max(standing, wanted.at_least)


def _since(wanted: messages.EnsureVersion, live: Object | None) -> int:
    if live is None:
        return 1
    if children.version_in(live) == wanted.version:
        return children.since_in(live)
    return int(objects.metadata(live).get("generation") or 0) + 1


def _differs(wish: Object, live: Object) -> bool:
    meta = {key: value for key, value in wish["metadata"].items() if key != "annotations"}
    told = {k: v for k, v in wish["metadata"]["annotations"].items() if k != ORDER}
    bare = {**wish, "metadata": {**meta, "annotations": told}}
    return bool(compare.differences(bare, live))
