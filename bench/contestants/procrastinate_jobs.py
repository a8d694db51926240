"""procrastinate: no-op jobs, all of them waiting when one worker begins."""

import time
from typing import Any

import procrastinate

from bench.contestants import job as jobs


async def run(job: jobs.Job) -> jobs.Measurements:
    connector = procrastinate.PsycopgConnector(conninfo=job.url, min_size=4, max_size=20)
    app = procrastinate.App(connector=connector)
    # Called, not written as a decorator: the type checker may not have procrastinate at hand.
    step: Any = app.task(name="step")(_step)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        # Filling the queue is not counted: the figure is what the worker gets done.
        waiting: list[Any] = [{"number": number} for number in range(job.workflows)]
        await step.batch_defer_async(*waiting)
        began = time.perf_counter()
        await app.run_worker_async(wait=False, concurrency=job.active, listen_notify=False)
        seconds = time.perf_counter() - began
    return {"per_second": job.workflows / seconds, "seconds": seconds}


async def _step(number: int) -> None:
    del number


if __name__ == "__main__":
    jobs.serve_async(run)
