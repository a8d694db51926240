"""DBOS: workflows of no-op steps, as many at once as its threads take, in one process."""

import time

from dbos import DBOS

from bench.contestants import job as jobs


def run(job: jobs.Job) -> jobs.Figures:
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
    handles = [DBOS.start_workflow(_workflow, steps) for _ in range(count)]
    for handle in handles:
        handle.get_result()


@DBOS.step()
def _step(number: int) -> int:
    return number


@DBOS.workflow()
def _workflow(steps: int) -> int:
    return sum(_step(number) for number in range(steps))


if __name__ == "__main__":
    jobs.serve(run)
