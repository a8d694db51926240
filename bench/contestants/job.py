"""What a contestant is asked to do, and how it answers."""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

from fairlead.engine.store import postgres, protocol, sqlite


class Job(msgspec.Struct, frozen=True):
    """One contestant's load."""

    url: str
    """A postgresql:// URL, or the path of a SQLite file."""

    workflows: int = 0
    active: int = 256
    steps: int = 10
    shape: str = ""
    """Which variant of the contestant; each module says which it knows."""

    name: str = "a"
    """Tells the streams of one process from those of another."""

    gate: bool = False
    """Say when the warm-up is over, and wait for a line before the load begins."""

    def at(self, url: str) -> "Job":
        """The same job on a database of its own."""
        return msgspec.structs.replace(self, url=url)

    def named(self, name: str) -> "Job":
        return msgspec.structs.replace(self, name=name)

    @property
    def on_postgres(self) -> bool:
        return self.url.startswith("postgresql://")


Measurements = dict[str, float]


def store(job: Job) -> protocol.Store:
    """The engine's store for a job, with its tables."""
    kept: protocol.Store = (
        postgres.PostgresStore(job.url) if job.on_postgres else sqlite.SqliteStore(Path(job.url))
    )
    kept.migrate()
    return kept


def serve(run: Callable[[Job], Measurements]) -> None:
    """Do the job named on the command line; only figures go to standard output."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    job = msgspec.json.decode(sys.argv[1], type=Job)
    print(json.dumps(run(job)), flush=True)


def serve_async(run: Callable[[Job], Awaitable[Measurements]]) -> None:
    async def awaited(job: Job) -> Measurements:
        return await run(job)

    serve(lambda job: asyncio.run(awaited(job)))


def pass_gate(job: Job) -> None:
    """Several processes of one load begin together."""
    if job.gate:
        print("ready", flush=True)
        sys.stdin.readline()


def percentile(values: list[float], share: float) -> float:
    """The value that this share of all stays at or below."""
    ranked: list[Any] = sorted(values)
    return float(ranked[min(len(ranked) - 1, int(share * len(ranked)))])
