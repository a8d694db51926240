"""HTTP to the API of a host, of repositories or resources: bounded, within its rate limit."""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

import aiohttp
import msgspec

from fairlead import __version__, errors

MOST_BYTES = 1024 * 1024
LONGEST_PAUSE = 3600.0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What is shown beside a commit; the same id again replaces what was shown."""

    repository: str
    commit: str
    name: str
    external_id: str
    state: Literal["pending", "success", "failure"]
    summary: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a host."""

    method: str
    at: str
    about: str
    """The repository or resource, for what is said of it."""

    words: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    most: int = MOST_BYTES


@dataclass
class HostApi:
    """One host; used inside `open`."""

    name: str
    url: str
    setting: str
    seconds: float = 10.0
    clock: Callable[[], float] = time.time
    forget: Callable[[], bool] = lambda: False
    """Drops a credential that may have ended; whether there was one."""

    _session: aiohttp.ClientSession | None = None
    _limited_until: float = 0.0

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        # Redirects are not followed and no proxy is asked: a token goes to the host that was set.
        async with aiohttp.ClientSession(
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self.seconds),
        ) as self._session:
            yield
        self._session = None

    async def ask(self, request: Request, credential: str) -> tuple[HTTPStatus, bytes]:
        if self._session is None:
            raise errors.Unavailable(f"{self.name} is not open", hint="use it inside open()")
        if (left := self._limited_until - self.clock()) > 0:
            raise self._limited(left)
        headers = {
            "Authorization": f"Bearer {credential}",
            "Accept-Encoding": "identity",
            "User-Agent": f"fairlead/{__version__}",
            "Content-Type": "application/json",
            **request.headers,
        }
        body = None if request.words is None else msgspec.json.encode(request.words)
        url = self.url.rstrip("/") + request.at
        try:
            async with self._session.request(
                request.method, url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                # One more than allowed, so that a larger one is told from one that just fits.
                data = await _upto(answer, request.most + 1)
                self._judge(answer, request.about)
                return HTTPStatus(answer.status), data
        except (TimeoutError, OSError, aiohttp.ClientError, ValueError) as error:
            raise errors.Unavailable(
                f"{self.name} did not answer: {type(error).__name__}",
                hint=f"check {self.setting} and the network",
            ) from error

    def plain(self, body: bytes) -> Any:
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise errors.Unavailable(
                f"{self.name} sent no JSON", hint="it is tried again"
            ) from error

    def _judge(self, answer: aiohttp.ClientResponse, about: str) -> None:
        status, name = answer.status, self.name
        pause = _pause(answer, self.clock())
        limited = status in (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
        if limited and pause is not None:
            self._limited_until = self.clock() + pause
            raise self._limited(pause)
        if status == HTTPStatus.UNAUTHORIZED and self.forget():
            # Of an App's installation, revoked before its time: the next try gets another.
            raise errors.Unavailable("the App's token is no longer good", hint="it is tried again")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise errors.Forbidden(
                f"{name} does not let us into {about}, status: {status}",
                hint="check the token or App and what it may read",
            )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise errors.Unavailable(f"{name} answered {status}", hint="it is tried again")
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            raise errors.Rejected(
                f"{name} redirects, status: {status}", hint="name it as it is called now"
            )

    def _limited(self, pause: float) -> errors.Unavailable:
        return errors.Unavailable(
            f"{self.name}'s rate limit is reached, for {pause:.0f} s",
            hint="it is tried again after that",
        )


def _pause(answer: aiohttp.ClientResponse, now: float) -> float | None:
    """How long we are asked to wait; None where a refusal is no limit."""
    given = answer.headers
    try:
        if "Retry-After" in given:
            return min(max(float(given["Retry-After"]), 1.0), LONGEST_PAUSE)
        if given.get("x-ratelimit-remaining") == "0":
            reset = float(given.get("x-ratelimit-reset", now + 60))
            return min(max(reset - now, 1.0), LONGEST_PAUSE)
    except ValueError:
        return 60.0
    return None


async def _upto(answer: aiohttp.ClientResponse, most: int) -> bytes:
    data = b""
    while len(data) < most and (part := await answer.content.read(most - len(data))):
        data += part
    return data
