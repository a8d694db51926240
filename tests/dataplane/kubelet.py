"""One node whose pods really answer: each is a small shop at an address of its own.

It does what matters to requests: a pod is ready once it listens; one that is told to end goes on
answering for a while, as with a preStop hook, and then closes with care.
"""

import asyncio
import contextlib
import datetime as dt
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fairlead.cli.demo.shop import Shop, parse
from tests.cluster import client
from tests.dataplane import apart

PORT = 7070
NODE = "node-0"
_EVERY = 0.1
_LINGER = 2.0
_PODS = client.path("v1", "pods")


@dataclass(slots=True)
class Running:
    """A pod's process, as far as it is one."""

    address: str
    shop: Shop | None = None
    server: asyncio.Server | None = None

    async def end(self) -> None:
        if self.server is not None and self.shop is not None:
            self.server.close()
            await self.shop.close(seconds=5.0)


@dataclass
class Kubelet:
    """Runs every pod of the cluster."""

    admin: client.Client
    errors: dict[str, float] = field(default_factory=dict)
    """Share of answers that fail, by version; a version is the tag of the pod's image."""

    _pods: dict[str, Running] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(10))
    _ending: set[str] = field(default_factory=set)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Kubelet"]:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        await self.admin.create(client.path("v1", "nodes"), node)
        async with asyncio.TaskGroup() as group:
            loop = group.create_task(self._run(group))
            try:
                yield self
            finally:
                loop.cancel()
        for pod in self._pods.values():
            await pod.end()

    async def _run(self, group: asyncio.TaskGroup) -> None:
        while True:
            for pod in (await self.admin.get(_PODS))["items"]:
                uid = pod["metadata"]["uid"]
                if "deletionTimestamp" in pod["metadata"]:
                    if uid not in self._ending:
                        self._ending.add(uid)
                        group.create_task(self._end(pod))
                elif uid not in self._pods:
                    await self._start(pod)
            await asyncio.sleep(_EVERY)

    async def _start(self, pod: client.Json) -> None:
        meta = pod["metadata"]
        running = Running(f"10.64.0.{next(self._numbers)}")
        self._pods[meta["uid"]] = running
        apart.address(running.address)
        version = _version(pod)
        if version:
            errors = str(self.errors.get(version, 0.0))
            desired = parse(["--version", version, "--errors", errors])
            running.shop = Shop(desired)
            running.server = await asyncio.start_server(
                running.shop.serve, running.address, PORT, backlog=512
            )
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
        }
        where = client.path("v1", "pods", meta["namespace"], meta["name"])
        with contextlib.suppress(client.ApiError):
            await self.admin.create(f"{where}/binding", binding)
            await self.admin.patch(f"{where}/status", {"status": _ready(running.address)})

    async def _end(self, pod: client.Json) -> None:
        meta = pod["metadata"]
        running = self._pods.get(meta["uid"])
        if running is not None:
            await asyncio.sleep(_LINGER)
            await running.end()
        where = client.path("v1", "pods", meta["namespace"], meta["name"])
        with contextlib.suppress(client.ApiError):
            await self.admin.send("DELETE", where, {"gracePeriodSeconds": 0})


def _version(pod: client.Json) -> str:
    image = str(pod["spec"]["containers"][0]["image"])
    return image.partition(":")[2] if image.startswith("shop:") else ""


def _ready(address: str) -> client.Json:
    at = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": at} for kind in kinds
        ],
    }
