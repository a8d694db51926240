"""An API that is none of Azure's: robots, made by POST under a number that it chooses itself.

It has labels, merge patches, lists with or without pages, and maybe keys that make a POST count
once. Written from RFC 9110, RFC 7396 and the draft of the Idempotency-Key header.
"""

import contextlib
import copy
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.simulated_cloud import merge_patch

Json = dict[str, Any]


@dataclass
class SimulatedApi:
    """What it has, and what was asked of it."""

    keys: bool = False
    """Whether a POST with a key counts once."""

    failing: float = 0.0
    """How many of all requests break, half of them after they were carried out."""

    late_lists: int = 0
    """So many lists after a creation do not have it yet."""

    page: int = 0
    """So many a page, with a link to the next; 0: all at once."""

    opaque_pages: bool = False
    """Pages are told by a cursor that no link explains."""

    locations: bool = True
    """Whether a header says where a new one is, and not its body alone."""

    robots: dict[int, Json] = field(default_factory=dict)
    made: int = 0
    writes: list[tuple[str, str, Json | None]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    cut_posts: int = 0
    """So many creations more are carried out, and nobody hears of it."""

    late: int = 0
    url: str = ""
    chance: random.Random = field(default_factory=lambda: random.Random(11))

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["SimulatedApi"]:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0]
            self.url = f"http://{host}:{port}/v1"
            yield self
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.path_qs))
        if request.headers.get("X-Api-Key") != "a-token":
            return web.json_response({"error": {"code": "who", "message": "are you"}}, status=401)
        fault = self.chance.random() < self.failing
        if fault and self.chance.random() < 0.5:
            return web.Response(status=503)
        answer = await self._answer(request)
        if request.method == "POST" and self.cut_posts:
            self.cut_posts -= 1
            fault = True
        if fault:
            assert request.transport is not None
            request.transport.abort()
        return answer

    async def _answer(self, request: web.Request) -> web.Response:
        match request.method, request.path.split("/")[1:]:
            case "GET", ["v1", "robots"]:
                return self._list(request)
            case "POST", ["v1", "robots"]:
                return await self._make(request)
            case _, ["v1", "robots", number] if number.isdigit() and int(number) in self.robots:
                return await self._one(request, int(number))
        return web.json_response({"error": {"code": "NotFound", "message": "none"}}, status=404)

    def _list(self, request: web.Request) -> web.Response:
        numbers = sorted(self.robots)
        if self.late:
            self.late -= 1
            numbers = numbers[:-1]
        if not self.page:
            return web.json_response({"items": [self._shown(each) for each in numbers]})
        start = int(request.query.get("from", "0"))
        part = numbers[start : start + self.page]
        body: Json = {"items": [self._shown(each) for each in part]}
        if start + self.page >= len(numbers):
            return web.json_response(body)
        if self.opaque_pages:
            return web.json_response({**body, "nextCursor": "abc"})
        link = f'<{self.url}/robots?from={start + self.page}>; rel="next"'
        return web.json_response(body, headers={"Link": link})

    async def _make(self, request: web.Request) -> web.Response:
        key, body = request.headers.get("Idempotency-Key", ""), await request.json()
        number = self.known.get(key, 0) if self.keys else 0
        if not number:
            self.made += 1
            number = self.made + 100
            self.robots[number], self.late = body, self.late_lists
            self.known[key] = number
            self.writes.append(("POST", request.path, copy.deepcopy(body)))
        at = {"Location": f"/v1/robots/{number}"} if self.locations else {}
        return web.json_response(self._shown(number), status=201, headers=at)

    async def _one(self, request: web.Request, number: int) -> web.Response:
        match request.method:
            case "GET":
                return web.json_response(self._shown(number))
            case "PATCH":
                said = await request.json()
                self.writes.append(("PATCH", request.path, said))
                self.robots[number] = merge_patch(self.robots[number], said)
                return web.json_response(self._shown(number))
            case "DELETE":
                self.writes.append(("DELETE", request.path, None))
                del self.robots[number]
                return web.Response(status=204)
        return web.Response(status=405)

    def _shown(self, number: int) -> Json:
        return {**copy.deepcopy(self.robots[number]), "id": number, "serial": f"s{number}"}


def description(*, keys: bool = False, labels: bool = True, listed: bool = True) -> Json:
    """As its makers publish it."""
    robot = {
        "id": {"type": "integer", "readOnly": True},
        "serial": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "arms": {"type": "integer"},
    }
    if labels:
        robot["labels"] = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {"$ref": "#/components/schemas/Robot"}
    content = {"content": {"application/json": {"schema": schema}}}
    shown = {"responses": {"200": {"description": "it", **content}}}
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}
    post = {"requestBody": content, "parameters": [key] if keys else [], **shown}
    one = {"get": shown, "patch": {"requestBody": content, **shown}, "delete": {"responses": {}}}
    every: Json = {"post": post}
    if listed:
        every["get"] = {"responses": {"200": {"description": "all"}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "robots", "version": "1"},
        "paths": {"/robots": every, "/robots/{robotId}": one},
        "components": {"schemas": {"Robot": {"type": "object", "properties": robot}}},
    }
