"""Customers: a steady load that counts every answer and every failure exactly.

    async with Load("http://127.0.0.1:8080/", per_second=200).running() as load:
        ...
    load.tally.failed

Each worker keeps one connection. Requests are sent at a steady pace (or as fast as answers
come, without one). A status of 500 or above and a request without an answer are failures;
`tally.lost` are those that no version answered, which a release must never cause.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self

import aiohttp

_UNKNOWN = ""


@dataclass(slots=True)
class Tally:
    """What came of the requests so far."""

    # (version, status) -> answers; the version is what the header X-Version says.
    answers: collections.Counter[tuple[str, int]] = field(default_factory=collections.Counter)
    # Reasons of requests that got no answer at all.
    broken: collections.Counter[str] = field(default_factory=collections.Counter)

    @property
    def sent(self) -> int:
        return self.answers.total() + self.broken.total()

    @property
    def failed(self) -> int:
        bad = HTTPStatus.INTERNAL_SERVER_ERROR
        return sum(n for (_, status), n in self.answers.items() if status >= bad) + (
            self.broken.total()
        )

    @property
    def lost(self) -> int:
        """Requests that reached no version: answered by the proxy alone, or by nobody."""
        return sum(n for (version, _), n in self.answers.items() if version == _UNKNOWN) + (
            self.broken.total()
        )

    def of(self, version: str) -> int:
        return sum(n for (whose, _), n in self.answers.items() if whose == version)


class Load:
    """Requests to one address by several customers at once."""

    def __init__(
        self,
        url: str,
        *,
        per_second: float | None = None,
        customers: int = 8,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.tally = Tally()
        self._url = url
        self._pause = customers / per_second if per_second else 0.0
        self._customers = customers
        self._headers = dict(headers or {})
        self._limit: int | None = None
        self._started = 0
        self._stop = asyncio.Event()
        self._answered = asyncio.Event()

    async def send(self, count: int) -> Tally:
        """Exactly so many requests, then the tally."""
        self._limit = count
        async with self.running(stop=False):
            pass
        return self.tally

    @contextlib.asynccontextmanager
    async def running(self, *, stop: bool = True) -> AsyncIterator[Self]:
        """Load as long as the block runs; the last requests are waited for, not cut off."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=30),
            headers=self._headers,
            # Without a memory for cookies every request is a new customer.
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            tasks = [asyncio.create_task(self._shop(session)) for _ in range(self._customers)]
            try:
                yield self
            finally:
                if stop:
                    self._stop.set()
                await asyncio.gather(*tasks)

    async def at_least(self, count: int) -> None:
        """Wait until so many more requests were answered."""
        goal = self.tally.sent + count
        while self.tally.sent < goal:
            self._answered.clear()
            await self._answered.wait()

    async def _shop(self, session: aiohttp.ClientSession) -> None:
        while not self._stop.is_set() and (self._limit is None or self._started < self._limit):
            self._started += 1
            await self._ask(session)
            if self._pause:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), self._pause)

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        try:
            async with session.get(self._url) as answer:
                await answer.read()
                version = answer.headers.get("X-Version", _UNKNOWN)
                self.tally.answers[version, answer.status] += 1
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.tally.broken[type(error).__name__] += 1
        self._answered.set()
