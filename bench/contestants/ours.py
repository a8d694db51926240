"""Our engine under load: 256 walks at a time, or one depot with 256 trips on the road."""

import asyncio
import resource
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from bench import walk
from bench.contestants import job as jobs
from fairlead._sample import depot, trip
from fairlead._sample import messages as words
from fairlead.engine import machine, messages, outbox, service


async def run(job: jobs.Job) -> jobs.Figures:
    """Steps and transitions a second, after a short warm-up."""
    loads: dict[str, Callable[[jobs.Job], Coroutine[Any, Any, jobs.Figures]]] = {
        "": _walks,
        "depot": _depot,
    }
    return await loads[job.shape](job)


async def _walks(job: jobs.Job) -> jobs.Figures:
    """Walks with nobody between them: a new one sets out as another takes its last step."""
    load = _Walks(job)
    handlers: outbox.Handlers = {walk.Step: outbox.Handler(load.step)}
    engine = service.Engine(service.Parts(jobs.store(job), [walk.WALK], handlers))
    async with engine.running():
        await load.all_home(engine, min(job.active, job.workflows), f"warm-{job.name}")
        jobs.pass_gate(job)
        before = _Moment(engine)
        await load.all_home(engine, job.workflows, job.name)
        return before.figures(engine, job.workflows * job.steps, job.workflows * (job.steps + 1))


class _Walks:
    def __init__(self, job: jobs.Job) -> None:
        self._job = job
        self._waiting: Iterator[str] = iter(())
        self._tasks: set[asyncio.Task[None]] = set()
        self._engine: service.Engine | None = None

    async def all_home(self, engine: service.Engine, count: int, name: str) -> None:
        self._engine = engine
        self._waiting = iter([f"{name}-{number}" for number in range(count)])
        target = engine.counts.events + count * (self._job.steps + 1)
        with engine.watch() as signal:
            for _ in range(self._job.active):
                self._next()
            while engine.counts.events < target:
                await signal.wait()
                signal.clear()

    async def step(self, effect: walk.Step, _: outbox.Context) -> walk.Arrive:
        if effect.step == self._job.steps:
            self._next()
        return walk.Arrive(effect.step)

    def _next(self) -> None:
        key = next(self._waiting, None)
        if key is not None:
            task = asyncio.get_running_loop().create_task(self._start(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _start(self, key: str) -> None:
        assert self._engine is not None
        stream = messages.stream_name("walk", key)
        start = walk.Start("bench", self._job.steps)
        await self._engine.submit(stream, start, messages.command_id(f"start {key}"))


async def _depot(job: jobs.Job) -> jobs.Figures:
    """The sample machines: all trips report to one hot parent."""
    handlers: outbox.Handlers = {words.DriveLeg: outbox.Handler(_drive)}
    players: list[machine.AnyMachine] = [depot.DEPOT, trip.TRIP]
    engine = service.Engine(service.Parts(jobs.store(job), players, handlers))
    async with engine.running():
        await _order(engine, job, "warm", min(job.active, job.workflows))
        before = _Moment(engine)
        await _order(engine, job, job.name, job.workflows)
        return before.figures(engine, job.workflows * job.steps, job.workflows * (job.steps + 2))


async def _order(engine: service.Engine, job: jobs.Job, name: str, trips: int) -> None:
    # Ordered, then Sent and Returned for each trip, Closed; and each trip's own events.
    target = engine.counts.events + 2 + trips * 2 + trips * (job.steps + 2)
    order = words.Order(name, trips, job.steps, job.active)
    with engine.watch() as signal:
        await engine.submit(
            messages.stream_name("depot", name), order, messages.command_id(f"order {name}")
        )
        while engine.counts.events < target:
            await signal.wait()
            signal.clear()


async def _drive(effect: words.DriveLeg, _: outbox.Context) -> words.Arrive:
    return words.Arrive(effect.leg)


class _Moment:
    """Where clocks and counters stood when the load began."""

    def __init__(self, engine: service.Engine) -> None:
        self._commits = engine.counts.commits
        self._cpu = _cpu_seconds()
        self._at = time.perf_counter()

    def figures(self, engine: service.Engine, steps: int, transitions: int) -> jobs.Figures:
        seconds = time.perf_counter() - self._at
        commits = engine.counts.commits - self._commits
        return {
            "steps_per_second": steps / seconds,
            "per_second": transitions / seconds,
            "seconds": seconds,
            "ended_at": time.time(),
            "cpu_seconds": _cpu_seconds() - self._cpu,
            "cpu_microseconds": (_cpu_seconds() - self._cpu) / transitions * 1e6,
            "per_commit": transitions / max(1, commits),
        }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    jobs.serve_async(run)
