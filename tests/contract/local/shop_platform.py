"""A machine for rollouts, with two versions of the shop that it knows how to make."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from fairlead.adapters.local import Machine
from fairlead.intents import workloads
from tests.contract.local.stage import free_port
from tests.unit.adapters.processes.programs import SHOP


def document(
    version: str, listen: int, arguments: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """A file for `fairlead deploy`, as plain data."""
    program = {"command": [*SHOP, "--version", version, *arguments], "health": "/healthz"}
    return {"name": "shop", "listen": listen, "version": version, "program": program} | more


@contextlib.asynccontextmanager
async def machine(folder: Path) -> AsyncIterator[Machine]:
    """One life of a control plane's machine; what it started stays when the block ends."""
    async with Machine(folder).running(_nobody) as made:
        yield made


async def kept(made: Machine, listen: int = 0) -> tuple[workloads.Wish, workloads.Wish]:
    """Two versions that the machine can make."""
    listen = listen or free_port()
    first, second = (workloads.read(document(name, listen)) for name in ("v1", "v2"))
    await made.keep(first)
    await made.keep(second)
    return first, second


async def _nobody(_: str) -> None: ...
