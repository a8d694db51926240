"""How a command writes: by the control plane that is named, or by an engine of its own.

Such an engine submits and writes, and leaves effects to workers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead.console import clients, options, remote
from fairlead.engine import service

T = TypeVar("T")


def write(
    local: Callable[[service.Engine], Awaitable[T]], asked: Callable[[remote.ServerSource], T]
) -> T:
    """Ask the control plane that the settings name, else the engine on this machine's store."""
    server = clients.server(options.settings().web)
    return with_engine(local) if server is None else asked(server)


def with_engine(work: Callable[[service.Engine], Awaitable[T]]) -> T:
    """Run one piece of work on an engine that performs nothing itself."""
    chosen = options.local_settings()
    installation = options.installation()
    kept = clients.existing(installation, chosen.store)

    async def run() -> T:
        async with installation.engine(chosen, kept, perform=False).running() as engine:
            return await work(engine)

    return asyncio.run(run())
