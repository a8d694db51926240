"""DBOS: workflows of no-op steps, as many at once as its threads take, in one process."""

import time
from typing import Any

from dbos import DBOS

from bench.contestants import job as jobs


def run(job: jobs.Job) -> jobs.Measurements:
    url = job.url if job.on_postgres else f"sqlite:///{job.url}"
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "max_executor_threads": job.active,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    try:
        _finish(2, job.steps)
        began = time.perf_counter()
        _finish(job.workflows, job.steps)
        seconds = time.perf_counter() - began
    finally:
        DBOS.destroy()
    return {"per_second": job.workflows * job.steps / seconds, "seconds": seconds}


def _finish(count: int, steps: int) -> None:
    handles = [DBOS.start_workflow(_durable_workflow, steps) for _ in range(count)]
    for handle in handles:
        handle.get_result()


def _step(number: int) -> int:
    return number


def _workflow(steps: int) -> int:
    return sum(_durable_step(number) for number in range(steps))


# Called, not written as decorators: the type checker may not have DBOS at hand.
_durable_step: Any = DBOS.step()(_step)
_durable_workflow: Any = DBOS.workflow()(_workflow)


if __name__ == "__main__":
    jobs.serve(run)
