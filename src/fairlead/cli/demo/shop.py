"""A tiny web shop to try a release on; as good or as bad as its arguments say.

    PORT=8081 python shop.py --version v3 --errors 0.05 --delay-ms 30

Standard library only, so that any Python can run the file itself. Every answer carries
its version in the header X-Version. /healthz answers without errors and delays, so that a
bad version is found by its numbers, as in life. SIGTERM lets requests in flight finish.
"""

import argparse
import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus

_GOODS = ({"name": "rope", "price": 12}, {"name": "anchor", "price": 240})
_LONGEST_BODY = 1 << 20
_COLD = 4
"""So many times slower is a shop whose caches are empty."""


class Shop:
    """One version of the shop."""

    def __init__(
        self, arguments: argparse.Namespace, goods: Sequence[Mapping[str, object]] = _GOODS
    ) -> None:
        self._goods = goods
        self._version: str = arguments.version
        self._errors: float = arguments.errors
        self._delay: float = arguments.delay_ms / 1000
        self._warm_at = time.monotonic() + arguments.cold_seconds
        self._orders = 0
        self._connections: set[asyncio.StreamWriter] = set()
        self._busy: set[asyncio.StreamWriter] = set()
        self._freed = asyncio.Event()
        self._closing = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while not self._closing and (path := await self._request(reader, writer)):
                writer.write(await self._answer(path))
                await writer.drain()
                self._free(writer)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass  # the customer left, or does not speak HTTP
        finally:
            self._connections.discard(writer)
            self._free(writer)
            writer.close()

    async def close(self, seconds: float) -> None:
        """Idle connections end now, busy ones after their answer."""
        self._closing = True
        for writer in self._connections - self._busy:
            writer.close()
        try:
            async with asyncio.timeout(seconds):
                while self._connections:
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            pass

    def _free(self, writer: asyncio.StreamWriter) -> None:
        self._busy.discard(writer)
        self._freed.set()

    async def _request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str | None:
        first = await reader.readline()
        if not first:
            return None
        self._busy.add(writer)
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b"\n", b""):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = min(int(value), _LONGEST_BODY)
        await reader.readexactly(length)
        return first.split()[1].decode("latin-1")

    async def _answer(self, path: str) -> bytes:
        if path.startswith("/healthz"):
            return self._response(HTTPStatus.OK, {"well": True})
        if self._delay:
            cold = time.monotonic() < self._warm_at
            await asyncio.sleep(self._delay * _COLD if cold else self._delay)
        if self._is_out_of_rope():
            return self._response(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "out of rope"})
        return self._response(HTTPStatus.OK, {"version": self._version, "goods": self._goods})

    def _is_out_of_rope(self) -> bool:
        # Every fourth answer, not each with a chance of a quarter: a dozen answers without any
        # error, which would let a bad version pass its first step, happen in one of thirty runs.
        before, self._orders = self._orders, self._orders + 1
        return int(self._orders * self._errors) > int(before * self._errors)

    def _response(self, status: HTTPStatus, content: object) -> bytes:
        body = json.dumps(content).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"X-Version: {self._version}\r\n"
            f"Connection: {'close' if self._closing else 'keep-alive'}\r\n\r\n"
        )
        return head.encode() + body


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="a tiny web shop to try a release on")
    parser.add_argument("--version", default="v1")
    parser.add_argument(
        "--errors", type=float, default=0.0, help="share of answers, evenly spread, 0 to 1"
    )
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--cold-seconds", type=float, default=0.0, help="slower, so long at first")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "0")))
    return parser.parse_args(words)


async def run(shop: Shop, port: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(shop.serve, "127.0.0.1", port, backlog=512)
    await stop.wait()
    server.close()
    await shop.close(seconds=5.0)


if __name__ == "__main__":
    chosen = parse()
    asyncio.run(run(Shop(chosen), chosen.port))
