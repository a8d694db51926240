"""Azure Resource Manager for tests, over HTTP, as its documentation has it.

Written from learn.microsoft.com/azure/azure-resource-manager/management/async-operations and the
guidelines for resource providers, not from our client. Time passes with each question about a
resource or an operation, so nothing sleeps.
"""

import contextlib
import copy
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

Json = dict[str, Any]
Style = Literal["azure-async-operation", "location", "original-uri", "synchronous"]


@dataclass
class Behaviour:
    """In what resource providers differ."""

    style: Style = "synchronous"
    etags: bool = True
    patch: Literal["all", "tags"] = "all"
    null_is_omitted: bool = False
    normalise: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """Of values at the top, by name: what becomes of them."""

    hidden: tuple[str, ...] = ()
    """Names in `properties` that are never shown."""

    polls: int = 2
    """How many questions an operation lasts."""

    retry_after: str = ""
    """Said with every answer that is not final."""

    stale_reads: int = 0
    """How many reads after a write show what was before."""

    groups: tuple[str, ...] = ("g",)
    token_uses: int = 1_000_000
    """How many requests a token lasts."""

    failing: float = 0.0
    """How many of all requests break, from 0 to 1; half of them after they were carried out."""

    elsewhere: str = ""
    """Another host, whose URL is told for operations."""

    refusals: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """By method: status, code and message with which each is refused, by a policy or a lock."""

    echoes: bool = False
    """Whether a refusal repeats what was sent."""

    soft_delete: bool = False
    """Names of what was deleted are taken until they are purged."""


@dataclass
class Stored:
    """One resource."""

    body: Json
    version: int = 1
    operation: str = ""
    old: Json | None = None
    stale: int = 0


@dataclass
class Operation:
    """Work in progress."""

    id: str
    left: int
    deletes: bool = False
    error: Json | None = None


@dataclass
class SimulatedCloud:
    """The state of a cloud, and what was asked of it."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    stored: dict[str, Stored] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    requests: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    writes: list[tuple[str, str, Json | None]] = field(default_factory=list)
    """Those that were carried out."""

    made: Counter[str] = field(default_factory=Counter)
    throttled: int = 0
    """So many requests more are refused with 429."""

    throttled_for: str = "17"
    """What is said of how long; empty: nothing."""

    deleted: set[str] = field(default_factory=set)
    """Ids that are deleted softly."""

    failures: list[Json] = field(default_factory=list)
    """How the next operations end."""

    url: str = ""
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["SimulatedCloud"]:
        app = web.Application()
        app.router.add_post("/{tenant}/oauth2/v2.0/token", self._sign_in)
        app.router.add_get("/metadata/identity/oauth2/token", self._identify)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0]
            self.url = f"http://{host}:{port}"
            yield self
        finally:
            await runner.cleanup()

    def put(self, id_: str, body: Json) -> None:
        """Somebody else makes or changes it."""
        old = self.stored.get(id_.lower())
        made = Stored(copy.deepcopy(body), old.version + 1 if old else 1)
        self.stored[id_.lower()] = made

    def shown(self, id_: str) -> Json | None:
        """As it is by now."""
        found = self.stored.get(id_.lower())
        return None if found is None else self._shown(id_, found.body, found.version)

    async def _sign_in(self, request: web.Request) -> web.Response:
        form = await request.post()
        jwt = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        known = form.get("client_secret") == "s3cret" or (
            form.get("client_assertion_type") == jwt and form.get("client_assertion") == "pod-token"
        )
        if not known or form.get("grant_type") != "client_credentials":
            return web.json_response({"error": "invalid_client"}, status=401)
        token = f"token-{len(self.tokens) + 1}"
        self.tokens[token] = self.behaviour.token_uses
        return web.json_response({"access_token": token, "expires_in": 3599})

    async def _identify(self, request: web.Request) -> web.Response:
        """The metadata service of a machine, which writes numbers as text."""
        asked = request.query
        known = asked.get("client_id", "app") == "app" and asked.get("resource") == self.url
        if request.headers.get("Metadata") != "true" or not known or "api-version" not in asked:
            return web.json_response({"error": "invalid_request"}, status=400)
        token = f"token-{len(self.tokens) + 1}"
        self.tokens[token] = self.behaviour.token_uses
        return web.json_response({"access_token": token, "expires_in": "86399"})

    async def _handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.path))
        self.requests.append((request.method, request.path, dict(request.headers)))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens.get(token, 0) <= 0:
            return _error(401, "ExpiredAuthenticationToken", "the token is not good")
        self.tokens[token] -= 1
        if self.throttled:
            self.throttled -= 1
            wait = {"Retry-After": self.throttled_for} if self.throttled_for else None
            return _error(429, "TooManyRequests", "too many", wait)
        if request.method in self.behaviour.refusals:
            status, code, message = self.behaviour.refusals[request.method]
            said = await request.text() if self.behaviour.echoes else ""
            return _error(status, code, message + said)
        if request.method == "PUT" and request.path.lower() in self.deleted:
            return _error(409, "ConflictError", "a deleted one has this name: recover or purge it")
        fault = self.chance.random() < self.behaviour.failing
        if fault and self.chance.random() < 0.5:
            return _error(503, "ServerUnavailable", "come back later")
        answer = await self._answer(request)
        if fault:
            # It was carried out, and nobody heard of it.
            assert request.transport is not None
            request.transport.abort()
        return answer

    async def _answer(self, request: web.Request) -> web.Response:  # noqa: PLR0911 - one each
        if request.path.startswith("/operations/"):
            return self._poll(request.path)
        if "api-version" not in request.query:
            return _error(400, "MissingApiVersionParameter", "the api-version is required")
        parts = request.path.lower().split("/")
        group = parts[4] if len(parts) > 4 and parts[3] == "resourcegroups" else ""
        if group and group not in self.behaviour.groups:
            return _error(404, "ResourceGroupNotFound", f"no resource group: {group}")
        match request.method:
            case "GET":
                return self._get(request.path)
            case "PUT" | "PATCH":
                return await self._write(request)
            case "DELETE":
                return self._delete(request)
        return _error(405, "MethodNotAllowed", request.method)

    def _get(self, path: str) -> web.Response:
        found = self.stored.get(path.lower())
        if found is not None and found.stale:
            found.stale -= 1
            if found.old is None:
                return _error(404, "ResourceNotFound", "not found")
            return self._said(200, path, found.old, found.version - 1)
        if found is not None:
            self._work(found.operation)
            found = self.stored.get(path.lower())
        if found is None and _is_collection(path):
            return self._list(path)
        if found is None:
            return _error(404, "ResourceNotFound", "not found")
        return self._said(200, path, found.body, found.version)

    def _list(self, path: str) -> web.Response:
        inside = [each for each in sorted(self.stored) if each.rpartition("/")[0] == path.lower()]
        page = [self._shown(each, self.stored[each].body, 1) for each in inside]
        return web.json_response({"value": page})

    async def _write(self, request: web.Request) -> web.Response:
        path, said = request.path, await request.json()
        found = self.stored.get(path.lower())
        refused = self._refused(request, found)
        if refused is not None:
            return refused
        if request.method == "PATCH":
            if found is None:
                return _error(404, "ResourceNotFound", "not found")
            if self.behaviour.patch == "tags" and set(said) - {"tags"}:
                return _error(400, "InvalidRequestContent", "only tags can be patched")
            body = merge_patch(found.body, said, omit_null=self.behaviour.null_is_omitted)
        else:
            body = said
        for name, change in self.behaviour.normalise.items():
            if name in body:
                body[name] = change(body[name])
        self.writes.append((request.method, path, copy.deepcopy(said)))
        return self._carry_out(path, body, found)

    def _carry_out(self, path: str, body: Json, found: Stored | None) -> web.Response:
        behaviour = self.behaviour
        made = Stored(body, found.version + 1 if found else 1)
        made.old, made.stale = (found.body if found else None), behaviour.stale_reads
        self.stored[path.lower()] = made
        self.made[path.lower()] += found is None
        if behaviour.style == "synchronous":
            _properties(body)["provisioningState"] = "Succeeded"
            return self._said(200 if found else 201, path, body, made.version)
        _properties(body)["provisioningState"] = "Updating" if found else "Creating"
        headers = self._begin(path, made, deletes=False)
        status = 202 if behaviour.style == "location" else 200 if found else 201
        if status == 202:
            return web.Response(status=202, headers=headers)
        return self._said(status, path, body, made.version, headers)

    def _delete(self, request: web.Request) -> web.Response:
        path = request.path
        found = self.stored.get(path.lower())
        if found is None:
            return web.Response(status=204)
        refused = self._refused(request, found)
        if refused is not None:
            return refused
        self.writes.append(("DELETE", path, None))
        if self.behaviour.soft_delete:
            self.deleted.add(path.lower())
        if self.behaviour.style == "synchronous":
            del self.stored[path.lower()]
            return web.Response(status=200)
        _properties(found.body)["provisioningState"] = "Deleting"
        return web.Response(status=202, headers=self._begin(path, found, deletes=True))

    def _refused(self, request: web.Request, found: Stored | None) -> web.Response | None:
        if found is not None and found.operation:
            return _error(409, "AnotherOperationInProgress", "it is being changed")
        etag = f'"{found.version}"' if found and self.behaviour.etags else ""
        wanted = request.headers.get("If-Match", "")
        only_new = request.headers.get("If-None-Match") == "*" and self.behaviour.etags
        if (wanted and wanted != etag) or (only_new and found is not None):
            return _error(412, "PreconditionFailed", "the condition is not met")
        return None

    def _begin(self, path: str, stored: Stored, *, deletes: bool) -> dict[str, str]:
        at = f"/operations/{len(self.operations) + 1}"
        error = self.failures.pop(0) if self.failures and not deletes else None
        self.operations[at] = Operation(path.lower(), self.behaviour.polls, deletes, error)
        stored.operation = at
        headers = {"Retry-After": self.behaviour.retry_after} if self.behaviour.retry_after else {}
        host = self.behaviour.elsewhere or self.url
        match self.behaviour.style:
            case "azure-async-operation":
                # A Location may come along, and is not the one to follow.
                headers |= {"Azure-AsyncOperation": host + at, "Location": host + path}
            case "location":
                headers |= {"Location": host + at}
        return headers

    def _work(self, at: str) -> None:
        operation = self.operations.get(at)
        if operation is None or operation.left <= 0:
            return
        operation.left -= 1
        if operation.left:
            return
        stored = self.stored[operation.id]
        stored.operation = ""
        if operation.deletes:
            del self.stored[operation.id]
        else:
            state = "Failed" if operation.error else "Succeeded"
            _properties(stored.body)["provisioningState"] = state

    def _poll(self, at: str) -> web.Response:
        operation = self.operations.get(at)
        if operation is None:
            return _error(404, "OperationNotFound", "no such operation")
        self._work(at)
        again = {"Retry-After": self.behaviour.retry_after} if self.behaviour.retry_after else {}
        if self.behaviour.style == "location":
            if operation.left:
                return web.Response(status=202, headers=again)
            if operation.error:
                return web.json_response({"error": operation.error}, status=400)
            return web.Response(status=204)
        status = "InProgress" if operation.left else "Failed" if operation.error else "Succeeded"
        said = {"status": status} | ({"error": operation.error} if status == "Failed" else {})
        return web.json_response(said, headers=again)

    def _said(
        self, status: int, path: str, body: Json, version: int, more: dict[str, str] | None = None
    ) -> web.Response:
        headers = {"x-ms-request-id": f"r{len(self.asked)}", **(more or {})}
        if self.behaviour.etags:
            headers["ETag"] = f'"{version}"'
        return web.json_response(self._shown(path, body, version), status=status, headers=headers)

    def _shown(self, path: str, body: Json, version: int) -> Json:
        shown = {**copy.deepcopy(body), "id": path, "name": path.rpartition("/")[2]}
        for name in self.behaviour.hidden:
            _properties(shown).pop(name, None)
        if self.behaviour.etags:
            shown["etag"] = f'"{version}"'
        return shown


def merge_patch(body: Json, patch: Json, *, omit_null: bool = False) -> Json:
    """RFC 7396; some providers take null for nothing said."""
    made = copy.deepcopy(body)
    for name, value in patch.items():
        if value is None:
            if not omit_null:
                made.pop(name, None)
        elif isinstance(value, dict):
            inner = made.get(name)
            inner = inner if isinstance(inner, dict) else {}
            made[name] = merge_patch(inner, value, omit_null=omit_null)
        else:
            made[name] = value
    return made


def _is_collection(path: str) -> bool:
    """Behind the namespace, types and names take turns."""
    _, _, behind = path.rpartition("/providers/")
    return bool(behind) and len(behind.split("/")) % 2 == 0


def _properties(body: Json) -> Json:
    inner = body.setdefault("properties", {})
    assert isinstance(inner, dict)
    return inner


def _error(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> web.Response:
    said = {"error": {"code": code, "message": message}}
    return web.json_response(said, status=status, headers=headers)
