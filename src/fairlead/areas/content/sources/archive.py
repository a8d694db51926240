"""Versions as archives, of a web server, S3 or this machine: unpacked in memory, within limits."""

import asyncio
import io
import lzma
import tarfile
import types
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from fairlead import errors, loading
from fairlead.areas.content.sources import limits

_HERE = "fairlead.areas.content.sources"
_ELSEWHERE = {
    "http": f"{_HERE}.web:fetch",
    "https": f"{_HERE}.web:fetch",
    "s3": f"{_HERE}.s3:fetch",
}
_BLOCK = 512
_GZIP = 31
_MOST_MEMORY = 256 * 1024 * 1024
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, RuntimeError, NotImplementedError, ValueError),
)


async def fetch(where: str, version: str) -> bytes:
    """The packed bytes, whole; NotFound where there is no such archive."""
    scheme, remote, _ = where.partition("://")
    if not remote:
        return await asyncio.to_thread(_local, where, version)
    if scheme not in _ELSEWHERE:
        raise errors.Rejected(
            f"not an archive that can be fetched: {scheme[:20]}://",
            hint="use a path, https:// or s3://",
        )
    # Late: each brings a client that a service of another source never needs.
    fetched: bytes = await loading.load(_ELSEWHERE[scheme], types.FunctionType)(where, version)
    return fetched


def _local(where: str, version: str) -> bytes:
    path = Path(where).expanduser()
    try:
        if path.stat().st_size > limits.MOST_PACKED:
            raise limits.too_large(version)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise limits.no_archive(str(path), version) from error
    except OSError as error:
        said = f"cannot read the archive: {path}: {error.strerror}"
        raise errors.Unavailable(said, hint="check its rights") from error


def unpack(packed: bytes, version: str) -> dict[str, bytes]:
    """The files within; nothing of it ever touches the disk."""
    try:
        found = _zipped if zipfile.is_zipfile(io.BytesIO(packed)) else _tarred
        return limits.collect(version, found(packed, version))
    except _BROKEN as error:
        raise errors.Rejected(
            f"the archive of version {version} is damaged: {str(error)[:200]}",
            hint="build it anew: .tar.gz, .tar.xz, .tar or .zip",
        ) from error


def _plain(packed: bytes, version: str) -> bytes:
    """The tar itself; half a stream is an error, which tarfile would take for its end."""
    most = limits.MOST_BYTES + limits.MOST_FILES * 2 * _BLOCK + 1
    if packed.startswith(b"\x1f\x8b"):
        gzip = zlib.decompressobj(_GZIP)
        plain, whole, rest = gzip.decompress(packed, most), gzip.eof, gzip.unused_data
    elif packed.startswith(b"\xfd7zXZ\0"):
        xz = lzma.LZMADecompressor(memlimit=_MOST_MEMORY)
        plain, whole, rest = xz.decompress(packed, most), xz.eof, xz.unused_data
    else:
        return packed
    if len(plain) >= most:
        raise limits.too_large(version)
    if not whole or rest:
        raise EOFError("its end is missing, or something stands behind it")
    return plain


def _tarred(packed: bytes, version: str) -> Iterator[tuple[str, bytes]]:
    room = limits.MOST_BYTES
    plain = _plain(packed, version)
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as opened:
        for entry in opened:
            path = entry.name.removeprefix("./")
            if entry.isdir():
                continue
            if not entry.isreg():
                raise limits.no_link(version, path)
            # What an entry says of its size is checked before a byte of it is unpacked.
            room -= entry.size
            file = opened.extractfile(entry)
            if room < 0 or file is None:
                raise limits.too_large(version)
            yield path, file.read()
        if plain[opened.offset : opened.offset + _BLOCK] != bytes(_BLOCK):
            raise EOFError("its end is missing")


def _zipped(packed: bytes, version: str) -> Iterator[tuple[str, bytes]]:
    room = limits.MOST_BYTES
    with zipfile.ZipFile(io.BytesIO(packed)) as opened:
        for entry in opened.infolist():
            if entry.is_dir():
                continue
            kind = entry.external_attr >> 28
            if kind not in {0, 0o10}:
                raise limits.no_link(version, entry.filename)
            with opened.open(entry) as file:
                # A zip may lie about sizes: read one byte more than there is room for.
                data = file.read(room + 1)
            room -= len(data)
            if room < 0:
                raise limits.too_large(version)
            yield entry.filename, data
