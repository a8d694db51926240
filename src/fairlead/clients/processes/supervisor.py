"""All programs of one state folder: what is desired runs, whoever started it."""

import asyncio
import collections
import contextlib
import os
import platform
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Self

import structlog

from fairlead import errors
from fairlead.clients.processes import logs, orphans
from fairlead.clients.processes.identity import Identity
from fairlead.clients.processes.keeper import Keeper
from fairlead.clients.processes.logs import LogBounds
from fairlead.clients.processes.program import Program
from fairlead.clients.processes.records import Folder, Record
from fairlead.clients.processes.state import Instance, Phase

_log = structlog.get_logger(__name__)


class Supervisor:
    """Starts, watches and stops programs; used inside `running`."""

    def __init__(
        self,
        folder: Path,
        bounds: LogBounds | None = None,
        told: Callable[[Instance], None] = lambda _: None,
    ) -> None:
        self._folder = Folder(folder)
        self._bounds = bounds or LogBounds()
        # Hears of every change of any program.
        self._told = told
        self._keepers: dict[str, Keeper] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running = False
        # Two askers for one name take turns; those for different names do not wait.
        self._turns: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Take over what runs, start again what should; at the end leave all of it running."""
        _check_kernel()
        with self._folder.locked():
            records = self._folder.records()
            self._running = True
            upkeep = asyncio.create_task(self._rotate_logs(), name="tend logs")
            try:
                for record in records:
                    self._take_over(record)
                # No TaskGroup: it would wrap what the caller's block raises.
                yield self
            finally:
                self._running = False
                await _cancel(upkeep, *self._tasks.values())
                self._keepers.clear()
                self._tasks.clear()

    async def ensure(self, program: Program) -> Instance:
        """Run this program under its name; one that was asked for otherwise is replaced."""
        async with self._turns[program.name]:
            known = self._keepers.get(program.name)
            if known is not None and known.program == program:
                return known.instance
            if known is not None:
                await self._stop(program.name)
            if not self._running:
                raise errors.Unavailable(
                    f"supervisor is not running: {self._folder.path}",
                    hint="use it inside running()",
                )
            keeper = self._keeper(Record(program, None, 0, 0))
            keeper.start()
            return self._run(keeper)

    async def ready(self, name: str) -> Instance:
        """Wait until the program is healthy; Unavailable when it is not in time, or crashes."""
        keeper = self._find(name)
        seconds = keeper.program.patience.ready_seconds
        try:
            async with asyncio.timeout(seconds):
                while (instance := keeper.instance).phase is not Phase.HEALTHY:
                    if instance.phase in (Phase.CRASH_LOOPING, Phase.STOPPING):
                        raise self._unwell(instance, str(instance.phase))
                    await keeper.changed.wait()
                return instance
        except TimeoutError:
            raise self._unwell(keeper.instance, f"not healthy after {seconds:g} s") from None

    async def stop(self, name: str) -> None:
        """Drain and forget the program; one that is not there is stopped already."""
        async with self._turns[name]:
            if name in self._keepers:
                await self._stop(name)

    async def changed(self, name: str) -> Instance:
        """Wait until there is something new to say of the program."""
        await self._find(name).changed.wait()
        return self._find(name).instance

    def instance(self, name: str) -> Instance:
        return self._find(name).instance

    def instances(self) -> tuple[Instance, ...]:
        return tuple(keeper.instance for _, keeper in sorted(self._keepers.items()))

    def log(self, name: str) -> Path:
        return self._folder.log(name)

    def orphans(self) -> tuple[Identity, ...]:
        """Processes started from this folder that belong to no program of it any more."""
        groups = {instance.pid for instance in self.instances() if instance.pid is not None}
        return orphans.strays(self._folder.owner, groups)

    async def _stop(self, name: str) -> None:
        await _cancel(self._tasks.pop(name))
        await self._keepers[name].stop()
        del self._keepers[name]
        logs.prune(self._folder.path, {*self._keepers, name}, self._bounds)

    def _take_over(self, record: Record) -> None:
        keeper = self._keeper(record)
        keeper.adopt()
        self._run(keeper)

    def _keeper(self, record: Record) -> Keeper:
        name = record.program.name

        def given_to_others() -> set[int]:
            return {one.port for one in self.instances() if one.name != name}

        keeper = Keeper(self._folder, record, given_to_others)
        keeper.told = self._told
        return keeper

    def _run(self, keeper: Keeper) -> Instance:
        name = keeper.program.name
        self._keepers[name] = keeper
        self._tasks[name] = asyncio.create_task(keeper.run(), name=f"keep {name}")
        self._tasks[name].add_done_callback(_report)
        return keeper.instance

    def _find(self, name: str) -> Keeper:
        if name not in self._keepers:
            raise errors.NotFound(
                f"no such program: {name}", hint=f"running: {', '.join(sorted(self._keepers))}"
            )
        return self._keepers[name]

    def _unwell(self, instance: Instance, what: str) -> errors.Unavailable:
        return errors.Unavailable(
            f"program {instance.name} is {what}: {instance.why}",
            hint=f"its output is in {self.log(instance.name)}",
        )

    async def _rotate_logs(self) -> None:
        while True:
            await asyncio.sleep(self._bounds.poll_seconds)
            for name in list(self._keepers):
                await asyncio.to_thread(logs.rotate, self.log(name), self._bounds)


def _check_kernel() -> None:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        raise errors.Unavailable(
            f"this system cannot hold a process for good: {platform.platform()}",
            hint="the local platform needs Linux 5.3 or newer",
        ) from error


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _report(task: asyncio.Task[None]) -> None:
    """A keeper never ends by itself: if it does, a program is left alone and someone must know."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("keeper_failed", task=task.get_name(), exc_info=task.exception())
