"""Worker processes as the story sees them: started, killed, stopped, never left behind."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from fairlead.cli.demo import untold

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Worker:
    """One process at work."""

    process: asyncio.subprocess.Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def check(self) -> None:
        """Only we may end it; a worker that ends by itself is not the story."""
        if self.process.returncode is not None:
            raise self.ended()

    def ended(self) -> untold.Untold:
        said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = said[-1] if said else "it said nothing"
        return untold.Untold(f"worker {self.pid} ended by itself: {last[:300]}")

    async def kill(self) -> int:
        """What a crash is: no goodbye, no cleaning up. How the process ended."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        return await self.process.wait()

    async def stop(self) -> None:
        if self.process.returncode is not None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self.process.wait()
        except TimeoutError:
            await self.kill()


@contextlib.asynccontextmanager
async def hired(folder: Path, number: int) -> AsyncIterator[Worker]:
    """A worker that is at work; gone when the block is left, whatever happened."""
    log = folder / f"worker-{number}.log"
    with log.open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairlead.cli.demo.worker", str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=err,
            # Ctrl-C is for the demo alone; it ends its workers itself.
            start_new_session=True,
        )
    worker = Worker(process, log)
    try:
        await _ready(worker)
        yield worker
    except asyncio.CancelledError:
        await worker.kill()
        raise
    finally:
        await worker.stop()


async def _ready(worker: Worker) -> None:
    assert worker.process.stdout is not None
    try:
        async with asyncio.timeout(_START_SECONDS):
            said = await worker.process.stdout.readline()
    except TimeoutError as error:
        raise untold.Untold(f"worker {worker.pid} did not get to work in time") from error
    if not said:
        await worker.process.wait()
        raise worker.ended()
