"""Find and end processes that nobody supervises any more.

For a person who removed a state folder under a running control plane, or who wants
everything gone: each process carries the name of its folder in its environment, so it is
found without a record. Only processes of that one folder are ever touched, by their id.
"""

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path

from fairlead.clients.processes import identity
from fairlead.clients.processes.identity import Identity
from fairlead.clients.processes.records import Folder
from fairlead.clients.processes.spawn import Handle

_DRAIN_SECONDS = 10.0


async def clean_up(folder: Path, drain_seconds: float = _DRAIN_SECONDS) -> tuple[Identity, ...]:
    """End every process of a folder whose control plane is gone, and forget its programs."""
    place = Folder(folder)
    with place.locked():
        found = strays(place.owner, ())
        # Forgotten first: a control plane that starts now must not start them again.
        place.forget_all()
        await end(found, drain_seconds)
    return found


def strays(owner: str, groups: Collection[int | None]) -> tuple[Identity, ...]:
    """Marked processes outside these process groups."""
    inside = {pid for group in groups if group is not None for pid in identity.members(group)}
    return tuple(found for found, _, _ in identity.marked(owner) if found.pid not in inside)


async def end(found: Iterable[Identity], drain_seconds: float = _DRAIN_SECONDS) -> None:
    async with asyncio.TaskGroup() as tasks:
        for each in found:
            tasks.create_task(_end(each, drain_seconds))


async def _end(found: Identity, drain_seconds: float) -> None:
    handle = Handle.hold(found)
    if handle is not None:
        try:
            await handle.drain_alone(drain_seconds)
        finally:
            handle.close()
