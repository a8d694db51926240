"""Programs out of Debian's packages: fetched and only unpacked, which needs no rights."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fairlead import errors

_FETCH_SECONDS = 300.0


def unpacked(packages: Sequence[str], hint: str) -> Path:
    """The folder that stands for `/`; Unavailable, with a reason to show, where it cannot be had.

    The first package names the folder, the others are what it needs beside itself.
    """
    place = _cache_folder() / packages[0]
    root = place / "package"
    if not root.exists():
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("ab") as lock:
            # Several workers of one run look for it at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not root.exists():
                _fetch(packages, place, hint)
    return root


def _cache_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("FAIRLEAD_CACHE") or home / "fairlead")


def _fetch(packages: Sequence[str], place: Path, hint: str) -> None:
    name = packages[0]
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise errors.Unavailable(f"no {name}, and no Debian to take it from", hint=hint)
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        folder = Path(scratch)
        download = ["apt-get", "download", *packages]
        if not _succeeds(download, folder):
            # The lists of packages may be missing; only root can get them.
            _succeeds(["apt-get", "update"], folder)
            if not _succeeds(download, folder):
                raise errors.Unavailable(f"no {name}, and its package was not found", hint=hint)
        root = folder / "package"
        for package in sorted(folder.glob("*.deb")):
            if not _succeeds(["dpkg", "-x", str(package), str(root)], folder):
                raise errors.Unavailable(f"package cannot be unpacked: {package.name}", hint=hint)
        root.rename(place / "package")


def _succeeds(command: Sequence[str], folder: Path) -> bool:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, check=False, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
