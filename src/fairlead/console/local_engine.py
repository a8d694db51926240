"""How a local command uses the engine: submit and write, but leave effects to workers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead import bootstrap
from fairlead.cli import options, sources
from fairlead.engine import service

T = TypeVar("T")


def with_engine(work: Callable[[service.Engine], Awaitable[T]]) -> T:
    """Run one piece of work on an engine that performs nothing itself."""
    chosen = options.local_settings()
    players = options.cast()
    kept = sources.existing(chosen.store, players)

    async def run() -> T:
        async with bootstrap.engine(chosen, players, kept, perform=False).running() as engine:
            return await work(engine)

    return asyncio.run(run())
