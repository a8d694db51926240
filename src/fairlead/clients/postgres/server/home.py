"""The temporary folder of one PostgreSQL server: data, socket and log, removed at the end.

The folder belongs to us; only `data` and `socket` belong to the id that runs the server, so
the log and the owner's lock cannot be swapped under us.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fairlead.clients.postgres.server.identity import Identity, may_write, temporary_places
from fairlead.errors import Unavailable

PREFIX = "fairlead-pg-"
LOCK = "owner.lock"
# A home is made before it is locked; one this young may be about to be.
ABANDONED_AFTER_SECONDS = 60.0
# What Linux holds for a socket's path, less the closing zero.
LONGEST_SOCKET_PATH = 107


class Home:
    """One server's folder, locked for as long as its owner lives."""

    def __init__(self, folder: Path, identity: Identity | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.socket = folder / "socket"
        self.log = folder / "server.log"
        # The kernel lets go of it when the owner dies in any way: see _sweep.
        self._lock = (folder / LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        for part in (self.data, self.socket):
            part.mkdir(mode=0o700)
            if identity:
                os.chown(part, identity.uid, identity.gid)
        if identity:
            folder.chmod(0o711)  # enter, not list

    def remove(self) -> None:
        # A last server process may still be unlinking its own files.
        for _ in range(10):
            with contextlib.suppress(OSError):
                shutil.rmtree(self.folder)
            if not self.folder.exists():
                break
            time.sleep(0.05)
        self._lock.close()


def make_home(identity: Identity | None, places: Sequence[Path] | None = None) -> Home:
    """In the first place that the id can write to and whose socket path is short enough."""
    tried = temporary_places() if places is None else tuple(places)
    for place in tried:
        with contextlib.suppress(OSError):
            _sweep(place)
            home = _furnished(Path(tempfile.mkdtemp(prefix=PREFIX, dir=place)), identity)
            socket = os.fsencode(home.socket / ".s.PGSQL.65535")
            if len(socket) <= LONGEST_SOCKET_PATH and may_write(identity, home.data):
                return home
            home.remove()
    raise Unavailable(
        f"no place for PostgreSQL's data: {[*map(str, tried)]}",
        hint="set TMPDIR to a folder with a short path that all may enter",
    )


def _furnished(folder: Path, identity: Identity | None) -> Home:
    try:
        return Home(folder, identity)
    except OSError:  # a full disk, or a root that may not give folders away
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _sweep(place: Path) -> None:
    """Remove homes of ours whose owner was killed before it could."""
    for folder in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                continue
            if time.time() - found.st_mtime < ABANDONED_AFTER_SECONDS:
                continue
            with (folder / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
