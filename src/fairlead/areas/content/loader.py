"""A version from where it is kept to what may be served: fetched, verified, checked, in that order.

source ──► pin (commit, sum) ──► signature ──► schema, map, version ──► edition
Whatever is wrong on the way is an error; nothing is served in part.
"""

import asyncio
import hashlib
import hmac
import types
from dataclasses import dataclass
from pathlib import Path

from fairlead import errors, loading
from fairlead.areas.content import signatures
from fairlead.areas.content.description import Description, Pin, check_version
from fairlead.areas.content.domain import edition as editions
from fairlead.areas.content.domain.edition import Edition
from fairlead.areas.content.sources import archive, directory, limits

_GIT = "fairlead.areas.content.sources.git:read"
_RESOLVE = "fairlead.clients.git:resolve"
_RESOLVE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """A version, and what it turned out to be."""

    edition: Edition
    sha256: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class _Fetched:
    files: dict[str, bytes]
    sha256: str
    commit: str = ""


async def commit(content: Description, version: str) -> str:
    """What the tag of a version names now; empty where it cannot be told from here.

    Pods may reach a repository that the control plane does not, and a tag may still be to come.
    """
    if not content.source.git:
        return ""
    ref = f"refs/tags/{content.source.tag.replace('{version}', version)}"
    resolve = loading.load(_RESOLVE, types.FunctionType)
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found: str = await asyncio.to_thread(resolve, content.source.git, ref)
    except (errors.Unavailable, errors.NotFound, TimeoutError):
        return ""
    _check_commit(content.pins.get(version, Pin()), found, version)
    return found


async def load(content: Description, version: str) -> Loaded:
    check_version(version)
    fetched = await _fetch(content, version)
    _check_pin(content.pins.get(version, Pin()), fetched, version)
    files = limits.below(fetched.files, content.source.path)
    key = content.key
    if key is not None and not content.source.archive:
        signatures.verify_files(key, files, version)
    made = await asyncio.to_thread(editions.load, version, files, content.layouts)
    return Loaded(made, fetched.sha256, fetched.commit)


async def _fetch(content: Description, version: str) -> _Fetched:
    source = content.source
    if source.directory:
        files = await asyncio.to_thread(directory.read, Path(source.directory), version)
        return _Fetched(files, signatures.digest(files))
    if source.git:
        tag = source.tag.replace("{version}", version)
        # Late: nothing else needs git.
        read = loading.load(_GIT, types.FunctionType)
        commit, files = await asyncio.to_thread(read, source.git, tag, version)
        return _Fetched(files, signatures.digest(files), commit)
    where = source.archive.replace("{version}", version)
    packed = await archive.fetch(where, version)
    key = content.key
    if key is not None:
        # Before it is unpacked: who did not sign it shall not reach the reader of archives.
        signature = await archive.fetch(f"{where}{key.suffix}", version)
        key.verify(packed, signature, where)
    sum_ = hashlib.sha256(packed).hexdigest()
    _check_pin(content.pins.get(version, Pin()), _Fetched({}, sum_), version)
    return _Fetched(await asyncio.to_thread(archive.unpack, packed, version), sum_)


def _check_pin(pin: Pin, fetched: _Fetched, version: str) -> None:
    _check_commit(pin, fetched.commit, version)
    if pin.sha256 and not hmac.compare_digest(pin.sha256.lower(), fetched.sha256):
        raise errors.Conflict(
            f"version {version} is not what was approved: its sum is {fetched.sha256}",
            hint="release a new version, or have this one approved",
        )


def _check_commit(pin: Pin, commit: str, version: str) -> None:
    if pin.commit and not hmac.compare_digest(pin.commit.lower(), commit):
        raise errors.Conflict(
            f"the tag of version {version} was moved: approved was commit {pin.commit[:12]},"
            f" now it is {commit[:12] or 'no commit'}",
            hint="tag a new version, or have this commit approved",
        )
