"""Ask a running Envoy: its numbers, and whether it took what it was given.

Over a Unix socket in a private folder, since whoever reaches the admin interface can stop
Envoy.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path

import aiohttp

from fairlead import errors

_SECONDS = 5.0
# What the kernel takes for the path of a socket, with its closing zero.
_LONGEST_PATH = 107


class Admin:
    """The admin interface behind one socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def stats(self, pattern: str) -> Mapping[str, str]:
        """Envoy's numbers and texts whose names fit the pattern."""
        text = await self.get("/stats", {"filter": pattern})
        pairs = (line.partition(": ") for line in text.splitlines())
        return {name: value.strip('"') for name, _, value in pairs}

    async def number(self, name: str) -> int:
        """One counter or gauge; one that is not there yet is zero."""
        found = await self.stats(f"^{name.replace('.', '[.]')}$")
        return int(found.get(name, "0"))

    async def get(self, path: str, query: Mapping[str, str]) -> str:
        return await self._ask("GET", path, query)

    async def post(self, path: str) -> str:
        return await self._ask("POST", path, {})

    async def _ask(self, method: str, path: str, query: Mapping[str, str]) -> str:
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._exchange(method, path, query)
        except (OSError, aiohttp.ClientError) as error:  # a timeout is an OSError too
            raise errors.Unavailable(
                f"envoy does not answer on its admin socket: {self._socket}",
                hint="it is started again by itself; its log says why it ended",
            ) from error

    async def _exchange(self, method: str, path: str, query: Mapping[str, str]) -> str:
        with _reachable(self._socket) as socket:
            async with (
                aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket)) as session,
                session.request(method, f"http://envoy{path}", params=query) as answer,
            ):
                text = await answer.text()
                if answer.status != HTTPStatus.OK:
                    raise errors.Unavailable(
                        f"envoy's admin interface refused {path}: {text.strip()[:200]}",
                        hint="see envoy's log",
                    )
                return text


@contextlib.contextmanager
def _reachable(socket: Path) -> Iterator[str]:
    """The socket's path; for a long one a short path to the same place."""
    if len(os.fsencode(socket)) <= _LONGEST_PATH:
        yield str(socket)
        return
    try:
        folder = os.open(socket.parent, os.O_PATH)
    except FileNotFoundError as error:
        raise errors.Unavailable(f"no such folder: {socket.parent}", hint="start it") from error
    try:
        yield f"/proc/self/fd/{folder}/{socket.name}"
    finally:
        os.close(folder)
