"""Small real programs for the tests: the demo's shop, and some that misbehave."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from fairlead.cli.demo import shop
from fairlead.clients.processes import Health, Patience, Program

SHOP = (sys.executable, str(Path(shop.__file__)))
QUICK = Patience(ready_seconds=20.0, drain_seconds=5.0, backoff_seconds=0.02, steady_seconds=60.0)
HTTP = Health(path="/healthz", every_seconds=0.05)


async def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """For what no event tells: files and processes outside."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - looks at what others write
            await asyncio.sleep(0.01)


def shop_program(name: str = "shop", *arguments: str, port: int | None = None) -> Program:
    command = (*SHOP, "--version", name, *arguments)
    return Program(name, command, port=port, health=HTTP, patience=QUICK)


def python(name: str, text: str, patience: Patience = QUICK) -> Program:
    return Program(name, (sys.executable, "-c", text), patience=patience)
