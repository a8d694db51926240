"""Ask a program whether it is well: over HTTP, or by opening its port."""

import asyncio
import contextlib
from http import HTTPStatus

import aiohttp

from fairlead.clients.processes.program import Health

HOST = "127.0.0.1"


async def complaint(health: Health, port: int) -> str | None:
    """What is wrong with the program on this port, or None when it is well."""
    try:
        async with asyncio.timeout(health.timeout_seconds):
            return await (_connect(port) if health.path is None else _ask(health.path, port))
    except TimeoutError:
        return f"no answer within {health.timeout_seconds:g} s"
    except (OSError, aiohttp.ClientError) as error:
        return f"no answer: {error}"


async def _connect(port: int) -> None:
    _, writer = await asyncio.open_connection(HOST, port)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _ask(path: str, port: int) -> str | None:
    url = f"http://{HOST}:{port}{path}"
    async with (
        # A connection of its own: a kept one would hide that nothing new can connect.
        aiohttp.ClientSession(trust_env=False) as session,
        session.get(url, allow_redirects=False) as answer,
    ):
        well = HTTPStatus.OK <= answer.status < HTTPStatus.BAD_REQUEST
        return None if well else f"{path} answered with status {answer.status}"
