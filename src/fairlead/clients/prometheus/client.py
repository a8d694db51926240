"""Ask one Prometheus over its HTTP API.

What goes wrong is sorted by what helps: a query that Prometheus refuses is Rejected with
its words (asking again is useless), one that it could not answer is Unavailable.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from fairlead import errors
from fairlead.clients import credentials
from fairlead.clients.prometheus import outcome
from fairlead.clients.prometheus.outcome import Answer, NoData, SeriesSet, Values

_Found = TypeVar("_Found")
_LONGEST_WORDS = 500
_AT_ONCE = 20
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_CLOSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Access:
    """Where a Prometheus is, who we are there, and how long and how much we wait for."""

    url: str
    # Read for each query, so that a rotated secret is picked up.
    token_file: Path | None = None
    username: str = ""
    password_file: Path | None = None
    # The authority to trust instead of those of the system.
    ca_file: Path | None = None
    timeout_seconds: float = 5.0
    max_bytes: int = 4_000_000

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.Rejected(
                f"malformed address of a prometheus: {self.url}",
                hint="use http:// or https://, a host and perhaps a path",
            )
        if parts.username is not None:
            raise errors.Rejected(
                "address of a prometheus holds a password",
                hint="give the user name, and the password in a file",
            )
        if self.token_file is not None and self.username:
            raise errors.Rejected(
                f"both a token and a user name for one prometheus: {self.url}",
                hint="choose one of them",
            )


class Prometheus:
    """One Prometheus; used inside `async with`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def __aenter__(self) -> Self:
        trusted = credentials.authority(self._access.ca_file)
        connector = aiohttp.TCPConnector(limit=0, ssl=trusted)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def instant(self, query: str, at: float | None = None) -> Values | NoData:
        """The query's numbers at one time; now, unless a time is given."""
        form = {"query": query} if at is None else {"query": query, "time": f"{at:.3f}"}
        return self._read(outcome.values, await self._ask("query", form))

    async def over(self, query: str, span: tuple[float, float], step: float) -> SeriesSet | NoData:
        """The query's numbers from the span's start to its end, one each step."""
        start, end = span
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        answer = await self._ask("query_range", {"query": query, **times})
        return self._read(outcome.series, answer)

    async def _ask(self, what: str, form: Mapping[str, str]) -> Answer:
        seconds = self._access.timeout_seconds
        try:
            # The wait for our own turn is not the server's fault, so it has no timeout.
            async with self._turns, asyncio.timeout(seconds):
                return await self._exchange(what, form)
        except TimeoutError as error:
            raise self._unavailable(f"no answer within {seconds:g} s") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise errors.Rejected(
                f"prometheus at {self._access.url} has a certificate that is not trusted:"
                f" {error.certificate_error}",
                hint="set the CA file that signed it",
            ) from error
        except (OSError, aiohttp.ClientError) as error:
            raise self._unavailable(str(error)) from error

    async def _exchange(self, what: str, form: Mapping[str, str]) -> Answer:
        if self._session is None:
            raise errors.Unavailable(
                f"prometheus client is not open: {self._access.url}", hint="use it in async with"
            )
        url = f"{self._access.url.rstrip('/')}/api/v1/{what}"
        # With the timeout Prometheus also gives up, instead of working for nobody.
        data = {**form, "timeout": f"{self._access.timeout_seconds:.3f}"}
        headers = self._headers()
        async with self._session.post(
            url, data=data, headers=headers, allow_redirects=False
        ) as answer:
            return self._judge(answer.status, await self._body(answer))

    async def _body(self, answer: aiohttp.ClientResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in answer.content.iter_any():
            size += len(part)
            if size > self._access.max_bytes:
                raise errors.Rejected(
                    f"answer of prometheus is longer than allowed: {self._access.max_bytes} bytes",
                    hint="ask for fewer series, a shorter time or a longer step",
                )
            parts.append(part)
        return b"".join(parts)

    def _judge(self, status: int, body: bytes) -> Answer:
        if status in _CLOSED:
            raise errors.Unauthorised(
                f"prometheus denied access, status {status}: {self._access.url}",
                hint="check the token or the password, and its permissions",
            )
        try:
            answer = msgspec.json.decode(body, type=Answer)
        except msgspec.DecodeError as error:
            words = body[:_LONGEST_WORDS].decode(errors="replace").strip()
            raise self._unavailable(f"status {status}, not in its format: {words}") from error
        if status in _REFUSED:
            raise errors.Rejected(
                f"prometheus refused the query: {answer.error[:_LONGEST_WORDS]}",
                hint="try the query on prometheus's own page",
            )
        if status != HTTPStatus.OK or answer.status != "success":
            raise self._unavailable(f"status {status}: {answer.error[:_LONGEST_WORDS]}")
        return answer

    def _read(self, reader: Callable[[Answer], _Found], answer: Answer) -> _Found:
        try:
            return reader(answer)
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unavailable("an answer that is not in its format") from error

    def _headers(self) -> dict[str, str]:
        access = self._access
        if access.token_file is not None:
            return {"Authorization": f"Bearer {credentials.secret(access.token_file)}"}
        if access.username:
            password = (
                "" if access.password_file is None else credentials.secret(access.password_file)
            )
            pair = base64.b64encode(f"{access.username}:{password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def _unavailable(self, why: str) -> errors.Unavailable:
        return errors.Unavailable(
            f"prometheus at {self._access.url} did not answer: {why}",
            hint="check that it runs and can be reached from here",
        )
