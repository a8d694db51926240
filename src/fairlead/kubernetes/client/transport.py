"""One request on its way: its turn, its identity, its tries, and what came back.

Sits between the client's verbs and the pool of connections. A call is repeated only where that
does no harm: when it is idempotent, or when the server cannot have acted on it (429, or no
connection).
"""

import asyncio
import contextlib
import dataclasses
import functools
import random
import re
import ssl
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

import structlog

from fairlead.errors import FairleadError, Rejected, Unauthorised
from fairlead.kubernetes import api_errors
from fairlead.kubernetes.client import limits
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.connection import Answer, Broken, HttpConnection
from fairlead.kubernetes.client.credentials import Certificate, Identity
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.pool import Distrusted, Pool, Unconnected
from fairlead.kubernetes.objects import Resource

log = structlog.get_logger(__name__)
T = TypeVar("T")

_LEVEL_HEADER = "X-Kubernetes-PF-PriorityLevel-UID"
_FAILED = (OSError, Distrusted)
_OWN = (
    ("Accept", "application/json"),
    # Within a cluster, to pack costs more than to send.
    ("Accept-Encoding", "identity"),
    ("User-Agent", "fairlead"),
)
# What would end a header, and begin another.
_UNFIT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


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
class ClientOptions:
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
    """Sends calls over kept-alive connections, within our rate and the server's limits."""

    def __init__(self, connection: Connection, options: ClientOptions) -> None:
        self.options = options
        self._connection = connection
        self._bucket = limits.Bucket(
            options.limits.rate, options.limits.burst, options.clock.monotonic()
        )
        self._holds = limits.Holds()
        self._room = asyncio.Semaphore(options.limits.at_once)
        self._pool: Pool | None = None
        self._trust: tuple[Certificate | None, ssl.SSLContext] | None = None
        self._headers: tuple[Identity, str] | None = None

    async def open(self) -> None:
        where = self._connection
        self._pool = Pool(where.server, where.server_name, where.proxy)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def send(self, call: Call) -> bytes:
        """The whole body of a successful answer."""

        async def body(identity: Identity) -> bytes:
            # Only while it is on its way: a wait before the next try takes nobody's place.
            async with self._room:
                return await self._exchange(call, identity)

        return await self._repeated(call, body)

    async def lines(self, call: Call, seconds: float) -> AsyncGenerator[bytes]:
        """The lines of an answer that goes on, for at most so many seconds."""
        until = asyncio.get_running_loop().time() + seconds

        async def begun(identity: Identity) -> HttpConnection:
            return await self._begin(call, identity, until)

        connection = await self._repeated(call, begun)
        try:
            async with contextlib.aclosing(connection.pieces()) as pieces:
                async for line in _lines(pieces):
                    yield line
        except _FAILED as error:
            raise _unreachable(call, error) from error
        self._opened().give_back(connection)

    async def _repeated(self, call: Call, once: Callable[[Identity], Awaitable[T]]) -> T:
        """Try, and try again where that does no harm."""
        for attempt in range(1, self.options.limits.attempts + 1):
            await self._turn(call)
            identity = await self._connection.credentials.current()
            try:
                return await self._known(once, identity)
            except FairleadError as error:
                if attempt == self.options.limits.attempts or not _may_repeat(call, error):
                    raise
            except _FAILED as error:
                if attempt == self.options.limits.attempts or not _may_resend(call, error):
                    raise _unreachable(call, error) from error
            wait = limits.delay(self.options.limits, attempt, self.options.chance())
            log.info("kubernetes.retry", call=call.what, attempt=attempt, wait=round(wait, 3))
            await self.options.clock.sleep(wait)
        raise AssertionError("the last try has returned or raised")

    async def _known(self, once: Callable[[Identity], Awaitable[T]], identity: Identity) -> T:
        """One try; where the server no longer knows us, a second with a fresh identity."""
        try:
            return await once(identity)
        except Unauthorised as error:
            said = error.__cause__
            ended = (
                isinstance(said, api_errors.StatusError) and said.code == HTTPStatus.UNAUTHORIZED
            )
            if not ended or not self._connection.credentials.refused(identity):
                raise
        return await once(await self._connection.credentials.current())

    async def _turn(self, call: Call) -> None:
        """Wait for our own rate, then for what the server asked of this flow."""
        clock = self.options.clock
        if wait := self._bucket.reserve(clock.monotonic()):
            await clock.sleep(wait)
        while wait := self._holds.wait(call.flow, clock.monotonic()):
            await clock.sleep(wait)

    async def _exchange(self, call: Call, identity: Identity) -> bytes:
        pool, trust = self._opened(), self._context(identity.certificate)
        request = self._request(call, identity)
        asked = self.options.clock.monotonic()
        until = asyncio.get_running_loop().time() + self.options.limits.timeout
        connection = await pool.take(trust, until)
        try:
            answer = await connection.exchange(request, until)
        except Broken:
            if not connection.is_used or not call.repeatable:
                raise
            # Most likely the server closed it while it lay idle: that says nothing of the server.
            connection = await pool.connect(trust, until)
            answer = await connection.exchange(request, until)
        pool.give_back(connection)
        self._heard(call, answer, asked)
        return answer.body

    async def _begin(self, call: Call, identity: Identity, until: float) -> HttpConnection:
        pool, trust = self._opened(), self._context(identity.certificate)
        request = self._request(call, identity)
        asked = self.options.clock.monotonic()
        connected_by = asyncio.get_running_loop().time() + self.options.limits.timeout
        connection = await pool.take(trust, min(until, connected_by))
        answer = await connection.begin(request, until)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            answer.body = b"".join([piece async for piece in connection.pieces()])
            pool.give_back(connection)
        self._heard(call, answer, asked)
        return connection

    def _opened(self) -> Pool:
        if self._pool is None:
            raise Rejected("the Kubernetes client is closed", hint="use it inside `async with`")
        return self._pool

    def _request(self, call: Call, identity: Identity) -> bytes:
        """The request as it goes over the wire."""
        pool = self._opened()
        target = pool.target(f"{call.path}{_encoded(tuple(call.query.items()))}")
        head = f"{call.method} {target} HTTP/1.1\r\n{self._common(identity)}"
        if call.body is None:
            return f"{head}\r\n".encode()
        kind, size = call.content_type, len(call.body)
        return f"{head}Content-Type: {kind}\r\nContent-Length: {size}\r\n\r\n".encode() + call.body

    def _common(self, identity: Identity) -> str:
        """The headers of every request of this identity."""
        if self._headers is None or self._headers[0] is not identity:
            named = [*identity.headers().items(), *self._connection.impersonate]
            if any(_UNFIT.search(part) for pair in named for part in pair):
                raise Unauthorised(
                    "the token or a name to act as has a character that no header may have",
                    hint="check the credentials for a line break",
                )
            lines = "".join(f"{name}: {value}\r\n" for name, value in (*_OWN, *named))
            self._headers = identity, f"{self._opened().greeting}{lines}"
        return self._headers[1]

    def _heard(self, call: Call, answer: Answer, asked: float) -> None:
        """Count an answer, learn from it, and raise where it is a refusal."""
        took = self.options.clock.monotonic() - asked
        self.options.count(Answered(call.verb, call.resource, answer.status, took))
        level = answer.header(_LEVEL_HEADER)
        self._holds.learn(call.flow, level)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._failure(call, answer, level)

    def _failure(self, call: Call, answer: Answer, level: str) -> FairleadError:
        said = api_errors.status_error(answer.status, answer.body)
        if call.resource.plural == "secrets":
            said = said.without_values()
        wait = _seconds(answer.header("Retry-After"))
        if wait is not None:
            self._holds.hold(call.flow, level, wait, self.options.clock.monotonic())
        error = api_errors.error_for(said, call.what, wait)
        error.__cause__ = said
        return error

    def _context(self, certificate: Certificate | None) -> ssl.SSLContext | None:
        if not self._opened().server.secure:
            return None
        if self._trust is None or self._trust[0] != certificate:
            self._trust = (certificate, self._connection.trust(certificate))
        return self._trust[1]


def _may_repeat(call: Call, error: FairleadError) -> bool:
    said = error.__cause__
    if not isinstance(error, api_errors.Busy) or not isinstance(said, api_errors.StatusError):
        return False
    # 429: turned away before anything was done.
    return call.repeatable or said.code == HTTPStatus.TOO_MANY_REQUESTS


def _may_resend(call: Call, error: Exception) -> bool:
    if isinstance(error, Distrusted):
        return False
    # Where no connection was made, nothing can have been done.
    return call.repeatable or isinstance(error, Unconnected)


def _unreachable(call: Call, error: Exception) -> FairleadError:
    if isinstance(error, Distrusted):
        return Unauthorised(
            f"no trusted connection to the API server: {call.what}",
            hint="check certificate-authority and the client certificate in the kubeconfig",
        )
    return api_errors.Busy(
        f"no answer from the API server: {call.what}", hint="check that it runs and is reachable"
    )


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    rest: list[bytes] = []
    async for piece in pieces:
        first, *more = piece.split(b"\n")
        rest.append(first)
        for part in more:
            if line := b"".join(rest):
                yield line
            rest = [part]
    # A line without its end was cut off; whoever reads it shall see that it is no JSON.
    if line := b"".join(rest):
        yield line


@functools.lru_cache(256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urllib.parse.urlencode(query)}" if query else ""


def _seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() else None
