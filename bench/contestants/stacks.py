"""Stacks with deployments in their queues, on an adapter that answers everything at once."""

import asyncio

from bench.contestants import job as jobs
from bench.contestants.ours import Moment
from fairlead.engine.clock import SystemClock
from tests.unit.areas.deployments import test_core_scale as load
from tests.unit.areas.deployments.recorded import RecordedPlatform
from tests.unit.areas.deployments.test_core import built

_LOOK_SECONDS = 0.25


async def run(job: jobs.Job) -> jobs.Measurements:
    """As many stacks as workflows, each with as many deployments as steps."""
    platform = RecordedPlatform(exists=True, slow=False)
    async with built(jobs.store(job), SystemClock(), platform).running() as engine:
        before, events = Moment(engine), engine.counts.events
        await load.request_all(engine, job.workflows, job.steps)
        while await load.at_rest(engine, job.workflows) < job.workflows:  # noqa: ASYNC110 - no event tells the last one
            # To ask at every commit would be most of the work.
            await asyncio.sleep(_LOOK_SECONDS)
        transitions = engine.counts.events - events
        return before.measurements(engine, job.workflows * job.steps, transitions)


if __name__ == "__main__":
    jobs.serve_async(run)
