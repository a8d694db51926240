"""Many canaries at rest: what a controller holds in memory that is started over them.

To make ten thousand canaries as users do keeps a cluster busy for an hour. So the contestant makes
one on a living cluster; then the cluster's controllers stop, and the others are written as copies
of all that the first one left behind, status included. Only what follows from a name differs.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator

import msgspec

from bench import canary_race, harness, kwok_cluster
from bench.canary_race import Load, Racer, WatchCount
from bench.contestants import canaries
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.objects import Key, Object, Resource, Selection
from tools.cluster import process

_HERE = Selection(canaries.NAMESPACE)
_FIRST = "canary-00000"
_FOUND_SECONDS = 120.0
_STEP_SECONDS = 3.0
_QUIET_CORE = 0.05
"""With less than this of a core in use, nothing is under way."""

# On a busy machine one that waits for its turn looks quiet, too.
_STILL = 4

# What the API server gives each object anew.
_GIVEN = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
_ADDRESSES = ("clusterIP", "clusterIPs")
_NOT_TOLD = (canaries.SERVICES, canaries.SLICES, canaries.REVISIONS)


def run(contestant: canaries.Contestant, load: Load) -> harness.Rates:
    async def measured(place: kwok_cluster.KwokCluster) -> harness.Rates:
        # Under the name by which our operator writes: copies are as if it had made them.
        async with Client(place.connection(), options=canary_race.TEMPO) as client:
            return await Rest(place, client, contestant).run(load)

    with kwok_cluster.open_kwok_cluster() as place:
        return asyncio.run(measured(place))


class Mould:
    """All objects of one canary, to be written again under other names."""

    def __init__(self, contestant: canaries.Contestant) -> None:
        self._contestant = contestant
        self._taken: list[tuple[Resource, str, Object]] = []

    async def take(self, client: Client) -> None:
        for resource in self._contestant.parts:
            async for found in client.each(resource, _HERE):
                self._taken.append((resource, objects.uid_of(found), found))

    async def pour(self, client: Client, name: str) -> None:
        """Write one more canary; owners first, for their UIDs stand in what they own."""
        said = zip(
            self._contestant.spellings(_FIRST), self._contestant.spellings(name), strict=True
        )
        exchanged = dict(said)
        for resource, uid, taken in self._taken:
            made = await client.create(resource, _bare(_respelled(taken, exchanged)))
            exchanged[uid] = objects.uid_of(made)
            status = _respelled(taken, exchanged).get("status")
            if status and resource not in _NOT_TOLD:
                key, told = objects.key_of(made), {"status": status}
                await client.patch(resource, key, told, subresource="status")


class Rest:
    """One contestant over one fleet."""

    def __init__(
        self, place: kwok_cluster.KwokCluster, client: Client, contestant: canaries.Contestant
    ) -> None:
        self._place = place
        self._client = client
        self._contestant = contestant

    async def run(self, load: Load) -> harness.Rates:
        await canary_race.prepare(self._place, self._client, self._contestant)
        mould = await self._first()
        self._place.calm()
        await self._copies(mould, load.count)
        # It puts right what differs in a copy (digests that follow from a name), once.
        measurements = {f"worked_{name}": value for name, value in (await self._term(load)).items()}
        measurements |= {f"idle_{name}": value for name, value in (await self._term(load)).items()}
        kept = canaries.state(self._place.folder)
        if kept.exists():
            shutil.rmtree(kept)
            measurements |= {
                f"adopted_{name}": said for name, said in (await self._term(load)).items()
            }
        return measurements

    async def _first(self) -> Mould:
        watches = Watches(self._client, canary_race.TEMPO)
        sight = WatchCount(watches.of(self._contestant.shows, _HERE))
        watching = asyncio.create_task(watches.run())
        try:
            await watches.synced(canary_race.SYNC_SECONDS)
            async with self._running() as racer:
                for write in self._contestant.makes(_FIRST):
                    await canary_race.make(self._client, write)
                sight.expect([Key(canaries.NAMESPACE, _FIRST)], self._contestant.is_idle)
                await sight.all_there(racer, _FOUND_SECONDS)
                await self._quiet(racer, _FOUND_SECONDS)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        mould = Mould(self._contestant)
        await mould.take(self._client)
        return mould

    async def _copies(self, mould: Mould, count: int) -> None:
        began = time.monotonic()

        async def pour(number: int) -> None:
            await mould.pour(self._client, f"canary-{number:05}")

        await canary_race.side_by_side(pour, range(1, count))
        harness.say(f"{count} canaries were written in {time.monotonic() - began:.0f} s")

    async def _term(self, load: Load) -> harness.Rates:
        """One process from its start to rest, and what it holds there."""
        began, asked = time.monotonic(), self._place.request_count.total()
        async with self._running() as racer:
            await self._quiet(racer, load.longest)
            measurements = {
                "seconds": time.monotonic() - began,
                "cpu_seconds": racer.cpu_seconds(),
                "asked": float(self._place.request_count.total() - asked),
            }
            before = self._place.request_count.total()
            await asyncio.sleep(load.idle_seconds)
            measurements["requests"] = float(self._place.request_count.total() - before)
            measurements["memory_mb"] = racer.memory_mb()
            measurements["most_memory_mb"] = racer.memory_mb("VmHWM")
        harness.say(", ".join(f"{name} {value:.4g}" for name, value in measurements.items()))
        return measurements

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[Racer]:
        command = self._contestant.command(self._place.kubeconfig, self._place.folder)
        racer = Racer(process.Process(command, self._place.folder / "contestant.log"))
        try:
            yield racer
        finally:
            racer.server.stop()

    async def _quiet(self, racer: Racer, seconds: float) -> None:
        """Until it asks nothing and computes next to nothing."""
        deadline, seen, still = time.monotonic() + seconds, (-1, 0.0), 0
        while time.monotonic() < deadline:
            if not racer.server.alive:
                raise harness.Failed(f"it ended: {racer.server.last_words()[-500:]}")
            await asyncio.sleep(_STEP_SECONDS)
            now = (self._place.request_count.total(), racer.cpu_seconds())
            quiet = now[0] == seen[0] and now[1] - seen[1] < _QUIET_CORE * _STEP_SECONDS
            seen, still = now, still + 1 if quiet else 0
            if still == _STILL:
                return
        harness.say(f"not quiet after {seconds:.0f} s")


def _respelled(obj: Object, exchanged: dict[str, str]) -> Object:
    text = msgspec.json.encode(obj).decode()
    for old, new in exchanged.items():
        text = text.replace(old, new)
    return msgspec.json.decode(text.encode(), type=Object)


def _bare(obj: Object) -> Object:
    """As a user would write it."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _GIVEN}
    made = {**obj, "metadata": meta}
    made.pop("status", None)
    if obj.get("kind") == "Service":
        made["spec"] = {k: v for k, v in obj["spec"].items() if k not in _ADDRESSES}
    return made
