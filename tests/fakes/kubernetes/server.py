"""The fake API server: the store behind a real socket on loopback.

A socket, not a stubbed transport, so that the client under test is the whole client:
streams, timeouts, cut connections and all.
"""

import asyncio
import base64
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

from fairlead.kubernetes.objects import Key, Object
from tests.fakes.kubernetes import patches, selectors
from tests.fakes.kubernetes.kinds import Served
from tests.fakes.kubernetes.ownership import Write
from tests.fakes.kubernetes.refusals import RefusalError, bad_request, not_found
from tests.fakes.kubernetes.store import Change, Store

_PATCHES = {
    "application/merge-patch+json": "merge",
    "application/json-patch+json": "json",
    "application/apply-patch+yaml": "apply",
}


@dataclasses.dataclass(frozen=True)
class Request:
    """One request as a test asks about it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def is_write(self) -> bool:
        return self.method != "GET"


@dataclasses.dataclass
class Fault:
    """An answer given instead of the right one, so many times."""

    code: int
    times: int = 1
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    reason: str = "Injected"
    only: Callable[[Request], bool] = lambda _: True


@dataclasses.dataclass(frozen=True)
class _Target:
    served: Served
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class Server:
    """Serves one store, and remembers what was asked."""

    def __init__(self, store: Store | None = None, *, bookmark_every: float = 0.05) -> None:
        self.store = store or Store()
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.tokens: set[str] = set()
        self.forbidden: set[tuple[str, str]] = set()
        self.url = ""
        self._bookmark_every = bookmark_every
        self.bookmarked = asyncio.Event()
        """Set when a watch has been told the newest version."""
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._watches: set[asyncio.Queue[Change | None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Server"]:
        app = web.Application(client_max_size=4 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.2)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        try:
            yield self
        finally:
            self.cut_watches()
            await runner.cleanup()

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.requests if request.is_write]

    @property
    def watching(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def cut_watches(self) -> None:
        """End every open watch, as a restarted server or an idle proxy does."""
        for queue in list(self._watches):
            queue.put_nowait(None)

    def expire_pages(self) -> None:
        """Forget list snapshots: the next page of an open list answers 410."""
        self._pages.clear()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        query, headers = dict(request.query), dict(request.headers)
        seen = Request(request.method, request.path, query, headers)
        self.requests.append(seen)
        try:
            self._check(seen)
            target = self._target(request.path)
            self._allow(seen, target)
            if request.method == "GET" and "watch" in request.query:
                return await self._watch(request, target)
            code, body = self._answer(request, target, await request.read())
        except RefusalError as refusal:
            return web.json_response(refusal.status(), status=refusal.code)
        except _InjectedError as injected:
            fault = injected.fault
            status = RefusalError(fault.code, fault.reason, "injected by the test").status()
            return web.json_response(status, status=fault.code, headers=fault.headers)
        return web.json_response(body, status=code)

    def _check(self, seen: Request) -> None:
        token = seen.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens and token not in self.tokens:
            raise RefusalError(401, "Unauthorized", "Unauthorized")
        for fault in self.faults:
            if fault.times > 0 and fault.only(seen):
                fault.times -= 1
                raise _InjectedError(fault)

    def _allow(self, seen: Request, target: _Target) -> None:
        if (seen.method, target.served.resource.plural) in self.forbidden:
            what = f"{target.served.resource} is forbidden"
            raise RefusalError(403, "Forbidden", f"{what}: User cannot {seen.method}")

    def _target(self, path: str) -> _Target:
        parts = path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
            namespace, rest = rest[1], rest[2:]
        plural = f"{rest[0]}.{group}" if group else rest[0]
        if plural not in self.store.served:
            raise not_found("the server could not find the requested resource", plural)
        name, subresource, *_ = *rest[1:], "", ""
        served = self.store.served[plural]
        if subresource and not (subresource == "status" and served.status):
            raise not_found("the server could not find the requested resource", subresource)
        return _Target(served, namespace, name, subresource)

    def _answer(self, request: web.Request, target: _Target, raw: bytes) -> tuple[int, Any]:
        write = Write(
            manager=request.query.get("fieldManager", "unknown"),
            subresource=target.subresource,
            force=request.query.get("force") == "true",
            dry=request.query.get("dryRun") == "All",
        )
        body = json.loads(raw) if raw else {}
        match request.method:
            case "GET" if target.name:
                return 200, self.store.get(target.served, target.key)
            case "GET":
                return 200, self._list(request, target)
            case "POST":
                return 201, self._create(target, body, write)
            case "PUT":
                return 200, self.store.update(target.served, target.key, body, write)
            case "PATCH":
                return self._patch(target, body, write, request.content_type)
            case "DELETE":
                return 200, self._delete(target, body)
            case method:
                raise RefusalError(405, "MethodNotAllowed", method)

    def _create(self, target: _Target, body: Object, write: Write) -> Object:
        resource = target.served.resource
        kind = f"{body.get('apiVersion')} {body.get('kind')}"
        if kind != f"{resource.api_version} {resource.kind}":
            raise bad_request(f"the kind in the data ({kind}) does not match the expected kind")
        body.setdefault("metadata", {})
        if target.namespace:
            body["metadata"]["namespace"] = target.namespace
        return self.store.create(target.served, body, write)

    def _patch(self, target: _Target, body: Any, write: Write, sort: str) -> tuple[int, Object]:
        served, key = target.served, target.key
        match _PATCHES.get(sort):
            case "merge":
                return 200, self.store.change(
                    served, key, lambda live: patches.merge(live, body), write
                )
            case "json":
                return 200, self.store.change(
                    served, key, lambda live: patches.json_patch(live, body), write
                )
            case "apply":
                body["metadata"].setdefault("name", key.name)
                if key.namespace:
                    body["metadata"]["namespace"] = key.namespace
                by_apply = dataclasses.replace(write, operation="Apply")
                known = (str(served.resource), key) in self.store.places
                return 200 if known else 201, self.store.apply(served, key, body, by_apply)
            case _:
                message = f"the body of the request was in an unknown format: {sort}"
                raise RefusalError(415, "UnsupportedMediaType", message)

    def _delete(self, target: _Target, options: Object) -> Object:
        uid = self.store.get(target.served, target.key)["metadata"]["uid"]
        left = self.store.delete(target.served, target.key, options)
        if left is not None:
            return left
        details = {"name": target.name, "kind": target.served.resource.plural, "uid": uid}
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}

    def _list(self, request: web.Request, target: _Target) -> Object:
        token = request.query.get("continue", "")
        if token:
            if token not in self._pages:
                raise RefusalError(410, "Expired", "The provided continue parameter is too old")
            version, items = self._pages[token]
        else:
            matches = _matcher(request, target)
            found = self.store.all(target.served, target.namespace)
            version, items = self.store.version, [obj for obj in found if matches(obj)]
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        limit = int(request.query.get("limit") or len(items))
        if len(items) > limit:
            rest = items[limit:]
            place = f"{version}:{rest[0]['metadata']['name']}:{len(rest)}"
            meta["continue"] = base64.urlsafe_b64encode(place.encode()).decode()
            meta["remainingItemCount"] = len(rest)
            self._pages[meta["continue"]] = (version, rest)
        bare = [
            {k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}
            for obj in items[:limit]
        ]
        resource = target.served.resource
        kinds = {"apiVersion": resource.api_version, "kind": f"{resource.kind}List"}
        return {**kinds, "metadata": meta, "items": bare}

    async def _watch(self, request: web.Request, target: _Target) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        # Subscribed before anything is sent: no change may fall between past and present.
        queue: asyncio.Queue[Change | None] = asyncio.Queue()
        self.store.listeners.append(queue.put_nowait)
        self._watches.add(queue)
        try:
            matches = _matcher(request, target)
            await response.prepare(request)
            stream = _Stream(response, target, matches)
            if await self._past(stream, request.query.get("resourceVersion", "")):
                seconds = float(request.query.get("timeoutSeconds", "1800"))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._present(stream, queue)
                if "allowWatchBookmarks" in request.query:
                    await stream.bookmark(self.store.version)
        except (ConnectionError, RuntimeError):
            pass
        finally:
            self.store.listeners.remove(queue.put_nowait)
            self._watches.discard(queue)
        return response

    async def _past(self, stream: "_Stream", version: str) -> bool:
        if version in ("", "0"):
            for obj in self.store.all(stream.target.served, stream.target.namespace):
                if stream.matches(obj):
                    await stream.send("ADDED", obj)
            return True
        if int(version) < self.store.oldest:
            message = f"too old resource version: {version} ({self.store.oldest})"
            await stream.send("ERROR", RefusalError(410, "Expired", message).status())
            return False
        for change in list(self.store.history):
            if change.version > int(version):
                await stream.change(change)
        return True

    async def _present(self, stream: "_Stream", queue: asyncio.Queue[Change | None]) -> None:
        while True:
            try:
                async with asyncio.timeout(self._bookmark_every):
                    change = await queue.get()
            except TimeoutError:
                await stream.bookmark(self.store.version)
                self.bookmarked.set()
                continue
            if change is None:
                return
            await stream.change(change)


class _InjectedError(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.code)
        self.fault = fault


class _Stream:
    """One open watch: lines of JSON, each change at most once."""

    def __init__(
        self, response: web.StreamResponse, target: _Target, matches: Callable[[Object], bool]
    ) -> None:
        self.target = target
        self.matches = matches
        self._response = response
        self._sent = 0
        self._marked = 0

    async def change(self, change: Change) -> None:
        if change.version <= self._sent or change.served.resource != self.target.served.resource:
            return
        self._sent = change.version
        if self.target.namespace not in ("", change.object["metadata"].get("namespace")):
            return
        was = change.before is not None and self.matches(change.before)
        now = change.type != "DELETED" and self.matches(change.object)
        if now:
            await self.send("MODIFIED" if was else "ADDED", change.object)
        elif was:
            await self.send("DELETED", change.object)

    async def bookmark(self, version: int) -> None:
        if version != self._marked:
            self._marked = version
            resource = self.target.served.resource
            meta = {"resourceVersion": str(version), "creationTimestamp": None}
            kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
            await self.send("BOOKMARK", {**kinds, "metadata": meta})

    async def send(self, kind: str, obj: Object) -> None:
        line = json.dumps({"type": kind, "object": obj}) + "\n"
        await self._response.write(line.encode())


def _matcher(request: web.Request, target: _Target) -> Callable[[Object], bool]:
    by_label = selectors.labels(request.query.get("labelSelector", ""))
    by_field = selectors.fields(request.query.get("fieldSelector", ""), target.served.fields)
    return lambda obj: by_label(obj["metadata"].get("labels") or {}) and by_field(obj)
