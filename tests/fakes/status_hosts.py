"""Commit statuses of GitLab and Gitea as their APIs document them, over HTTP."""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "recorded-token"  # noqa: S105 - of the recorded servers alone


@dataclass
class StatusHost:
    """What each commit shows; a state that makes no sense to the host is refused as it would."""

    known: str = "acme/shop"
    next_answers: list[Callable[[], web.Response]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["StatusHost"]:
        app = web.Application(middlewares=[self._gate])
        app.router.add_post("/api/v4/projects/{project}/statuses/{commit}", self._gitlab)
        app.router.add_post("/api/v1/repos/{owner}/{name}/statuses/{commit}", self._gitea)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    def shown(self) -> list[tuple[str, str, str]]:
        """Name, state and description, the newest of each name."""
        newest = {each["name"]: each for each in self.statuses}
        return [(name, each["state"], each["description"]) for name, each in newest.items()]

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(request.raw_path)
        if self.next_answers:
            return self.next_answers.pop(0)()
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"message": "401 Unauthorized"}, status=401)
        answer = await handler(request)
        assert isinstance(answer, web.StreamResponse)
        return answer

    async def _gitlab(self, request: web.Request) -> web.Response:
        said = await request.json()
        # The whole path of a project, with its slashes escaped.
        if request.match_info["project"] != self.known or "%2F" not in request.raw_path:
            return web.json_response({"message": "404 Project Not Found"}, status=404)
        assert said["state"] in ("pending", "running", "success", "failed", "canceled")
        before = [each for each in self.statuses if each["name"] == said["name"]]
        if said["state"] == "pending" and before and before[-1]["state"] == "pending":
            reason = 'Status cannot transition via "enqueue"'
            message = f"Cannot transition status via :enqueue from :pending (Reason(s): {reason})"
            return web.json_response({"message": message}, status=400)
        self.statuses.append({**said, "commit": request.match_info["commit"]})
        return web.json_response(said, status=201)

    async def _gitea(self, request: web.Request) -> web.Response:
        said = await request.json()
        if f"{request.match_info['owner']}/{request.match_info['name']}" != self.known:
            return web.json_response({"message": "not found"}, status=404)
        assert said["state"] in ("pending", "success", "error", "failure", "warning")
        commit = request.match_info["commit"]
        self.statuses.append({**said, "name": said["context"], "commit": commit})
        return web.json_response(said, status=201)
