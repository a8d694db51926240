"""What lies between a server and all others: forwards connections until it is stopped.

Run as `python link.py LISTEN:TARGET…`, ports of loopback. A process of its own, so that SIGSTOP
cuts the network off and SIGCONT mends it: connections stay open and nothing comes through, as
when packets are dropped. Standard library only, and no import of ours: it starts fast.
"""

import asyncio
import contextlib
import sys

_CHUNK = 65536
_HOST = "127.0.0.1"


async def main(arguments: list[str]) -> None:
    servers = []
    for each in arguments:
        listen, target = map(int, each.split(":"))
        servers.append(await asyncio.start_server(_Forward(target).carry, _HOST, listen))
    await asyncio.gather(*(server.serve_forever() for server in servers))


class _Forward:
    """One port's way to another."""

    def __init__(self, target: int) -> None:
        self._target = target

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            theirs = await asyncio.open_connection(_HOST, self._target)
        except OSError:
            writer.transport.abort()  # refused there, so refused here
            return
        await asyncio.gather(_copy(reader, theirs[1]), _copy(theirs[0], writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
