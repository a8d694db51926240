"""For those who watch the operator: alive, ready, and figures to scrape.

A process that waits to become leader is ready too: it is there to take over.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from http import HTTPStatus

import prometheus_client
from aiohttp import web
from prometheus_client import core, registry

from fairlead.engine import collector
from fairlead.errors import Rejected
from fairlead.kubernetes.client.transport import Answered
from fairlead.kubernetes.objects import Resource

_STOP_SECONDS = 2.0


class OperatorMetrics(registry.Collector):
    """What is counted as it happens, and what is read when somebody asks."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, float]],
        others: Iterable[registry.Collector] = (),
    ) -> None:
        self._read = read
        self.registry = registry.CollectorRegistry()
        self.registry.register(self)
        for each in others:
            self.registry.register(each)
        prometheus_client.ProcessCollector(registry=self.registry)
        self._requests = prometheus_client.Counter(
            "fairlead_kubernetes_requests", "Requests that the API server answered.",
            ["verb", "resource", "code"], registry=self.registry,
        )  # fmt: skip

        self._counters: dict[tuple[str, Resource, int], prometheus_client.Counter] = {}
        self.engine: collector.EngineCollector | None = None
        """The engine's own figures, while this process leads."""

    def count(self, answered: Answered) -> None:
        place = (answered.verb, answered.resource, answered.code)
        if place not in self._counters:
            # Kept: to find it by its labels costs more than to count.
            labels = (answered.verb, str(answered.resource), str(answered.code))
            self._counters[place] = self._requests.labels(*labels)
        self._counters[place].inc()

    def collect(self) -> Iterator[core.Metric]:
        for name, value in self._read().items():
            shown = f"fairlead_operator_{name}"
            yield core.GaugeMetricFamily(shown, _ABOUT.get(name, name), value=value)
        if self.engine is not None:
            yield from self.engine.collect()

    async def scraped(self) -> bytes:
        if self.engine is not None:
            await self.engine.refresh()
        return prometheus_client.generate_latest(self.registry)


_ABOUT = {
    "leader": "Whether this process leads.",
    "objects": "Objects of our kinds in the caches.",
    "children": "Children in the caches.",
    "waiting": "Keys that wait for a reconcile.",
}


@contextlib.asynccontextmanager
async def answering(
    listen: str, ready: Callable[[], list[str]], scraped: Callable[[], Awaitable[bytes]]
) -> AsyncIterator[str]:
    """Answer inside the block; gives the address, which matters where port 0 was asked for."""
    host, port = parse(listen, "127.0.0.1:8601")

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        reasons = ready()
        code = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        return web.json_response({"ready": not reasons, "reasons": reasons}, status=code)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=await scraped(), headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST}
        )

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, shutdown_timeout=_STOP_SECONDS, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise Rejected(f"cannot listen on: {listen}", hint="choose another --listen") from error
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{shown}:{bound[1]}"
    finally:
        await asyncio.shield(runner.cleanup())


def parse(listen: str, such_as: str) -> tuple[str, int]:
    """Address and port of ADDRESS:PORT."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004 - the last port
        raise Rejected(f"invalid address and port: {listen[:80]}", hint=f"such as {such_as}")
    return host.strip("[]"), int(port)
