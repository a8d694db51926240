"""Keep one program running: start it, watch it, start it again when it ends.

A loop: STARTING until its health check is good, HEALTHY or UNHEALTHY while it runs,
BACKING_OFF or CRASH_LOOPING between an end and the next start. Cancelling the loop leaves
the process alone; only `stop` ends it.
"""

import asyncio
import dataclasses
import math
from collections.abc import Callable, Collection

import structlog

from fairlead import errors
from fairlead.clients.processes import health, identity, logs, orphans, ports
from fairlead.clients.processes.program import Program
from fairlead.clients.processes.records import Folder, Record
from fairlead.clients.processes.spawn import End, Handle, spawn
from fairlead.clients.processes.state import Instance, Phase

_STARTING_POLL_SECONDS = 0.05
_LAST_LINE = 300
_log = structlog.get_logger(__name__)


class Keeper:
    """One program and the process that runs it now."""

    def __init__(
        self, folder: Folder, record: Record, ports_given: Callable[[], Collection[int]]
    ) -> None:
        self.changed = asyncio.Event()
        self.told: Callable[[Instance], None] = lambda _: None
        self._folder = folder
        self._record = record
        self._ports_given = ports_given
        self._handle: Handle | None = None
        self._phase = Phase.STARTING
        self._reason = "not checked yet"
        self._last_end = ""
        self._ends_in_a_row = 0

    @property
    def program(self) -> Program:
        return self._record.program

    @property
    def instance(self) -> Instance:
        handle, record = self._handle, self._record
        pid = None if handle is None else handle.identity.pid
        name, told = record.program.name, (self._reason, self._last_end)
        return Instance(name, self._phase, record.port, pid, record.restarts, *told)

    def adopt(self) -> bool:
        """Take over the process of an earlier control plane; whether there was one."""
        if self._record.identity is not None:
            self._handle = Handle.hold(self._record.identity)
        if self._handle is None:
            self._handle = self._started_unrecorded()
        return self._handle is not None

    def start(self) -> None:
        """Start the process; Conflict when its port is taken."""
        port = ports.choose(self.program, self._record.port, self._ports_given())
        # Before the start: a crash between the two leaves a port without a process, not the
        # other way round. The process itself is then found by its mark.
        self._keep(dataclasses.replace(self._record, identity=None, port=port))
        name = self.program.name
        self._handle = spawn(self.program, port, self._folder.log(name), self._folder.owner)
        self._keep(dataclasses.replace(self._record, identity=self._handle.identity))
        self._tell(Phase.STARTING, "started, not healthy yet")

    async def run(self) -> None:
        """Until cancelled: one process after the other."""
        try:
            while True:
                if self._handle is not None:
                    await self._watch(self._handle)
                    await asyncio.sleep(self._pause())
                self._start_again()
                if self._handle is None:
                    await asyncio.sleep(self._pause())
        finally:
            if self._handle is not None:
                self._handle.close()

    async def stop(self) -> None:
        """Drain the process, after `run` was cancelled."""
        self._tell(Phase.STOPPING, "asked to stop")
        found = self._record.identity
        handle = None if found is None else Handle.hold(found)
        if handle is not None:
            try:
                await handle.drain(self.program.patience.drain_seconds)
            finally:
                handle.close()
        # Also what left the process group, or outlived its leader while nobody watched.
        name, owner = self.program.name, self._folder.owner
        await orphans.end(found for found, whose, _ in identity.marked(owner) if whose == name)
        self._handle = None
        self._folder.forget(name)

    async def _watch(self, handle: Handle) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(self._probe(handle))
            end = await handle.ended()
            probing.cancel()
        # What the process left behind would hold the port against its successor.
        await handle.kill()
        handle.close()
        self._handle = None
        steady = clock() - began >= self.program.patience.steady_seconds
        self._ends_in_a_row = 1 if steady else self._ends_in_a_row + 1
        self._tell_end(end)

    async def _probe(self, handle: Handle) -> None:
        wanted = self.program.health
        failures = 0
        while True:
            wrong = await health.complaint(wanted, self._record.port)
            wrong = wrong or self._answered_by_another(handle)
            failures = 0 if wrong is None else failures + 1
            if wrong is None:
                self._tell(Phase.HEALTHY, "")
            elif self._phase is Phase.STARTING:
                self._tell(Phase.STARTING, wrong)
            elif failures >= wanted.failures:
                self._tell(Phase.UNHEALTHY, wrong)
            if self._phase is Phase.UNHEALTHY and failures == wanted.restart_after:
                await handle.drain(self.program.patience.drain_seconds)
            starting = self._phase is Phase.STARTING
            await asyncio.sleep(_STARTING_POLL_SECONDS if starting else wanted.every_seconds)

    def _answered_by_another(self, handle: Handle) -> str | None:
        """A free port can be taken by a stranger before our program opens it."""
        if self._phase is not Phase.STARTING:
            return None
        if identity.holds_port(handle.identity.pid, self._record.port):
            return None
        return f"port answers, but another process holds it: {self._record.port}"

    def _start_again(self) -> None:
        try:
            self._record = dataclasses.replace(self._record, restarts=self._record.restarts + 1)
            self.start()
        except (errors.FairleadError, OSError) as error:
            # Not the asker's call any more: say it and try again later.
            self._ends_in_a_row += 1
            self._tell(self._phase_after_end(), str(error))

    def _started_unrecorded(self) -> Handle | None:
        """A control plane that died between start and record left a process with our mark."""
        for found, name, leads in identity.marked(self._folder.owner):
            if name == self.program.name and leads:
                self._keep(dataclasses.replace(self._record, identity=found))
                return Handle.hold(found)
        return None

    def _pause(self) -> float:
        patience = self.program.patience
        doubled = patience.backoff_seconds * math.pow(2, min(self._ends_in_a_row - 1, 30))
        return min(doubled, patience.longest_backoff_seconds)

    def _phase_after_end(self) -> Phase:
        looping = self._ends_in_a_row >= self.program.patience.loop_after
        return Phase.CRASH_LOOPING if looping else Phase.BACKING_OFF

    def _tell_end(self, end: End) -> None:
        words = logs.last_words(self._folder.log(self.program.name)).rpartition("\n")[2]
        said = f", saying: {words[-_LAST_LINE:]}" if words else ""
        self._tell(self._phase_after_end(), f"{end}{said}")

    def _tell(self, phase: Phase, reason: str) -> None:
        if (phase, reason) == (self._phase, self._reason):
            return
        if phase is not self._phase:
            _log.info("process_phase", program=self.program.name, phase=phase, reason=reason)
        self._phase, self._reason = phase, reason
        match phase:
            case Phase.BACKING_OFF | Phase.CRASH_LOOPING:
                self._last_end = reason
            case Phase.HEALTHY:
                self._last_end = ""
        # Whoever waits looks again; those that come later wait for the next change.
        self.changed.set()
        self.changed = asyncio.Event()
        self.told(self.instance)

    def _keep(self, record: Record) -> None:
        self._record = record
        self._folder.keep(record)
