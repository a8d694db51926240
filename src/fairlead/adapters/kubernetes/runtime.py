"""Watches and queue as one: nothing is acted upon before everything has been seen once."""

import asyncio

from fairlead.adapters.kubernetes.queue import Queue, Work
from fairlead.adapters.kubernetes.watch import Watches

_SYNC_SECONDS = 120.0


async def operate(
    watches: Watches, queue: Queue, work: Work, sync_seconds: float = _SYNC_SECONDS
) -> None:
    """Work until the queue is closed or we are cancelled.

    The barrier stands between the two: with the parents listed but not yet their children, a
    restart would take every child for missing and write them all again.
    """
    watching = asyncio.create_task(watches.run())
    try:
        await watches.synced(sync_seconds)
        await queue.run(work)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
