"""Many streams that wait for a timer: what the worker weighs, and how late they wake.

A stream is awake when its next effect reaches its handler, so a commit is part of lateness.
"""

import asyncio
import time
from pathlib import Path

from bench import walk
from bench.contestants import job as jobs
from fairlead.engine import messages, outbox, service

# Two steps: the timer brings the first, and the second is an effect that we can see.
_STEPS = 2
_AT_ONCE = 256


async def run(job: jobs.Job) -> jobs.Measurements:
    """Timers spread over `active` seconds."""
    load = _Waiting(job)
    handlers: outbox.Handlers = {walk.Step: outbox.Handler(load.wake)}
    engine = service.Engine(service.Parts(jobs.store(job), [walk.WALK], handlers))
    async with engine.running():
        empty = _resident_mb()
        await load.fall_asleep(engine)
        asleep = _resident_mb()
        await load.all_awake.wait()
    return {
        "empty_mb": empty,
        "waiting_mb": asleep,
        "late_p50_ms": jobs.percentile(load.late, 0.5),
        "late_p99_ms": jobs.percentile(load.late, 0.99),
    }


class _Waiting:
    def __init__(self, job: jobs.Job) -> None:
        self._job = job
        self._due: dict[str, int] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)
        self.late: list[float] = []
        self.all_awake = asyncio.Event()

    async def fall_asleep(self, engine: service.Engine) -> None:
        # Time enough to set them all before the first is due.
        first = int(time.time() * 1000) + 2000 + self._job.workflows // 2
        apart = self._job.active * 1000 / self._job.workflows
        async with asyncio.TaskGroup() as group:
            for number in range(self._job.workflows):
                group.create_task(self._set(engine, number, first + int(number * apart)))
        slack = first - int(time.time() * 1000)
        if slack < 0:
            raise RuntimeError(f"timers were set too slowly by: {-slack} ms")

    async def _set(self, engine: service.Engine, number: int, due: int) -> None:
        stream = messages.stream_name("walk", f"waiting-{number}")
        self._due[stream] = due
        async with self._room:
            start = walk.Start("bench", _STEPS, due)
            await engine.submit(stream, start, messages.command_id(f"start {number}"))

    async def wake(self, effect: walk.Step, context: outbox.EffectContext) -> walk.Arrive:
        self.late.append(time.time() * 1000 - self._due[context.stream])
        if len(self.late) == self._job.workflows:
            self.all_awake.set()
        return walk.Arrive(effect.step)


def _resident_mb() -> float:
    """What this process has in memory, as the kernel counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(kilobytes) / 1024


if __name__ == "__main__":
    jobs.serve_async(run)
