"""One PostgreSQL for all the processes of a test run, ended by whoever leaves last.

The first process that asks starts a keeper (this module run as a program), which starts the
server. Every user holds a shared lock on one file; the keeper waits for the exclusive lock
on it, which it gets when no user is left. The kernel drops the lock of a process that is
killed, so a crashed test worker leaves nothing behind, and there is no count to get wrong.
"""

import contextlib
import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fairlead.clients.postgres.server.running import Databases, PostgresServer
from fairlead.errors import FairleadError, Unavailable

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def shared_server(folder: Path) -> Iterator[Databases]:
    """The server of all who name the same folder; started by the first of them."""
    folder.mkdir(exist_ok=True)
    with (folder / "users.lock").open("a") as users:
        url, keeper = _join(folder, users)
        try:
            yield Databases(url)
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            if keeper is not None:
                # The one who started it sees it end, so that a finished run has ended all.
                keeper.wait()


def _join(folder: Path, users: IO[str]) -> tuple[str, subprocess.Popen[str] | None]:
    with (folder / "turn.lock").open("a") as turn:
        # One at a time: two that both find no server would both start one.
        fcntl.flock(turn, fcntl.LOCK_EX)
        # Waits while a keeper is leaving: it holds the lock until its server is gone.
        fcntl.flock(users, fcntl.LOCK_SH)
        address = folder / "address"
        if address.exists():
            return address.read_text(), None
        url, keeper = _start_keeper(folder)
        address.write_text(url)
        return url, keeper


def _start_keeper(folder: Path) -> tuple[str, subprocess.Popen[str]]:
    with (folder / "keeper.log").open("a") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C must not take the server from tests that clean up
        )
    assert keeper.stdout is not None
    with keeper.stdout as answer:
        line = answer.readline()
    said = json.loads(line) if line else {"error": "keeper ended without a word"}
    if "error" in said:
        keeper.wait()
        hint = said.get("hint", f"read {folder / 'keeper.log'}")
        raise Unavailable(f"no shared PostgreSQL: {said['error']}", hint=hint)
    return str(said["url"]), keeper


def main(folder: Path) -> int:
    """Keep a server until the last user of the folder has left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (folder / "users.lock").open("a") as users, PostgresServer() as server:
        print(json.dumps({"url": server.databases.admin_url}), flush=True)
        try:
            fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            (folder / "address").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except FairleadError as failure:
        print(json.dumps({"error": failure.message, "hint": failure.hint}), flush=True)
        sys.exit(1)
