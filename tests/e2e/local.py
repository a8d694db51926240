"""`fairlead up` with its local platform, and `fairlead deploy`, as users type them."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fairlead.clients.processes import clean_up
from tests.contract.local import shop_platform
from tests.contract.local.shop_versions import free_port
from tests.e2e import processes

UP = ["-m", "fairlead", "up"]
READY = "fairlead is up: "


@dataclass(frozen=True, slots=True)
class Site:
    """A state folder, a port for the page and a port for the shop."""

    folder: Path
    page: int
    shop: int

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FAIRLEAD_STATE_DIR": str(self.folder),
            "FAIRLEAD_LISTEN": f"127.0.0.1:{self.page}",
            "FAIRLEAD_SERVER": "",
            "FAIRLEAD_LOG_FORMAT": "json",
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.shop}/"

    @contextlib.contextmanager
    def up(self, more: Mapping[str, str] | None = None) -> Iterator[processes.Running]:
        with processes.running(UP, {**self.environment, **(more or {})}) as running:
            running.until(READY)
            yield running

    async def type(
        self, *arguments: str, given: str = "", remote: bool = False, token: str = ""
    ) -> subprocess.CompletedProcess[str]:
        more = {"FAIRLEAD_SERVER": f"http://127.0.0.1:{self.page}"} if remote else {}
        more |= {"FAIRLEAD_TOKEN": token} if token else {}
        return await asyncio.to_thread(self._type, arguments, given, more)

    async def deploy(
        self, version: str, arguments: Sequence[str] = (), **more: Any
    ) -> subprocess.CompletedProcess[str]:
        words = shop_platform.document(version, self.shop, arguments, **more)
        return await self.type("deploy", "-", "-o", "json", given=json.dumps(words))

    async def stream(self) -> dict[str, Any]:
        page = f"http://127.0.0.1:{self.page}/api/v1/streams/rollout/shop"
        async with httpx.AsyncClient(timeout=30) as client:
            answer = await client.get(page)
        return dict(answer.json()) if answer.is_success else {"state": "", "data": {}}

    async def until(self, *states: str, weight: int | None = None) -> dict[str, Any]:
        """The stream once it is in one of these states, and the canary has this weight."""
        async with asyncio.timeout(240):
            while True:
                seen = await self.stream()
                canary = seen["data"].get("rollout", {}).get("route", {}).get("split", {})
                if seen["state"] in states and weight in (None, canary.get("canary")):
                    return seen
                await asyncio.sleep(0.1)

    def _type(
        self, arguments: Sequence[str], given: str, more: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
        return subprocess.run(
            [sys.executable, "-m", "fairlead", *arguments],
            input=given,
            env={**inherited, **self.environment, **more},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@contextlib.asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    """A place of one's own; whatever was started from it is ended at the end."""
    try:
        yield Site(folder, free_port(), free_port())
    finally:
        await clean_up(folder / "local" / "processes", drain_seconds=2.0)
