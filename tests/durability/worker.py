"""A worker process that performs a story's effects until it is told to end, or killed.

    python -m tests.durability.worker DATABASE BOOK [--leg-seconds S] [--queue Q] [--stop-at N]
        [--far] [--next-program]

With --stop-at it stops itself (SIGSTOP) after the outside has done the Nth effect and before
the answer is handed in: the moment at which a lease that lapses hurts most.
"""

import argparse
import asyncio
import contextlib
import os
import signal
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
def worker(
    story_setup: story.StorySetup, log: Path, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker on a scene, gone when the block is left."""
    process = start(story_setup, log, options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def start(
    story_setup: story.StorySetup,
    log: Path,
    options: Sequence[str] = (),
    before: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """A command may stand before it, such as `env` with what it needs."""
    with log.open("a") as file:
        return subprocess.Popen(
            [
                *(*before, sys.executable, "-m", __name__),
                *(story_setup.database, str(story_setup.rollout)),
                f"--leg-seconds={story_setup.leg_seconds}",
                f"--lease-seconds={story_setup.lease_seconds}",
                f"--queue={story_setup.queue}",
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
        if self.database.startswith("postgresql://"):
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        # A process that is stopped in the middle of a transaction keeps the file locked for all,
        # and nobody can help that. Whoever waits for the lock in this process (the writer, the
        # lease) takes it in the moment we let go of it: so another process holds it meanwhile.
        stopper = [sys.executable, "-c", _STOPPER, self.database, str(os.getpid())]
        subprocess.run(stopper, check=True)


_STOPPER = """
import os, pathlib, signal, sqlite3, sys, time
database, pid = sys.argv[1], int(sys.argv[2])
connection = sqlite3.connect(database, timeout=30, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
os.kill(pid, signal.SIGSTOP)
threads = pathlib.Path(f"/proc/{pid}/task")
while any(each.read_text().rpartition(") ")[2][0] != "T" for each in threads.glob("*/stat")):
    time.sleep(0.001)
connection.close()
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("rollout", type=Path)
    parser.add_argument("--leg-seconds", type=float, default=0.0)
    parser.add_argument("--lease-seconds", type=float, default=story.LEASE.total_seconds())
    parser.add_argument("--queue", default="", help="serve this one, and nothing else")
    parser.add_argument("--stop-at", type=int, default=0)
    parser.add_argument("--next-program", action="store_true", help="a newer version of it")
    parser.add_argument("--far", action="store_true", help="hide from neighbours")
    asked = parser.parse_args()
    if asked.stop_at:
        StoppingOutside.left, StoppingOutside.database = asked.stop_at, asked.database
        outside.Outside = StoppingOutside  # type: ignore[misc]  # this process only
    if asked.far:
        leases.worker_name = lambda: f"elsewhere/{uuid.uuid4().hex}:{os.getpid()}"
    story_setup = story.StorySetup(
        asked.database,
        asked.rollout,
        leg_seconds=asked.leg_seconds,
        lease_seconds=asked.lease_seconds,
        queue=asked.queue,
        next_program=asked.next_program,
    )
    try:
        asyncio.run(_work(story_setup))
    except errors.FairleadError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the log of this process
        return error.exit_code
    return 0


async def _work(story_setup: story.StorySetup) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with story.engine(story_setup, story_setup.store()).running():
        await told.wait()


if __name__ == "__main__":
    sys.exit(main())
