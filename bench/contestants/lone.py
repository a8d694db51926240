"""One stream, one transition after another, through the whole engine.

Shape "submit" times submit to commit: the five statements of the raw loop. Shape "turn" is
longer: from an effect to its answer's commit and on to the next effect.
"""

import asyncio
import itertools
import time

from bench import walk
from bench.contestants import job as jobs
from fairlead.engine import messages, outbox, service

_WARM = 50
_STREAM = messages.stream_name("walk", "lone")


async def run(job: jobs.Job) -> jobs.Measurements:
    took = await (_turns(job) if job.shape == "turn" else _submits(job))
    took = took[_WARM:]
    return {
        "p50_ms": jobs.percentile(took, 0.5) * 1000,
        "p99_ms": jobs.percentile(took, 0.99) * 1000,
    }


async def _submits(job: jobs.Job) -> list[float]:
    count = job.workflows + _WARM
    # Nobody performs the effects here: they are written and left, as in the raw loop.
    engine = service.Engine(service.Parts(jobs.store(job), [walk.WALK]), perform=False)
    took: list[float] = []
    async with engine.running():
        await engine.submit(_STREAM, walk.Start("bench", count + 1), messages.command_id("go"))
        for step in range(1, count + 1):
            command = messages.command_id(f"{_STREAM} {step}")
            began = time.perf_counter()
            await engine.submit(_STREAM, walk.Arrive(step), command)
            took.append(time.perf_counter() - began)
    return took


async def _turns(job: jobs.Job) -> list[float]:
    count = job.workflows + _WARM
    moments: list[float] = []
    over = asyncio.Event()

    async def step(effect: walk.Step, _: outbox.EffectContext) -> walk.Arrive:
        moments.append(time.perf_counter())
        if effect.step == count:
            over.set()
        return walk.Arrive(effect.step)

    handlers: outbox.Handlers = {walk.Step: outbox.Handler(step)}
    engine = service.Engine(service.Parts(jobs.store(job), [walk.WALK], handlers))
    async with engine.running():
        await engine.submit(_STREAM, walk.Start("bench", count), messages.command_id("go"))
        await over.wait()
    return [later - sooner for sooner, later in itertools.pairwise(moments)]


if __name__ == "__main__":
    jobs.serve_async(run)
