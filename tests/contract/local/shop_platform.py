"""A machine for rollouts, with two versions of the shop that it knows how to make."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.local import LocalPlatform
from tests.contract.local.shop_versions import free_port
from tests.unit.clients.processes.programs import SHOP


def document(
    version: str, listen: int, arguments: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """A file for `fairlead deploy`, as plain data."""
    program = {"command": [*SHOP, "--version", version, *arguments], "health": "/healthz"}
    return {"name": "shop", "listen": listen, "version": version, "program": program} | more


@contextlib.asynccontextmanager
async def machine(folder: Path) -> AsyncIterator[LocalPlatform]:
    """One life of a control plane's machine; what it started stays when the block ends."""
    async with LocalPlatform(folder).running(_nobody) as made:
        yield made


async def kept(
    made: LocalPlatform, listen: int = 0
) -> tuple[workloads.DeployRequest, workloads.DeployRequest]:
    """Two versions that the machine can make."""
    listen = listen or free_port()
    first, second = (workloads.read(document(name, listen)) for name in ("v1", "v2"))
    await made.keep(first)
    await made.keep(second)
    return first, second


async def _nobody(_: str) -> None: ...
