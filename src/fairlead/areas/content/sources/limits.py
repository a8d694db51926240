"""What a version may be at most, so that nothing that is fetched fills memory or disk."""

import posixpath
from collections.abc import Iterable

from fairlead import errors, values

MOST_PACKED = 32 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024
MOST_FILES = 10_000
_LONGEST_PATH = 512


def collect(version: str, found: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """The files by their paths; Rejected where they are too many, too large or outside."""
    files: dict[str, bytes] = {}
    room = MOST_BYTES
    for path, data in found:
        check_path(version, path)
        if path in files:
            raise errors.Rejected(
                f"a file twice in version {version}: {path}", hint="build it anew"
            )
        room -= len(data)
        files[path] = data
        if room < 0 or len(files) > MOST_FILES:
            raise too_large(version)
    return files


def check_path(version: str, path: str) -> None:
    normal = posixpath.normpath(path)
    outside = normal.startswith(("/", "../")) or normal in {".", ".."} or "\\" in path
    if outside or normal != path or not path.isprintable() or len(path) > _LONGEST_PATH:
        raise errors.Rejected(
            f"a path out of its folder in version {version}: {path[:80]!r}",
            hint="use plain relative paths; do not trust where this came from",
        )


def too_large(version: str) -> errors.Rejected:
    return errors.Rejected(
        f"version {version} is too large: more than {MOST_BYTES} bytes or {MOST_FILES} files",
        hint="name the folder within it that is served, or serve less",
    )


def no_archive(where: str, version: str) -> errors.NotFound:
    return errors.NotFound(
        f"version not found: {version}: no archive {values.redacted(where)}",
        hint="check the version's name",
    )


def no_link(version: str, path: str) -> errors.Rejected:
    return errors.Rejected(
        f"not a plain file in version {version}: {path[:80]!r}",
        hint="a content has no links and no submodules; copy the file instead",
    )


def below(files: dict[str, bytes], folder: str) -> dict[str, bytes]:
    """What lies in that folder, by its path from there."""
    prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
    return {
        path.removeprefix(prefix): data for path, data in files.items() if path.startswith(prefix)
    }
