"""One contest of benchmark `rollouts`: idle canaries, then all of them changed together.

Everything is read from outside the contestant: requests from the API server's audit log, memory
and processor seconds from the kernel, progress from a watch that is not counted.
"""

import asyncio
import collections
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import harness, kwok_cluster
from bench.contestants import canaries
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import Key, Object, Resource, Selection
from tests.contract.kubernetes_samples import NAMESPACES
from tools.cluster import process

PODS = Resource("", "v1", "pods", "Pod")
_HERE = Selection(canaries.NAMESPACE)
_AT_ONCE = 16
_QUIET_SECONDS = 3.0
_LONGEST_QUIET = 120.0
SYNC_SECONDS = 120.0
TEMPO = ClientOptions(Limits(rate=1e6, burst=1_000_000))


@dataclass(frozen=True, slots=True)
class Load:
    """How much one contest, or one measurement at rest, takes."""

    count: int
    idle_seconds: float
    longest: float = 900.0
    """When to give up waiting, for all of them or for quiet."""


def run(contestant: canaries.Contestant, load: Load) -> harness.Rates:
    async def contest(place: kwok_cluster.KwokCluster) -> harness.Rates:
        async with Client(place.connection(), manager="bench", options=TEMPO) as client:
            return await Contest(place, client, contestant).run(load)

    with kwok_cluster.open_kwok_cluster() as place:
        return asyncio.run(contest(place))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


class Racer:
    """The contestant's process as the kernel sees it."""

    def __init__(self, server: process.Process) -> None:
        self.server = server
        self._proc = Path(f"/proc/{server.pid}")

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.server.pid)

    def memory_mb(self, line: str = "VmRSS") -> float:
        for text in (self._proc / "status").read_text().splitlines():
            if text.startswith(f"{line}:"):
                return int(text.split()[1]) / 1024
        raise LookupError(line)


class WatchCount:
    """How many objects satisfy what is waited for, told by a watch."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._test: Callable[[Object], bool] = lambda _: False
        self._left: set[Key] = set()
        self._done = asyncio.Event()
        cache.on_change(self._see)

    def expect(self, keys: Iterable[Key], test: Callable[[Object], bool]) -> None:
        self._left, self._test = set(keys), test
        self._done.clear()
        for key in list(self._left):
            self._see(key)

    async def all_there(self, racer: Racer, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._done.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._done.wait()
            if not racer.server.alive:
                raise harness.Failed(f"it ended: {racer.server.last_words()[-500:]}")
            if time.monotonic() > deadline:
                stuck = self._cache.get(min(self._left)) if self._left else None
                shown = (stuck or {}).get("status")
                raise harness.Failed(f"{len(self._left)} not there in time, one of them: {shown}")

    def _see(self, key: Key) -> None:
        if key not in self._left:
            return
        found = self._cache.get(key)
        if found is not None and self._test(found):
            self._left.discard(key)
            if not self._left:
                self._done.set()


class Contest:
    """One contestant on one fresh cluster."""

    def __init__(
        self, place: kwok_cluster.KwokCluster, client: Client, contestant: canaries.Contestant
    ) -> None:
        self._place = place
        self._client = client
        self._contestant = contestant
        self._watches = Watches(client, TEMPO)
        self._watch_count = WatchCount(self._watches.of(contestant.shows, _HERE))

    async def run(self, load: Load) -> harness.Rates:
        names = [f"canary-{number:05}" for number in range(load.count)]
        await prepare(self._place, self._client, self._contestant)
        watching = asyncio.create_task(self._watches.run())
        await self._watches.synced(SYNC_SECONDS)
        command = self._contestant.command(self._place.kubeconfig, self._place.folder)
        racer = Racer(process.Process(command, self._place.folder / "contestant.log"))
        try:
            measurements = await self._found(racer, names, load)
            measurements |= await self._rest(racer, load)
            measurements |= await self._start(racer, names, load)
            await self._check(load.count)
        finally:
            racer.server.kill()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return measurements

    async def _found(self, racer: Racer, names: list[str], load: Load) -> harness.Rates:
        """All objects made, and all first versions up."""
        began = time.monotonic()
        wanted = [write for name in names for write in self._contestant.makes(name)]
        await side_by_side(self._make, wanted)
        self._watch_count.expect(map(_key, names), self._contestant.is_idle)
        await self._watch_count.all_there(racer, load.longest)
        return {"found_seconds": time.monotonic() - began}

    async def _rest(self, racer: Racer, load: Load) -> harness.Rates:
        """What it asks and uses with nothing to do."""
        asked, deadline = -1, time.monotonic() + _LONGEST_QUIET
        # What follows the last status (events, late looks) is work, not rest.
        while asked != self._place.request_count.total() and time.monotonic() < deadline:
            asked = self._place.request_count.total()
            await asyncio.sleep(_QUIET_SECONDS)
        before, cpu = self._place.request_count.total(), racer.cpu_seconds()
        await asyncio.sleep(load.idle_seconds)
        return {
            "idle_requests": float(self._place.request_count.total() - before),
            "idle_cpu_seconds": racer.cpu_seconds() - cpu,
            "idle_memory_mb": racer.memory_mb(),
        }

    async def _start(self, racer: Racer, names: list[str], load: Load) -> harness.Rates:
        """All images changed as fast as the API server takes them, until all canaries pause."""
        asked, cpu = collections.Counter(self._place.request_count.asked), racer.cpu_seconds()
        servers = {name: cpu_seconds(pid) for name, pid in self._place.pids.items()}
        self._watch_count.expect(map(_key, names), self._contestant.is_paused)
        began = time.monotonic()
        await side_by_side(self._change, names)
        changed = time.monotonic() - began
        await self._watch_count.all_there(racer, load.longest)
        seconds = time.monotonic() - began
        used = racer.cpu_seconds() - cpu
        spent_by = {n: cpu_seconds(pid) - servers[n] for n, pid in self._place.pids.items()}
        harness.say(f"CPU: {', '.join(f'{n} {spent:.1f} s' for n, spent in spent_by.items())}")
        await asyncio.sleep(_QUIET_SECONDS)
        total = self._place.request_count.total()
        spent = self._place.request_count.asked - asked
        harness.say(f"requests: {', '.join(f'{n} {what}' for what, n in spent.most_common())}")
        return {
            "seconds": seconds,
            "per_second": load.count / seconds,
            "changed_seconds": changed,
            "requests_per_canary": (total - asked.total()) / load.count,
            "cpu_seconds": used,
            "cluster_cpu_seconds": sum(spent_by.values()),
            "memory_mb": racer.memory_mb("VmHWM"),
        }

    async def _make(self, write: canaries.Write) -> None:
        await make(self._client, write)

    async def _change(self, name: str) -> None:
        write = self._contestant.change(name)
        await self._client.patch(write.resource, write.key, write.body)

    async def _check(self, count: int) -> None:
        """Whether the work is really done, by what the API server holds."""
        images = collections.Counter(
            [_image(pod) async for pod in self._client.each(PODS, _HERE) if _is_ready(pod)]
        )
        if images[canaries.NEW] != count or images[canaries.OLD] != count:
            raise harness.Failed(f"not {count} ready pods of both versions: {dict(images)}")


async def prepare(
    place: kwok_cluster.KwokCluster, client: Client, contestant: canaries.Contestant
) -> None:
    """The namespaces and kinds that a contestant needs."""
    for name in (canaries.NAMESPACE, *contestant.namespaces()):
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    place.define(contestant.definitions())


async def make(client: Client, write: canaries.Write) -> None:
    where = {"namespace": write.key.namespace, "name": write.key.name}
    named = {"apiVersion": write.resource.api_version, "kind": write.resource.kind}
    await client.create(write.resource, {**named, "metadata": where, **write.body})


async def side_by_side(do: Callable[[Any], Awaitable[object]], these: Iterable[Any]) -> None:
    """All of these, some at a time."""
    waiting = iter(these)

    async def work() -> None:
        for each in waiting:
            await do(each)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())


def _key(name: str) -> Key:
    return Key(canaries.NAMESPACE, name)


def _image(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
