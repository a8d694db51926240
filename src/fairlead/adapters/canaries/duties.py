"""Rollouts at work during one term of an operator: their ports, their handlers, and their care.

Beside the machine stands `tend`: after each look it puts back what a hand changed, makes the
Services, holds targets, and gives back what was adopted before an object goes.
"""

import contextlib
import dataclasses
import datetime as dt
import functools
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from prometheus_client import registry

from fairlead.adapters.canaries import names, reading, targets
from fairlead.adapters.canaries.desk import Case, Desk
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.canaries.kinds import Canaries
from fairlead.adapters.canaries.owner import Herald, Owner
from fairlead.adapters.canaries.platform import Platform
from fairlead.adapters.canaries.router import Router
from fairlead.adapters.kubernetes import finalizers, objects
from fairlead.adapters.kubernetes.cache import Cache, number
from fairlead.adapters.kubernetes.crew import Duties, Gear
from fairlead.adapters.kubernetes.station import Station, Tend
from fairlead.domain.rollouts import effects, messages, ports
from fairlead.domain.rollouts.messages import Slot
from fairlead.engine import outbox
from fairlead.errors import NotFound, Rejected
from fairlead.intents.kubernetes import InvalidSpec

Object = dict[str, Any]
_REMEMBERED = 20_000
Measures = Callable[
    [ports.Naming, Callable[[], dt.datetime]],
    AbstractAsyncContextManager[tuple[ports.Metrics, ports.Gates]],
]
"""Opens what answers checks, for as long as the block lasts."""


class Crew:
    """Takes up the duties of rollouts, term after term."""

    def __init__(self, canaries: Canaries, measures: Measures) -> None:
        self._canaries = canaries
        self._measures = measures
        self._figures = Figures()
        self._heard: set[Station] = set()

    @property
    def collectors(self) -> Sequence[registry.Collector]:
        return (self._figures,)

    @contextlib.asynccontextmanager
    async def duties(self, gear: Gear) -> AsyncIterator[Duties]:
        self._canaries.ledger.forget()
        ours = {str(kind.api) for kind in self._canaries.kinds}
        stations = [one for one in gear.stations if str(one.kind.api) in ours]
        desk = Desk(
            Gear(gear.client, stations, gear.recorder, gear.turns, gear.clock), self._canaries
        )
        platform, router = Platform(desk), Router(desk)
        async with self._measures(Naming(desk), gear.clock.now) as (metrics, gates):
            world = effects.World(
                platform=platform,
                router=router,
                metrics=metrics,
                gates=Herald(desk, gates, self._figures),
                owner=Owner(desk, self._figures),
                now=gear.clock.now,
            )
            self._hear(stations)
            care = Care(desk, platform, router, self._canaries, self._figures)
            tend = {str(one.kind.api): care.of(one) for one in stations}
            yield Duties(self._counted(effects.handlers(world)), tend)

    def _hear(self, stations: Sequence[Station]) -> None:
        """Once for each: a cache tells for as long as it lives, which is longer than a term."""
        for station in set(stations) - self._heard:
            self._heard.add(station)
            station.held.objects.on_change(functools.partial(self._changed, station))

    def _changed(self, station: Station, key: objects.Key) -> None:
        if key not in station.held.objects:
            self._figures.gone(station.kind, key)

    def _counted(self, handlers: outbox.Handlers) -> outbox.Handlers:
        """The same handlers, with an eye on what checks came to."""
        measure = handlers[messages.Measure]

        async def perform(effect: messages.Measure, context: outbox.Context) -> object | None:
            judged = await measure.perform(effect, context)
            if isinstance(judged, messages.Judged):
                for finding in judged.findings:
                    self._figures.verdict(finding.phase.value if finding.phase else "NoData")
            return judged

        return {**handlers, messages.Measure: dataclasses.replace(measure, perform=perform)}


class Care:
    """What is done for an object after each look, beside its machine."""

    def __init__(
        self,
        desk: Desk,
        platform: Platform,
        router: Router,
        canaries: Canaries,
        figures: Figures,
    ) -> None:
        self._desk = desk
        self._platform = platform
        self._router = router
        self._canaries = canaries
        self._figures = figures
        self._in_order: OrderedDict[str, tuple[object, ...]] = OrderedDict()
        """How rollouts stood when there was nothing to do for them, by UID."""

    def of(self, station: Station) -> Tend:
        async def tend(obj: Object) -> float | None:
            await self.tend(station, obj)
            return None

        return tend

    async def tend(self, station: Station, obj: Object) -> None:
        self._count(station, obj)
        async with self._desk.gear.turns.of(objects.uid_of(obj)):
            self._desk.gear.turns.check()
            live = _as_held(station.held.objects, obj)
            if live is None or objects.uid_of(live) != objects.uid_of(obj):
                return
            if objects.is_deleting(live):
                await self._leave(station, live)
            elif objects.uid_of(live) not in self._canaries.refused:
                with contextlib.suppress(InvalidSpec):
                    # The look has said it: a target that is gone cannot be served.
                    await self._look_after(self._desk.case(station, live))

    async def _look_after(self, case: Case) -> None:
        before = self._stand(case)
        if self._in_order.get(case.uid) == before:
            return
        await self._platform.serve(case)
        await self._platform.restore(case)
        if case.reading.is_target:
            await targets.tend(self._desk, case, self._platform)
        if self._stand(case) == before:
            self._in_order[case.uid] = before
            if len(self._in_order) > _REMEMBERED:
                self._in_order.popitem(last=False)

    def _stand(self, case: Case) -> tuple[object, ...]:
        """All that decides whether the children are as they should be; any hand changes it."""
        called, ledger = case.reading.names, self._desk.ledger
        places = ((names.DEPLOYMENTS, called.deployments), (names.SERVICES, called.services))
        versions = (
            self._desk.cache(case, api).version(objects.Key(case.reading.namespace, name))
            for api, named in places
            for name in named.values()
        )
        wishes = (ledger.wish(case.uid, slot.value) for slot in Slot)
        return (case.reading.generation, *versions, *wishes)

    async def _leave(self, station: Station, obj: Object) -> None:
        """Give back what was adopted; then the object may go. Without a finalizer: nothing."""
        if not finalizers.holds(obj, names.FINALIZER):
            return
        with contextlib.suppress(Rejected):
            # One that could never be read must not stay for ever.
            case = self._desk.case(station, obj)
            await self._router.restore(case)
            if case.reading.is_target:
                await targets.give_back(self._desk, case, self._platform)
        await self._desk.release(station, obj)

    def _count(self, station: Station, obj: Object) -> None:
        phase = (obj.get("status") or {}).get("phase")
        if phase:
            self._figures.phase(station.kind, objects.key_of(obj), str(phase))


def _as_held(cache: Cache, obj: Object) -> Object | None:
    """The object as it is held now; mostly that is the one we have."""
    key = objects.key_of(obj)
    if cache.version(key) == number(objects.version_of(obj)):
        return obj
    return cache.get(key)


class Naming:
    """Under which names the metrics know the slots of a rollout."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def __call__(self, about: messages.Measure, slot: Slot) -> ports.Names:
        case = self._desk.look(about.name)
        if case is None:
            raise NotFound(f"no such rollout: {about.name}", hint="its object is gone")
        return reading.called(case.reading, slot)
