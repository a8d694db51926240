"""A small harness for release tests on this machine: supervisor, Envoy, versions of the shop."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from fairlead.cli.demo.load import Load
from fairlead.clients.envoy import Listen, Proxy, Reading, Rule, Site, Table, Version, Weight
from fairlead.clients.processes import Supervisor, ports
from tests.unit.clients.processes.programs import shop_program

PRIVATE = "fairlead_session"
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class ReleaseHarness:
    """What a test needs to release something."""

    supervisor: Supervisor
    proxy: Proxy

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}/"

    async def run(self, name: str, *arguments: str) -> Version:
        await self.supervisor.ensure(shop_program(name, *arguments))
        instance = await self.supervisor.ready(name)
        return Version(name, (instance.port,))

    async def share(self, versions: tuple[Version, ...], **percents: int) -> None:
        await self.proxy.apply(shared(versions, **percents))

    def load(self, per_second: float | None = None) -> Load:
        return Load(self.url, per_second=per_second)


def shared(versions: tuple[Version, ...], **percents: int) -> Table:
    weights = tuple(Weight(name, percent) for name, percent in percents.items())
    return Table(versions, (Site("shop", (Rule(weights),)),))


@contextlib.asynccontextmanager
async def release_harness(
    folder: Path, port: int, metrics_port: int | None = None
) -> AsyncIterator[ReleaseHarness]:
    """A control plane on the folder; what it started stays when the block ends."""
    async with Supervisor(folder / "processes").running() as supervisor:
        proxy = Proxy(folder / "envoy", supervisor, Listen(port, metrics_port, PRIVATE))
        await proxy.start()
        yield ReleaseHarness(supervisor, proxy)


async def until_timed(proxy: Proxy) -> None:
    """Until Envoy tells as many times as answers: it brings times together twice a second."""
    async with asyncio.timeout(PATIENCE):
        while not _timed(await proxy.read()):  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.05)


def _timed(reading: Reading) -> bool:
    counts = reading.versions.values()
    return all(max(of.within_ms.values(), default=0) == sum(of.classes.values()) for of in counts)


_given: set[int] = set()


def free_port() -> int:
    """A port of one's own: nobody holds it now, and no test was given it before."""
    port = ports.free(_given)
    _given.add(port)
    return port


def four_deviations(count: int, percent: int) -> float:
    part = percent / 100
    return 4.0 * math.sqrt(count * part * (1 - part))
