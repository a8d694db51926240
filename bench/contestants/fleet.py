"""The work of benchmark `kubernetes`: every bundle gets three config maps and a status.

A contestant is told where the API server is, says when it has loaded its code, waits for a
line, and then does all bundles of one namespace. Imports little: memory is one of the figures.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

API = "tests.fairlead.dev/v1"
PLURAL = "bundles"
READY = "Ready"

Measurements = dict[str, float]


class Task(msgspec.Struct, frozen=True):
    """One contestant's load."""

    server: str
    token: str
    authority: str
    """The path of the certificate that the API server is trusted by."""

    namespace: str
    objects: int
    children: int = 3
    workers: int = 32
    """How many requests are on their way at once, as our client has it by default."""

    seconds: float = 0.0
    """How long to stay after the work is done, doing nothing."""


class Watch:
    """Time and processor seconds since the work began."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def measurements(self, objects: int) -> Measurements:
        seconds = time.perf_counter() - self._wall
        return {
            "seconds": seconds,
            "per_second": objects / seconds,
            "cpu_seconds": time.process_time() - self._cpu,
            "memory_mb": memory("VmHWM"),
        }


def children(owner: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The config maps as a contestant wants them, still without their owner."""
    meta = owner["metadata"]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": meta["namespace"], "name": f"{meta['name']}-{number}"},
            "data": {"cargo": owner["spec"]["cargo"]},
        }
        for number in range(count)
    ]


def memory(line: str) -> float:
    """Megabytes by a line of the kernel's own account: VmHWM is the most there ever was."""
    for text in Path("/proc/self/status").read_text().splitlines():
        if text.startswith(f"{line}:"):
            return int(text.split()[1]) / 1024
    raise LookupError(line)


def serve(run: Callable[[Task], Awaitable[Measurements]]) -> None:
    """Do the task named on the command line; only figures go to standard output."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        # As a user's process has it (bootstrap.logs).
        cache_logger_on_first_use=True,
    )
    task = msgspec.json.decode(sys.argv[1], type=Task)
    print("ready", flush=True)
    sys.stdin.readline()

    async def awaited() -> Measurements:
        return await run(task)

    print(json.dumps(asyncio.run(awaited())), flush=True)
