"""One version of a program on a store, as a process: machines, handlers and the schema it knows.

Version 2 has a migration of its own, which only adds; it applies it when it starts. Processes
come from multiprocessing's fork server, as in actor.py: a test replaces a dozen of them.
"""

import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from fairlead.engine import machine, outbox, service
from fairlead.engine.store import migrations
from tests.durability import outside, parcel_v1, parcel_v2, story

MACHINES: dict[int, machine.AnyMachine] = {1: parcel_v1.PARCEL, 2: parcel_v2.PARCEL}
OURS = migrations.load("sqlite")[-1].name
EXPANSION = migrations.Migration(
    "9001_colours",
    f"-- compatible with: {OURS[:4]}\nALTER TABLE streams ADD COLUMN colour text DEFAULT 'red';",
)
LEASE = timedelta(seconds=2)
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.durability.actor", "tests.durability.program"])


@dataclass(frozen=True, slots=True)
class Program:
    """A version, and where it runs."""

    version: int
    place: story.StorySetup

    def engine(self, *, perform: bool = True) -> service.Engine:
        world = outside.Outside(self.place.rollout)

        async def carry(
            effect: parcel_v1.Move | parcel_v2.Fly, context: outbox.EffectContext
        ) -> parcel_v1.Arrive:
            await asyncio.sleep(random.uniform(0, 0.1))
            what = f"{context.stream} stop {effect.stop}"
            world.request(what, context.idempotency_key, context.attempt)
            return parcel_v1.Arrive(effect.stop)

        known: outbox.Handlers = {
            parcel_v1.Move: outbox.Handler(carry),
            **({parcel_v2.Fly: outbox.Handler(carry)} if self.version > 1 else {}),
        }
        tuning = service.Tuning(lease=LEASE, poll=story.POLL, drain=timedelta(seconds=1))
        parts = service.Parts(self.place.store(), (MACHINES[self.version],), known, tuning=tuning)
        return service.Engine(parts, perform=perform)

    @contextlib.contextmanager
    def process(self, log: Path) -> Iterator[multiprocessing.process.BaseProcess]:
        process = _CONTEXT.Process(target=_run, args=(self, log))
        process.start()
        try:
            yield process
        finally:
            process.kill()
            process.join()


def _run(program: Program, log: Path) -> None:
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if program.version > 1:
        known = {dialect: migrations.load(dialect) for dialect in ("sqlite", "postgres")}
        migrations.load = lambda dialect: [*known[dialect], EXPANSION]
        program.place.store().migrate()
    asyncio.run(_work(program))


async def _work(program: Program) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with program.engine().running():
        await told.wait()
