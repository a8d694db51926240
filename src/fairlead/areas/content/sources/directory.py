"""Versions as folders beside each other."""

import os
from collections.abc import Iterator
from pathlib import Path

from fairlead import errors
from fairlead.areas.content.sources import limits


def read(root: Path, version: str) -> dict[str, bytes]:
    """All files of the folder that is called like the version."""
    folder = root / version
    if not folder.is_dir():
        raise errors.NotFound(
            f"version not found: {version}: no folder {folder}", hint="check the version's name"
        )
    try:
        return limits.collect(version, _walk(folder, version))
    except OSError as error:
        said = f"cannot read version {version}: {error.filename}: {error.strerror}"
        raise errors.Unavailable(said, hint="check the rights of the folder") from error


def _walk(folder: Path, version: str) -> Iterator[tuple[str, bytes]]:
    room = limits.MOST_BYTES
    for at, folders, names in os.walk(folder):
        for each in sorted((*folders, *names)):
            path = Path(at, each)
            shown = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise limits.no_link(version, shown)
            if path.is_file():
                # Before it is read: a hole of a terabyte takes no room on the disk.
                room -= path.stat().st_size
                if room < 0:
                    raise limits.too_large(version)
                yield shown, path.read_bytes()
