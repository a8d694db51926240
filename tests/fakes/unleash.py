"""What Unleash answers to its administrators about one flag, on a real socket."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "*:*.admin-of-a-test"  # noqa: S105 - of a test
_AT = "/api/admin/projects/default/features/gathering/environments/development"


def gradual(rollout: str = "0", id_: str = "one", **more: str) -> dict[str, Any]:
    return {"id": id_, "name": "flexibleRollout", "parameters": {"rollout": rollout, **more}}


@dataclass
class FakeUnleash:
    """One flag; `failing` answers in a row are a 503."""

    strategies: list[dict[str, Any]] = field(default_factory=lambda: [gradual()])
    enabled: bool = True
    failing: int = 0
    url: str = ""

    @property
    def rollout(self) -> str:
        return str(self.strategies[0]["parameters"]["rollout"])

    async def show(self, request: web.Request) -> web.Response:
        self._guard(request)
        return web.json_response({"enabled": self.enabled, "strategies": self.strategies})

    async def change(self, request: web.Request) -> web.Response:
        self._guard(request)
        for each in await request.json():
            assert each["op"] == "replace"
            self.strategies[0]["parameters"][each["path"].rpartition("/")[2]] = each["value"]
        return web.json_response(self.strategies[0])

    def _guard(self, request: web.Request) -> None:
        if self.failing:
            self.failing -= 1
            raise web.HTTPServiceUnavailable
        if request.headers.get("Authorization") != TOKEN:
            raise web.HTTPUnauthorized

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["FakeUnleash"]:
        app = web.Application()
        app.router.add_get(_AT, self.show)
        app.router.add_patch(f"{_AT}/strategies/one", self.change)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/api"
        try:
            yield self
        finally:
            await runner.cleanup()
