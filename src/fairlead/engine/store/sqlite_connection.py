"""A connection to a SQLite file: made for its owner's eyes, and set up beside others that start."""

import contextlib
import os
import sqlite3
import stat
import time
from pathlib import Path

from fairlead import errors

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    # FULL, not NORMAL: a commit that returned must survive a power cut.
    "PRAGMA synchronous = FULL",
    # 4 MB for each connection, of which a worker has six. More would keep pages that the system
    # keeps anyway, and reading one from there takes a few microseconds.
    "PRAGMA cache_size = -4096",
    # A checkpoint copies pages back and syncs twice; every 16 MB is rare enough.
    "PRAGMA wal_autocheckpoint = 4000",
)
_OPENING = 1.0
"""Seconds that opening the file may take, also where its statements have less."""

_PAUSE = 0.0005


def connect(path: Path, patience: float) -> sqlite3.Connection:
    try:
        _keep_private(path)
        connection = sqlite3.connect(
            path,
            patience,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            _set_up(connection, time.monotonic() + max(patience, _OPENING))
        except sqlite3.Error:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise errors.Unavailable(
            f"cannot open the database: {path}: {error}",
            hint="check the folder's rights, or set FAIRLEAD_DATABASE_URL to another place",
        ) from error
    return connection


def _set_up(connection: sqlite3.Connection, deadline: float) -> None:
    while True:
        try:
            for pragma in PRAGMAS:
                connection.execute(pragma)
        except sqlite3.OperationalError as error:
            # Whoever gives a new file its log waits for nobody, unlike a statement: two programs
            # that start together would meet here.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _keep_private(path: Path) -> None:
    """Only we read what is kept; SQLite gives its log and its index the file's own rights."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError, PermissionError):
        # Made and not opened: to close a file takes away the locks of the whole process on it.
        os.mknod(path, 0o600)
    # Not the folder, where it was there before: it may be somebody's home.
    for name in ("", "-wal", "-shm"):
        _tighten(Path(f"{path}{name}"))


def _tighten(path: Path) -> None:
    """Take a file of ours from the eyes of others, where it is there."""
    with contextlib.suppress(OSError):
        found = path.stat()
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and found.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(found.st_mode) & ~(stat.S_IRWXG | stat.S_IRWXO))
