"""This machine as the ports of a rollout: a platform, a router and the owner of its objects."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Self

import structlog

from fairlead import errors
from fairlead.areas.rollouts.domain import messages, names
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.local import envoy_mapping, log_reader
from fairlead.areas.rollouts.local.desired_state import DesiredState, DesiredStates
from fairlead.areas.rollouts.local.workload import Place, Workload
from fairlead.areas.rollouts.ports import Slots
from fairlead.areas.rollouts.workload_logs import LogPage, LogRequest
from fairlead.areas.rollouts.workloads import DeployRequest, WorkloadWords
from fairlead.clients.processes import Instance, Supervisor, ports
from fairlead.engine.messages import queue_name

Tell = Callable[[str], Awaitable[None]]
"""Hears the name of a workload of which there is something new to see."""

_log = structlog.get_logger(__name__)


class LocalPlatform:
    """All workloads of one state folder; used inside `running`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._states = DesiredStates(folder)
        self._supervisor = Supervisor(folder / "processes", told=self._program_changed)
        self._workloads: dict[str, Workload] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: set[str] = set()
        self._signal = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self, tell: Tell) -> AsyncIterator[Self]:
        """Take over what runs; at the end leave all of it running."""
        telling = asyncio.create_task(self._telling(tell), name="tell of workloads")
        async with self._supervisor.running():
            try:
                for desired in self._states.all():
                    self._take_in(desired).wake()
                yield self
            finally:
                await _cancel(telling, *self._tasks.values())
                self._tasks.clear()
                self._workloads.clear()

    @functools.cached_property
    def queue(self) -> str:
        """Where the rollouts of this folder are born, and nobody else looks for work."""
        return queue_name("local", self._states.id())

    @property
    def workloads(self) -> Mapping[str, Workload]:
        return self._workloads

    async def keep(self, request: DeployRequest) -> None:
        """Remember a program, and where its workload listens, before its rollout asks for it."""
        known = self._workloads.get(request.name)
        if known is None or known.desired.gone:
            self._check_ports(request)
            desired = DesiredState(request.name, request.listen, request.metrics_port)
            if known is not None:
                await self._forget(request.name)
            self._states.write(desired)
            self._take_in(desired)
        elif (known.desired.listen, known.desired.metrics_port) != (
            request.listen,
            request.metrics_port,
        ):
            raise errors.Conflict(
                f"{request.name} already listens on another port: {known.desired.listen}",
                hint="delete the workload first, or keep its ports",
            )
        self._states.keep_program(request.name, request.revision, request.program)

    async def remember(self, words: WorkloadWords) -> None:
        self._states.keep_words(words)

    async def deployed(self, name: str) -> WorkloadWords | None:
        return self._states.words(name) if name in self._workloads else None

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        await self._find(wanted.name).ensure(wanted)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        await self._find(wanted.name).remove_canary(wanted.order)

    async def let_go(self, gone: messages.ReleaseResources) -> None:
        if gone.name in self._workloads:
            await self._find(gone.name).let_go()
            self._states.forget(gone.name)
            self._states.forget_programs(gone.name, ())

    async def pods(self, name: str) -> Slots:
        known = self._workloads.get(name)
        return Slots(*[await known.pods(slot) for slot in Slot]) if known else Slots()

    async def route(self, wanted: messages.SetRoute) -> None:
        await self._find(wanted.name).route(wanted)

    async def shown(self, name: str) -> ObservedRoute | None:
        known = self._workloads.get(name)
        return None if known is None else await known.shown()

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        """The route is ours alone: `let_go` takes it away with its Envoy."""

    async def publish(self, status: messages.PublishStatus) -> None:
        """Keep it beside the processes: enough to go on from, should the store be lost."""
        held = self._find(status.name).desired.slots.values()
        before, shown = self._states.status(status.name), status.status
        if before is not None and before.round > shown.round:
            return
        self._states.keep_status(status.name, shown)
        kept = [*shown.revisions, shown.stable_revision, shown.desired_hash]
        self._states.forget_programs(status.name, {*kept, *(each.revision for each in held)})

    async def reset_override(self, name: str) -> None:
        """A file has no such flag: it is asked for with each deploy."""

    def remembered(self) -> dict[str, RolloutStatus]:
        """What each workload's rollout last told of itself."""
        found = {name: self._states.status(name) for name in self._workloads}
        return {name: each for name, each in found.items() if each is not None}

    async def read(self, request: LogRequest) -> LogPage:
        running = {each.name for each in self._supervisor.instances()}
        folder = self.log(envoy_mapping.envoy_name(request.name)).parent
        return await asyncio.to_thread(log_reader.read, folder, request, running.__contains__)

    def log(self, program: str) -> Path:
        return self._supervisor.log(program)

    def _find(self, name: str) -> Workload:
        if name not in self._workloads:
            raise errors.NotFound(
                f"no such workload on this machine: {name}",
                hint="deploy it here with fairlead deploy FILE",
            )
        return self._workloads[name]

    def _take_in(self, desired: DesiredState) -> Workload:
        place = Place(self.folder, self._states, self._supervisor, self._tell_soon)
        workload = self._workloads[desired.name] = Workload(place, desired)
        task = asyncio.create_task(workload.reconcile(), name=f"reconcile {desired.name}")
        task.add_done_callback(_report)
        self._tasks[desired.name] = task
        return workload

    async def _forget(self, name: str) -> None:
        await _cancel(self._tasks.pop(name))
        del self._workloads[name]

    def _check_ports(self, request: DeployRequest) -> None:
        """At once, while somebody is there to hear it."""
        # What other projects have, those of this one need not know.
        scope = names.scope(request.name)
        mine = (each.desired for each in self._workloads.values())
        others = {each.listen: each.name for each in mine if names.scope(each.name) == scope}
        for port in (request.listen, request.metrics_port):
            if port is None:
                continue
            if not ports.is_free(port):
                whose = f" by {others[port]}" if port in others else ""
                raise errors.Conflict(
                    f"port already taken{whose}: {port}", hint="choose another port to listen on"
                )

    def _program_changed(self, instance: Instance) -> None:
        known = self._workloads.get(envoy_mapping.workload_of(instance.name))
        if known is not None:
            known.wake()

    def _tell_soon(self, name: str) -> None:
        self._changed.add(name)
        self._signal.set()

    async def _telling(self, tell: Tell) -> None:
        while True:
            await self._signal.wait()
            self._signal.clear()
            names, self._changed = self._changed, set()
            for name in sorted(names):
                try:
                    await tell(name)
                except errors.FairleadError as error:
                    # Nobody is lost by it: the rollout observes by itself before long.
                    _log.warning("observation_not_reported", workload=name, error=error.message)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _report(task: asyncio.Task[None]) -> None:
    """A reconcile loop never ends by itself: if it does, a workload is left alone."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("task_failed", task=task.get_name(), exc_info=task.exception())
