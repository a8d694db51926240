"""Our engine under load: 256 walks at a time, or one depot with 256 trips on the road.

The shape `found` walks with an attribute that changes with every step, `withdrawn` with an
effect at every step that the next one withdraws; `cancelled` cancels families of 256 trips.
"""

import asyncio
import resource
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from bench import walk
from bench.contestants import job as jobs
from fairlead.engine import machine, messages, outbox, service
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample import messages as words


async def run(job: jobs.Job) -> jobs.Measurements:
    """Steps and transitions a second, after a short warm-up."""
    loads: dict[str, Callable[[jobs.Job], Coroutine[Any, Any, jobs.Measurements]]] = {
        "": _walks,
        "found": _walks,
        "withdrawn": _walks,
        "depot": _depot,
        "cancelled": _cancelled,
    }
    return await loads[job.shape](job)


async def _walks(job: jobs.Job) -> jobs.Measurements:
    """Walks with nobody between them: a new one sets out as another takes its last step."""
    load = _Walks(job)
    handlers: dict[type, outbox.Handler] = {walk.Step: outbox.Handler(load.step)}
    walked = {"found": walk.FOUND, "withdrawn": walk.WITHDRAWN}.get(job.shape, walk.WALK)
    if walked is walk.WITHDRAWN:
        handlers[walk.Spare] = outbox.Handler(_never)
    engine = service.Engine(service.Parts(jobs.store(job), [walked], handlers))
    async with engine.running():
        await load.all_home(engine, min(job.active, job.workflows), f"warm-{job.name}")
        jobs.pass_gate(job)
        before = Moment(engine)
        await load.all_home(engine, job.workflows, job.name)
        return before.measurements(
            engine, job.workflows * job.steps, job.workflows * (job.steps + 1)
        )


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

    async def step(self, effect: walk.Step, _: outbox.EffectContext) -> walk.Arrive:
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


async def _depot(job: jobs.Job) -> jobs.Measurements:
    """The sample machines: all trips report to one hot parent."""
    handlers: outbox.Handlers = {words.DriveLeg: outbox.Handler(_drive)}
    installation: list[machine.AnyMachine] = [depot.DEPOT, trip.TRIP]
    engine = service.Engine(service.Parts(jobs.store(job), installation, handlers))
    async with engine.running():
        await _order(engine, job, "warm", min(job.active, job.workflows))
        before = Moment(engine)
        await _order(engine, job, job.name, job.workflows)
        return before.measurements(
            engine, job.workflows * job.steps, job.workflows * (job.steps + 2)
        )


async def _cancelled(job: jobs.Job) -> jobs.Measurements:
    """Families that are on the road, each cancelled in one transaction down to its last trip."""
    released = asyncio.Event()

    async def drive(effect: words.DriveLeg, _: outbox.EffectContext) -> words.Arrive:
        await released.wait()
        return words.Arrive(effect.leg)

    handlers: outbox.Handlers = {words.DriveLeg: outbox.Handler(drive)}
    engine = service.Engine(service.Parts(jobs.store(job), [depot.DEPOT, trip.TRIP], handlers))
    async with engine.running():
        families = [f"{job.name}-{n}" for n in range(max(1, job.workflows // job.active))]
        for name in families:
            order = words.Order(name, job.active, job.steps, job.active)
            await _tell(engine, name, order)
        before, events = Moment(engine), engine.counts.events
        for name in families:
            await _tell(engine, name, messages.Cancel("over"))
        # Cancelled, Stopped and Returned for each trip, Closed.
        transitions = engine.counts.events - events
        assert transitions >= len(families) * (2 * job.active + 2), transitions
        measured = before.measurements(engine, transitions, transitions)
        released.set()
    return measured


async def _tell(engine: service.Engine, name: str, command: object) -> None:
    id_ = messages.command_id(f"{type(command).__name__} {name}")
    await engine.submit(messages.stream_name("depot", name), command, id_)


async def _never(_: walk.Spare, __: outbox.EffectContext) -> walk.Arrive:
    raise AssertionError("performed although it was withdrawn")


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


async def _drive(effect: words.DriveLeg, _: outbox.EffectContext) -> words.Arrive:
    return words.Arrive(effect.leg)


class Moment:
    """Where clocks and counters stood when the load began."""

    def __init__(self, engine: service.Engine) -> None:
        self._commits = engine.counts.commits
        self._cpu = _cpu_seconds()
        self._at = time.perf_counter()

    def measurements(
        self, engine: service.Engine, steps: int, transitions: int
    ) -> jobs.Measurements:
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
