"""Watches and queue as one: nothing is acted upon before everything has been seen once."""

import asyncio

from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.controller.queue import Queue, Work

_SYNC_SECONDS = 120.0


async def operate(
    watches: Watches, queue: Queue, work: Work, sync_seconds: float = _SYNC_SECONDS
) -> None:
    """Work until the queue is closed or we are cancelled; an end of the watches is an error.

    The barrier stands between the two: with the parents listed but not yet their children, a
    restart would take every child for missing and write them all again.
    """

    async def after_barrier() -> None:
        await watches.synced(sync_seconds)
        await queue.run(work)

    watching = asyncio.create_task(watches.run())
    working = asyncio.create_task(after_barrier())
    try:
        # Whichever ends first: work on caches that nobody keeps any more would be work on lies.
        done, _ = await asyncio.wait((watching, working), return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        working.cancel()
        await asyncio.gather(watching, working, return_exceptions=True)
    for task in done:
        task.result()
