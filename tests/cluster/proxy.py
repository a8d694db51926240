"""A proxy between a client and the API server that does to it what bad days do.

The client speaks plain HTTP to it on loopback, it speaks HTTPS to the API server. It counts
every request by Kubernetes verb and path, and injects faults by rule: answers of its own,
latency, lost requests, lost answers, cut and expired watches.
"""

import asyncio
import contextlib
import enum
import io
import json
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp
import yarl
from aiohttp import web

_LINE_BYTES = 2**24
_END_SECONDS = 5.0
_WAIT_SECONDS = 30.0
# They belong to one connection, so they are not passed on; aiohttp writes its own.
_OF_CONNECTION = frozenset({"connection", "content-length", "host", "keep-alive"}) | {
    "transfer-encoding",
    "upgrade",
}
_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Lost(enum.Enum):
    """What gets lost when a connection breaks: both look the same to the client."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule: requests that match, `times` of them (None: all), fare like this."""

    verb: str = ".*"
    path: str = ".*"
    times: int | None = 1
    # Answer this instead of asking the API server.
    status: int | None = None
    retry_after: int | None = None
    delay: float = 0.0
    lost: Lost | None = None
    # For watches: break the connection after so many events.
    cut_after: int | None = None

    def matches(self, verb: str, path: str) -> bool:
        return bool(re.fullmatch(self.verb, verb) and re.fullmatch(self.path, path))


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request and what became of it; status 0 says that the client got no answer."""

    verb: str
    path: str
    status: int


@dataclass(slots=True)
class _Rule:
    fault: Fault
    left: int | None


@dataclass(eq=False, slots=True)
class _Watch:
    """An open watch, and the way to end it from outside: the last bytes, None to break it."""

    path: str
    ending: asyncio.Future[bytes | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Proxy:
    """Use as `async with Proxy(...).running() as proxy`, then give `proxy.url` to a client."""

    def __init__(self, upstream: str, trust: ssl.SSLContext) -> None:
        self._upstream = upstream
        self._trust = trust
        self._rules: list[_Rule] = []
        self._watches: set[_Watch] = set()
        self._changed = asyncio.Condition()
        self.url = ""
        self.seen: list[SeenRequest] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_END_SECONDS)
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            read_bufsize=_LINE_BYTES,
        ) as self._session:
            application = web.Application(client_max_size=_LINE_BYTES)
            application.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(
                application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None
            )
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                yield self
            finally:
                self.cut_watches()
                await runner.cleanup()

    def inject(self, fault: Fault) -> None:
        """The oldest rule that matches and is not used up decides."""
        self._rules.append(_Rule(fault, fault.times))

    def clear(self) -> None:
        self._rules.clear()

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        return Counter((one.verb, one.path) for one in self.seen)

    def count(self, verb: str = ".*", path: str = ".*") -> int:
        rule = Fault(verb, path)
        return sum(rule.matches(one.verb, one.path) for one in self.seen)

    @property
    def open_watches(self) -> list[str]:
        return sorted(watch.path for watch in self._watches)

    def cut_watches(self, path: str = ".*") -> int:
        """Breaks open watches in the middle, as a dying network does."""
        return self._end(path, None)

    def expire_watches(self, path: str = ".*") -> int:
        """Ends open watches with the 410 that the API server sends once it forgot the past."""
        event = {"type": "ERROR", "object": _status(410)}
        return self._end(path, json.dumps(event).encode() + b"\n")

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until what was seen, or the open watches, fulfil the condition."""
        async with asyncio.timeout(_WAIT_SECONDS), self._changed:
            await self._changed.wait_for(condition)

    def _end(self, path: str, last: bytes | None) -> int:
        chosen = [
            watch
            for watch in self._watches
            if re.fullmatch(path, watch.path) and not watch.ending.done()
        ]
        for watch in chosen:
            watch.ending.set_result(last)
        return len(chosen)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        verb = verb_of(request.method, request.path, request.query.get("watch", ""))
        fault = self._pick(verb, request.path)
        await asyncio.sleep(fault.delay)
        if fault.lost is Lost.REQUEST:
            return await self._lose(request, verb)
        if fault.status is not None:
            await self._note(verb, request.path, fault.status)
            return _refuse(fault)
        body = await request.read()
        async with self._session.request(
            request.method,
            yarl.URL(self._upstream + request.raw_path, encoded=True),
            headers=_passed_on(request.headers),
            data=io.BytesIO(body) if body else None,
        ) as answer:
            if verb == "watch" and answer.ok:
                return await self._watch(request, answer, fault.cut_after)
            content = await answer.read()
        if fault.lost is Lost.ANSWER:
            return await self._lose(request, verb)
        await self._note(verb, request.path, answer.status)
        return web.Response(status=answer.status, body=content, headers=_passed_on(answer.headers))

    def _pick(self, verb: str, path: str) -> Fault:
        for rule in self._rules:
            if rule.left != 0 and rule.fault.matches(verb, path):
                rule.left = rule.left - 1 if rule.left is not None else None
                return rule.fault
        return Fault()

    async def _lose(self, request: web.Request, verb: str) -> web.Response:
        await self._note(verb, request.path, 0)
        _break(request)
        return web.Response()

    async def _watch(
        self, request: web.Request, answer: aiohttp.ClientResponse, cut_after: int | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
        await response.prepare(request)
        watch = _Watch(request.path)
        self._watches.add(watch)
        await self._note("watch", request.path, answer.status)
        pumping = asyncio.create_task(_pump(answer, response, cut_after))
        try:
            await asyncio.wait({pumping, watch.ending}, return_when=asyncio.FIRST_COMPLETED)
            last = watch.ending.result() if watch.ending.done() else await pumping
            if last is None:
                _break(request)
            else:
                await response.write(last)
        finally:
            pumping.cancel()
            self._watches.discard(watch)
            await self._tell()
        return response

    async def _note(self, verb: str, path: str, status: int) -> None:
        self.seen.append(SeenRequest(verb, path, status))
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def verb_of(method: str, path: str, watch: str) -> str:
    """The verb in the words of RBAC: a GET may be a get, a list or a watch."""
    named = _is_named(path)
    match method:
        case "GET":
            if watch in {"1", "true"}:
                return "watch"
            return "get" if named else "list"
        case "DELETE":
            return "delete" if named else "deletecollection"
        case _:
            known = {"POST": "create", "PUT": "update", "PATCH": "patch"}
            return known.get(method, method.lower())


def _is_named(path: str) -> bool:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    return len(parts) != 1


async def _pump(
    answer: aiohttp.ClientResponse, response: web.StreamResponse, cut_after: int | None
) -> bytes | None:
    """Events, one line each, until the API server ends the watch or it is time to cut it."""
    sent = 0
    if cut_after == 0:
        return None
    with contextlib.suppress(aiohttp.ClientError):
        async for line in answer.content:
            await response.write(line)
            sent += 1
            if sent == cut_after:
                return None
        return b""
    # The API server broke the connection, so we do to the client what was done to us.
    return None


def _break(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _refuse(fault: Fault) -> web.Response:
    assert fault.status is not None
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return web.json_response(_status(fault.status), status=fault.status, headers=headers)


def _status(code: int) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected by the test: {code}",
        "reason": _REASONS.get(code, "Unknown"),
        "code": code,
    }


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_CONNECTION}
