"""Where the ports of a rollout find its object, its surroundings and their way to write.

A rollout's name is the key of its stream: namespace, name and UID of its object. Everything is
performed only while we lead, while this very object lives, and one at a time for each object.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from fairlead.adapters.canaries.kinds import Canaries
from fairlead.adapters.canaries.provider import Provider
from fairlead.adapters.canaries.reading import Reading
from fairlead.adapters.kubernetes import finalizers, objects
from fairlead.adapters.kubernetes.apply import Applied
from fairlead.adapters.kubernetes.cache import Cache
from fairlead.adapters.kubernetes.crew import Gear
from fairlead.adapters.kubernetes.events import Occurrence
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.adapters.kubernetes.relations import Surroundings
from fairlead.adapters.kubernetes.station import Station
from fairlead.domain.rollouts.sight import Sight
from fairlead.errors import NotFound
from fairlead.intents import kubernetes as door
from fairlead.intents.kubernetes import Api


@dataclass(frozen=True, slots=True)
class Case:
    """One rollout on the desk: its object as it stands, and what surrounds it."""

    station: Station
    obj: Object
    reading: Reading
    around: Surroundings

    @property
    def uid(self) -> str:
        return self.reading.uid

    @property
    def key(self) -> Key:
        return objects.key_of(self.obj)


class Desk:
    """Finds rollouts, and writes for them."""

    def __init__(self, gear: Gear, canaries: Canaries) -> None:
        self.gear = gear
        self.ledger = canaries.ledger
        self._canaries = canaries

    def provider(self, reading: Reading) -> Provider:
        return self._canaries.providers[reading.provider]

    def kept(self, obj: Object, *, under_way: bool) -> Object | None:
        return self._canaries.readings.kept(obj, under_way=under_way)

    def see(self, case: Case) -> Sight:
        return self._canaries.see(case.reading, case.around).sight

    def look(self, name: str) -> Case | None:
        """The rollout as the caches show it; None where its object is gone."""
        held = self.find(name)
        return None if held is None else self.case(*held)

    def case(self, station: Station, obj: Object) -> Case:
        return Case(station, obj, self._canaries.readings.acting(obj), station.surroundings(obj))

    @contextlib.asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[Case | None]:
        """The rollout for writing, while nobody else writes for it; None: it is too late."""
        place = _place(name)
        async with self.gear.turns.of(place.uid):
            self.gear.turns.check()
            held = self.find(name)
            if held is None or objects.is_deleting(held[1]):
                yield None
            else:
                yield self.case(*held)

    def find(self, name: str) -> tuple[Station, Object] | None:
        """This very object, whatever its kind, also one that is on its way out."""
        place = _place(name)
        for station in self.gear.stations:
            for key in station.held.objects.beginning(place.namespace, place.name, place.is_cut):
                obj = station.held.objects.get(key)
                if obj is not None and objects.uid_of(obj) == place.uid:
                    return station, obj
        return None

    def cache(self, case: Case, api: Api) -> Cache:
        return case.station.relations.cache(api)

    async def apply(self, case: Case, api: Api, wish: Object, *, changing: bool = False) -> Applied:
        """Make a child be as wished; one that nobody owns is taken over."""
        self.gear.turns.check()
        applier, cache = case.station.held.applier, self.cache(case, api)
        return await applier.ensure(cache, wish, case.obj, adopt=True, changing=changing)

    async def hold(self, case: Case) -> None:
        """What is adopted must be given back, so the object waits for us at its end."""
        if finalizers.holds(case.obj, case.station.kind.finalizer):
            return
        cache = case.station.held.objects
        live = cache.get(case.key) or case.obj
        await finalizers.hold(self.gear.client, cache, live, case.station.kind.finalizer)

    async def release(self, station: Station, obj: Object) -> None:
        live = station.held.objects.get(objects.key_of(obj)) or obj
        await finalizers.release(
            self.gear.client, station.held.objects, live, station.kind.finalizer
        )

    def tell(self, case: Case, reason: str, note: str, *, warning: bool = False) -> None:
        kind: Literal["Normal", "Warning"] = "Warning" if warning else "Normal"
        self.gear.recorder.record(Occurrence(case.obj, reason, note, kind, topic=note))


def _place(name: str) -> door.Place:
    place = door.place_of(f"rollout/{name}")
    if place is None:
        raise NotFound(
            f"not a rollout of this cluster: {name}",
            hint="an operator and a control plane of its own need stores of their own",
        )
    return place
