"""Archives in S3: `s3://BUCKET/KEY`, read as whoever this process is signed in as.

Region, endpoint and credentials are those of the environment, as with all of AWS's own tools.
"""

import asyncio
from urllib.parse import urlsplit

from fairlead import errors
from fairlead.areas.content.sources import limits
from fairlead.clients.aws import session

_PIECE = 1024 * 1024
_SECONDS = 60.0
_MISSING = {"NoSuchKey", "NoSuchBucket", "404"}


async def fetch(where: str, version: str) -> bytes:
    at = urlsplit(where)
    try:
        async with asyncio.timeout(_SECONDS):
            return await asyncio.to_thread(_get, at.netloc, at.path.lstrip("/"), version)
    except TimeoutError as error:
        said = f"the archive did not come within {_SECONDS:g} s: {where}"
        raise errors.Unavailable(said, hint="check the network") from error
    except errors.Rejected as error:
        if session.client_code(error) in _MISSING:
            raise limits.no_archive(where, version) from error
        raise


def _get(bucket: str, key: str, version: str) -> bytes:
    client = session.Aws().client("s3", session.Account(region=""))
    packed = bytearray()
    # One that is shorter than it said is an error of botocore's, at its end.
    with session.translated():
        body = client.get_object(Bucket=bucket, Key=key)["Body"]
        while piece := body.read(_PIECE):
            packed += piece
            if len(packed) > limits.MOST_PACKED:
                raise limits.too_large(version)
    return bytes(packed)
