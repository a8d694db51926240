"""One question for all who ask it in the same tick.

Many rollouts watch the same numbers. Whoever asks first sends the query; the others wait
for the same answer, be it an error. With the next tick it is asked anew.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fairlead import errors
from fairlead.clients.prometheus.client import Prometheus
from fairlead.clients.prometheus.outcome import NoData, SeriesSet, Values

_Found = TypeVar("_Found")


class Shared:
    """A Prometheus that many ask."""

    def __init__(
        self,
        prometheus: Prometheus,
        tick_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prometheus = prometheus
        self._tick_seconds = tick_seconds
        self._clock = clock
        self._tick = -1
        self._asked: dict[tuple[object, ...], asyncio.Task[Any]] = {}

    async def instant(self, query: str) -> Values | NoData:
        return await self._share((query,), lambda: self._prometheus.instant(query))

    async def over(self, query: str, span: tuple[float, float], step: float) -> SeriesSet | NoData:
        return await self._share(
            (query, span, step), lambda: self._prometheus.over(query, span, step)
        )

    async def _share(self, key: tuple[object, ...], ask: Callable[[], Awaitable[_Found]]) -> _Found:
        tick = int(self._clock() // self._tick_seconds)
        if tick != self._tick:
            # Those that still wait hold their own task.
            self._tick, self._asked = tick, {}
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(_outcome(ask))
        # An asker that gives up must not take the answer from the others.
        found: _Found | errors.FairleadError = await asyncio.shield(self._asked[key])
        if isinstance(found, errors.FairleadError):
            # A new error for each: one that is raised many times grows with every asker.
            raise type(found)(found.message, hint=found.hint) from found
        return found


async def _outcome(ask: Callable[[], Awaitable[_Found]]) -> _Found | errors.FairleadError:
    try:
        return await ask()
    except errors.FairleadError as error:
        return error
