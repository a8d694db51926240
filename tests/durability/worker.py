"""A worker process that performs a story's effects until it is told to end, or killed.

    python -m tests.durability.worker DATABASE BOOK [--leg-seconds S] [--stop-at N] [--far]

With --stop-at it stops itself (SIGSTOP) after the outside has done the Nth effect and before
the answer is handed in: the moment at which a lease that lapses hurts most.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlead import errors
from fairlead.engine import leases
from tests.durability import outside, story

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def worker(scene: story.Scene, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker on a scene, gone when the block is left."""
    process = start(scene, log, options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def start(scene: story.Scene, log: Path, options: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    with log.open("a") as file:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", __name__, scene.database, str(scene.book)),
                f"--leg-seconds={scene.leg_seconds}",
                f"--lease-seconds={scene.lease_seconds}",
                *options,
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )


class StoppingOutside(outside.Outside):
    """Stops its own process once, right after the Nth request was taken."""

    left = 0
    database = ""

    def request(self, what: str, key: str, attempt: int) -> None:
        super().request(what, key, attempt)
        StoppingOutside.left -= 1
        if StoppingOutside.left == 0:
            self._stop()

    def _stop(self) -> None:
        if not self.database.startswith("postgresql://"):
            # A process that is stopped in the middle of a transaction keeps the file locked
            # for all, and nobody can help that: wait until our own writer is between two.
            with contextlib.closing(sqlite3.connect(self.database, timeout=30)) as connection:
                connection.execute("BEGIN IMMEDIATE")
        os.kill(os.getpid(), signal.SIGSTOP)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("book", type=Path)
    parser.add_argument("--leg-seconds", type=float, default=0.0)
    parser.add_argument("--lease-seconds", type=float, default=story.LEASE.total_seconds())
    parser.add_argument("--stop-at", type=int, default=0)
    parser.add_argument("--far", action="store_true", help="hide from neighbours")
    asked = parser.parse_args()
    if asked.stop_at:
        StoppingOutside.left, StoppingOutside.database = asked.stop_at, asked.database
        outside.Outside = StoppingOutside  # type: ignore[misc]  # this process only
    if asked.far:
        leases.worker_name = lambda: f"elsewhere/{uuid.uuid4().hex}:{os.getpid()}"
    scene = story.Scene(
        asked.database,
        asked.book,
        leg_seconds=asked.leg_seconds,
        lease_seconds=asked.lease_seconds,
    )
    try:
        asyncio.run(_work(scene))
    except errors.FairleadError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the log of this process
        return error.exit_code
    return 0


async def _work(scene: story.Scene) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with story.engine(scene, scene.store()).running():
        await told.wait()


if __name__ == "__main__":
    sys.exit(main())
