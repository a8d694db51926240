"""What people see of a rollout on its object: the status, Events, and the flag that is put back."""

import functools
from collections.abc import Mapping
from typing import Any, Literal

import structlog

from fairlead.adapters.canaries.desk import Desk
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.kubernetes import objects, rights
from fairlead.adapters.kubernetes import status as statuses
from fairlead.adapters.kubernetes.events import Occurrence
from fairlead.adapters.kubernetes.station import Station
from fairlead.domain.analysis.conditions import Answer
from fairlead.domain.rollouts import messages, ports
from fairlead.domain.rollouts.spec import Check
from fairlead.errors import Conflict, NotFound, Rejected

log = structlog.get_logger(__name__)
Object = dict[str, Any]

PAUSE_SECONDS = 0.15
"""So long a status waits for a newer one, for a rollout says several things in one breath."""

STATUS = "status"
_WARNINGS = frozenset({"GoingHome", "TakenBack", "Stalled", "Drifted"})
_STATUSES: Mapping[str, bool | None] = {"True": True, "False": False}
_READ = ("uid", "generation", "annotations", "finalizers", "deletionTimestamp")
# What stands in a status beside what the machine publishes.
_BESIDE = ("requests",)


class Owner:
    """The port of a rollout to its object."""

    def __init__(self, desk: Desk, figures: Figures) -> None:
        self._desk = desk
        self._figures = figures
        self._newest: dict[str, int] = {}

    async def publish(self, status: messages.PublishStatus) -> None:
        newest = self._newest.get(status.name, 0)
        if newest > status.serial:
            return
        self._newest[status.name] = status.serial
        await self._desk.gear.clock.sleep(PAUSE_SECONDS)
        if self._newest.get(status.name, 0) > status.serial:
            return
        try:
            await self._write(status)
        finally:
            if self._newest.get(status.name) == status.serial:
                del self._newest[status.name]

    async def reset_override(self, name: str) -> None:
        async with self._desk.turn(name) as case:
            if case is None or not case.reading.override:
                return
            change: list[Object] = [
                {"op": "test", "path": "/metadata/uid", "value": case.uid},
                {"op": "test", "path": "/spec/override", "value": True},
                {"op": "replace", "path": "/spec/override", "value": False},
            ]
            resource = rights.resource(case.station.kind.api)
            try:
                answer = await self._desk.gear.client.patch(resource, case.key, change, kind="json")
            except NotFound:
                return
            except (Conflict, Rejected) as error:
                # Somebody set it back first, or it is a namesake: the next look tells.
                log.info("canaries.override.changed", name=name, error=error.message)
                return
            case.station.held.objects.wrote(answer)

    async def _write(self, status: messages.PublishStatus) -> None:
        held = self._desk.find(status.name)
        if held is None or objects.is_deleting(held[1]):
            return
        self._desk.gear.turns.check()
        async with self._desk.gear.turns.of(objects.uid_of(held[1])):
            found = self._desk.find(status.name)
            if found is None:
                return
            station, live = found
            uid, ledger = objects.uid_of(live), self._desk.ledger
            if status.serial < ledger.order(uid, STATUS):
                return
            ledger.perform(uid, STATUS, status.serial)
            wanted = self._wanted(status, live)
            try:
                take = functools.partial(_take_in, station, live)
                await statuses.write(
                    self._desk.gear.client, station.held.objects, live, wanted, take
                )
            except NotFound:
                return
            self._count(station, live, status)

    def _count(self, station: Station, live: Object, status: messages.PublishStatus) -> None:
        self._figures.phase(station.kind, objects.key_of(live), str(status.status.get("phase")))

    def _wanted(self, status: messages.PublishStatus, live: Object) -> Object:
        before = live.get("status") or {}
        news = [
            statuses.Condition(
                one["type"], _STATUSES.get(one["status"]), one["reason"], one["message"]
            )
            for one in status.status.get("conditions") or ()
        ]
        generation = int(status.status.get("observedGeneration") or 0)
        now = self._desk.gear.clock.now()
        merged = statuses.with_conditions(before.get("conditions") or [], news, generation, now)
        beside = {key: before[key] for key in _BESIDE if key in before}
        under_way = bool(status.status.get("canaryRevision"))
        # It leads the way home, or gives back, should the next spec make no sense.
        kept = self._desk.kept(live, under_way=under_way)
        told = {**status.status, "serial": status.serial, "conditions": merged}
        return {**beside, **told, **({"accepted": kept} if kept is not None else {})}


def _take_in(station: Station, before: Object, answer: Object) -> None:
    """What we publish is no news to ourselves, unless the write brought something else along."""
    if _read(before) == _read(answer):
        station.take_in(answer)
    else:
        station.held.objects.wrote(answer)


def _read(obj: Object) -> tuple[object, ...]:
    """What a look reads of the object itself; a generation stands for its spec."""
    meta, memory = obj["metadata"], (obj.get("status") or {}).get("memory") or {}
    halt = ((memory.get("data") or {}).get("book") or {}).get("paused")
    return (*(meta.get(key) for key in _READ), halt)


class Herald:
    """Gates as they are, and news as Events of the object."""

    def __init__(self, desk: Desk, gates: ports.Gates, figures: Figures) -> None:
        self._desk = desk
        self._gates = gates
        self._figures = figures

    async def is_open(self, check: Check, about: messages.Measure) -> tuple[bool, str]:
        return await self._gates.is_open(check, about)

    async def read(self, check: Check, about: messages.Measure) -> Answer:
        return await self._gates.read(check, about)

    async def notify(self, news: messages.Notify) -> None:
        self._figures.news(news.kind)
        held = self._desk.find(news.name)
        if held is not None and not objects.is_deleting(held[1]):
            kind: Literal["Normal", "Warning"] = "Warning" if news.kind in _WARNINGS else "Normal"
            told = Occurrence(held[1], news.kind, news.text, kind, "Roll", topic=news.text)
            self._desk.gear.recorder.record(told)
        await self._gates.notify(news)
