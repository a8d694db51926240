"""One request on its way: its turn, its identity, its tries, and what came back.

Sits between the client's verbs and aiohttp. A call is repeated only where that does no harm:
when it is idempotent, or when the server cannot have acted on it (429, or no connection).
"""

import asyncio
import dataclasses
import io
import random
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
import structlog

from fairlead.adapters.kubernetes import answers, limits
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.credentials import Certificate, Identity
from fairlead.adapters.kubernetes.limits import Limits
from fairlead.adapters.kubernetes.objects import Resource
from fairlead.errors import FairleadError, Rejected, Unauthorised

log = structlog.get_logger(__name__)
T = TypeVar("T")

_LEVEL_HEADER = "X-Kubernetes-PF-PriorityLevel-UID"
_FAILED = (aiohttp.ClientError, TimeoutError, OSError)
_CHUNK_LIMIT = 2**20


@dataclasses.dataclass(frozen=True, slots=True)
class Answered:
    """One request that the server answered, for those who count."""

    verb: str
    resource: Resource
    code: int
    seconds: float


def _uncounted(_: Answered) -> None:
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class Tempo:
    """Time, chance and bounds, as one client has them; and who counts its requests."""

    limits: Limits = dataclasses.field(default_factory=Limits)
    clock: Clock = dataclasses.field(default_factory=Clock)
    chance: Callable[[], float] = random.random
    count: Callable[[Answered], None] = _uncounted


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One request, told so that it can be sent again."""

    verb: str
    method: str
    path: str
    resource: Resource
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = dataclasses.field(default=None, repr=False)
    content_type: str = "application/json"
    repeatable: bool = False

    @property
    def flow(self) -> str:
        """What priority and fairness may tell apart."""
        return f"{self.verb} {self.resource}"

    @property
    def what(self) -> str:
        return f"{self.verb} {self.path}"


class Transport:
    """Sends calls over kept-alive connections, within our rate and the server's wishes."""

    def __init__(self, connection: Connection, tempo: Tempo) -> None:
        self.tempo = tempo
        self._connection = connection
        self._bucket = limits.Bucket(tempo.limits.rate, tempo.limits.burst, tempo.clock.monotonic())
        self._holds = limits.Holds()
        self._room = asyncio.Semaphore(tempo.limits.at_once)
        self._session: aiohttp.ClientSession | None = None
        self._trust: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def open(self) -> None:
        # Watches hold a connection each, so aiohttp's own bound of 100 would block writes.
        connector = aiohttp.TCPConnector(limit=0, socket_factory=_kept_alive)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_CHUNK_LIMIT,
            headers={"Accept": "application/json", "User-Agent": "fairlead"},
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: Call) -> bytes:
        """The whole body of a successful answer."""
        limit = aiohttp.ClientTimeout(total=self.tempo.limits.timeout)

        async def body(identity: Identity) -> bytes:
            # Only while it is on its way: a wait before the next try takes nobody's place.
            async with self._room, await self._request(call, identity, limit) as response:
                return await response.read()

        return await self._repeated(call, body)

    async def lines(self, call: Call, seconds: float) -> AsyncGenerator[bytes]:
        """The lines of an answer that goes on, for at most so many seconds."""
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=self.tempo.limits.timeout)

        async def opened(identity: Identity) -> aiohttp.ClientResponse:
            return await self._request(call, identity, limit)

        response = await self._repeated(call, opened)
        try:
            async with response:
                async for line in _lines(response.content):
                    yield line
        except _FAILED as error:
            raise _unreachable(call, error) from error

    async def _repeated(self, call: Call, once: Callable[[Identity], Awaitable[T]]) -> T:
        """Try, and try again where that does no harm."""
        for attempt in range(1, self.tempo.limits.attempts + 1):
            await self._turn(call)
            identity = await self._connection.credentials.current()
            try:
                return await self._known(once, identity)
            except FairleadError as error:
                if attempt == self.tempo.limits.attempts or not _may_repeat(call, error):
                    raise
            except _FAILED as error:
                if attempt == self.tempo.limits.attempts or not _may_resend(call, error):
                    raise _unreachable(call, error) from error
            wait = limits.delay(self.tempo.limits, attempt, self.tempo.chance())
            log.info("kubernetes.retry", call=call.what, attempt=attempt, wait=round(wait, 3))
            await self.tempo.clock.sleep(wait)
        raise AssertionError("the last try has returned or raised")

    async def _known(self, once: Callable[[Identity], Awaitable[T]], identity: Identity) -> T:
        """One try; where the server no longer knows us, a second with a fresh identity."""
        try:
            return await once(identity)
        except Unauthorised as error:
            said = error.__cause__
            ended = isinstance(said, answers.StatusError) and said.code == HTTPStatus.UNAUTHORIZED
            if not ended or not self._connection.credentials.refused(identity):
                raise
        return await once(await self._connection.credentials.current())

    async def _turn(self, call: Call) -> None:
        """Wait for our own rate, then for what the server asked of this flow."""
        clock = self.tempo.clock
        if wait := self._bucket.reserve(clock.monotonic()):
            await clock.sleep(wait)
        while wait := self._holds.wait(call.flow, clock.monotonic()):
            await clock.sleep(wait)

    async def _request(
        self, call: Call, identity: Identity, limit: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise Rejected("the Kubernetes client is closed", hint="use it inside `async with`")
        headers = [*identity.headers().items(), *self._connection.impersonate]
        if call.body is not None:
            headers.append(("Content-Type", call.content_type))
        asked = self.tempo.clock.monotonic()
        response = await self._session.request(
            call.method,
            self._connection.server + call.path,
            params=call.query,
            data=_payload(call.body),
            headers=headers,
            timeout=limit,
            ssl=self._context(identity.certificate),
            server_hostname=self._connection.server_name,
            proxy=self._connection.proxy,
            # A redirect would carry our token to wherever it points.
            allow_redirects=False,
        )
        took = self.tempo.clock.monotonic() - asked
        self.tempo.count(Answered(call.verb, call.resource, response.status, took))
        self._holds.learn(call.flow, response.headers.get(_LEVEL_HEADER, ""))
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise await self._failure(call, response)
        return response

    async def _failure(self, call: Call, response: aiohttp.ClientResponse) -> FairleadError:
        async with response:
            said = answers.status_error(response.status, await response.read())
        if call.resource.plural == "secrets":
            said = said.without_values()
        wait = _seconds(response.headers.get("Retry-After"))
        if wait is not None:
            level = response.headers.get(_LEVEL_HEADER, "")
            self._holds.hold(call.flow, level, wait, self.tempo.clock.monotonic())
        error = answers.error_for(said, call.what, wait)
        error.__cause__ = said
        return error

    def _context(self, certificate: Certificate | None) -> ssl.SSLContext | bool:
        if not self._connection.server.startswith("https:"):
            return True
        if self._trust is None or self._trust[0] != certificate:
            self._trust = (certificate, self._connection.trust(certificate))
        return self._trust[1]


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes in one go, and warns of large ones: a stream lets others have a turn.
    return io.BytesIO(body) if body is not None and len(body) > _CHUNK_LIMIT // 2 else body


def _may_repeat(call: Call, error: FairleadError) -> bool:
    said = error.__cause__
    if not isinstance(error, answers.Busy) or not isinstance(said, answers.StatusError):
        return False
    # 429: turned away before anything was done.
    return call.repeatable or said.code == HTTPStatus.TOO_MANY_REQUESTS


def _may_resend(call: Call, error: Exception) -> bool:
    if isinstance(error, aiohttp.ClientSSLError):
        return False
    # Where no connection was made, nothing can have been done.
    return call.repeatable or isinstance(error, aiohttp.ClientConnectorError)


def _unreachable(call: Call, error: Exception) -> FairleadError:
    if isinstance(error, aiohttp.ClientSSLError):
        return Unauthorised(
            f"no trusted connection to the API server: {call.what}",
            hint="check certificate-authority and the client certificate in the kubeconfig",
        )
    return answers.Busy(
        f"no answer from the API server: {call.what}", hint="check that it runs and is reachable"
    )


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    # StreamReader.readline() refuses lines past its buffer; an object may have a megabyte.
    rest: list[bytes] = []
    async for chunk in content.iter_any():
        first, *more = chunk.split(b"\n")
        rest.append(first)
        for piece in more:
            if line := b"".join(rest):
                yield line
            rest = [piece]
    # A line without its end was cut off; whoever reads it shall see that it is no JSON.
    if line := b"".join(rest):
        yield line


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() else None


def _kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices a dead peer: a watch may be silent for minutes by right."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
