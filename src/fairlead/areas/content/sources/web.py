"""Archives of a web server."""

import aiohttp

from fairlead import errors, values
from fairlead.areas.content.sources import limits

_PATIENCE = aiohttp.ClientTimeout(total=60, connect=10, sock_read=20)
_PIECE = 64 * 1024


async def fetch(where: str, version: str) -> bytes:
    try:
        # An answer that is shorter than it said it would be is an error of aiohttp's.
        async with aiohttp.ClientSession(timeout=_PATIENCE, auto_decompress=False) as session:
            return await _download(session, where, version)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise errors.Unavailable(
            values.redacted(
                f"the archive did not come: {where}: {str(error)[:200] or type(error).__name__}"
            ),
            hint="check its address and the network; a half-fetched one is never used",
        ) from error


async def _download(session: aiohttp.ClientSession, where: str, version: str) -> bytes:
    async with session.get(where) as answer:
        if answer.status in {404, 410}:
            raise limits.no_archive(where, version)
        if answer.status != 200:  # noqa: PLR2004 - HTTP's OK
            said = f"the archive did not come: {values.redacted(where)}: HTTP {answer.status}"
            raise errors.Unavailable(said, hint="check its address and the rights to read it")
        packed = bytearray()
        async for piece in answer.content.iter_chunked(_PIECE):
            packed += piece
            if len(packed) > limits.MOST_PACKED:
                raise limits.too_large(version)
        return bytes(packed)
