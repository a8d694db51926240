"""How a local command uses the engine: submit and write, but leave effects to workers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead.console import clients, options
from fairlead.engine import service

T = TypeVar("T")


def with_engine(work: Callable[[service.Engine], Awaitable[T]]) -> T:
    """Run one piece of work on an engine that performs nothing itself."""
    chosen = options.local_settings()
    installation = options.installation()
    kept = clients.existing(installation, chosen.store)

    async def run() -> T:
        async with installation.engine(chosen, kept, perform=False).running() as engine:
            return await work(engine)

    return asyncio.run(run())
