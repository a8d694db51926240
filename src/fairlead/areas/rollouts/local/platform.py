"""This machine as the ports of a rollout: a platform, a router and the owner of its objects."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Self

import structlog

from fairlead import errors
from fairlead.adapters.local import tables
from fairlead.adapters.local.berths import Berth, Ledger, Status
from fairlead.adapters.local.workload import Place, Workload
from fairlead.adapters.processes import Instance, Supervisor, ports
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Slots
from fairlead.domain.rollouts.sight import Shown
from fairlead.intents.workloads import Wish

Tell = Callable[[str], Awaitable[None]]
"""Hears the name of a workload of which there is something new to see."""

_log = structlog.get_logger(__name__)


class Machine:
    """All workloads of one state folder; used inside `running`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledger = Ledger(folder)
        self._supervisor = Supervisor(folder / "processes", told=self._program_changed)
        self._workloads: dict[str, Workload] = {}
        self._tending: dict[str, asyncio.Task[None]] = {}
        self._changed: set[str] = set()
        self._signal = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self, tell: Tell) -> AsyncIterator[Self]:
        """Take over what runs; at the end leave all of it running."""
        telling = asyncio.create_task(self._telling(tell), name="tell of workloads")
        async with self._supervisor.running():
            try:
                for berth in self._ledger.berths():
                    self._take_in(berth).wake()
                yield self
            finally:
                await _cancel(telling, *self._tending.values())
                self._tending.clear()
                self._workloads.clear()

    @property
    def workloads(self) -> Mapping[str, Workload]:
        return self._workloads

    async def keep(self, wish: Wish) -> None:
        """Remember a program, and where its workload listens, before its rollout asks for it."""
        known = self._workloads.get(wish.name)
        if known is None or known.berth.gone:
            self._check_ports(wish)
            berth = Berth(wish.name, wish.listen, wish.metrics_port)
            if known is not None:
                await self._forget(wish.name)
            self._ledger.write(berth)
            self._take_in(berth)
        elif (known.berth.listen, known.berth.metrics_port) != (wish.listen, wish.metrics_port):
            raise errors.Conflict(
                f"{wish.name} listens on another port, which cannot change: {known.berth.listen}",
                hint="delete the workload first, or keep its ports",
            )
        self._ledger.keep_program(wish.name, wish.revision, wish.program)

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        await self._find(wanted.name).ensure(wanted)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        await self._find(wanted.name).remove_canary(wanted.order)

    async def let_go(self, gone: messages.LetGo) -> None:
        if gone.name in self._workloads:
            await self._find(gone.name).let_go()
            self._ledger.forget_status(gone.name)
            self._ledger.forget_programs(gone.name, ())

    async def pods(self, name: str) -> Slots:
        known = self._workloads.get(name)
        return Slots(*[await known.pods(slot) for slot in Slot]) if known else Slots()

    async def route(self, wanted: messages.SetRoute) -> None:
        await self._find(wanted.name).route(wanted)

    async def shown(self, name: str) -> Shown | None:
        known = self._workloads.get(name)
        return None if known is None else await known.shown()

    async def give_back(self, gone: messages.LetGo) -> None:
        """The route is ours alone: `let_go` takes it away with its Envoy."""

    async def publish(self, status: messages.PublishStatus) -> None:
        """Keep it beside the processes: enough to go on from, should the store be lost."""
        before = self._ledger.status(status.name)
        if before is not None and before.serial > status.serial:
            return
        self._ledger.keep_status(status.name, Status(status.serial, status.status))
        shown = status.status
        kept = [*shown.get("revisions", ()), shown.get("stableRevision"), shown.get("wantedHash")]
        held = self._find(status.name).berth.slots.values()
        self._ledger.forget_programs(status.name, {*kept, *(each.revision for each in held)})

    async def reset_override(self, name: str) -> None:
        """A file has no such flag: it is asked for with each deploy."""

    def remembered(self) -> dict[str, dict[str, object]]:
        """What each workload's rollout last told of itself."""
        found = {name: self._ledger.status(name) for name in self._workloads}
        return {name: each.status for name, each in found.items() if each is not None}

    def log(self, program: str) -> Path:
        return self._supervisor.log(program)

    def _find(self, name: str) -> Workload:
        if name not in self._workloads:
            raise errors.NotFound(
                f"no such workload on this machine: {name}",
                hint="deploy it here with fairlead deploy FILE",
            )
        return self._workloads[name]

    def _take_in(self, berth: Berth) -> Workload:
        place = Place(self.folder, self._ledger, self._supervisor, self._tell_soon)
        workload = self._workloads[berth.name] = Workload(place, berth)
        task = asyncio.create_task(workload.tend(), name=f"tend {berth.name}")
        task.add_done_callback(_report)
        self._tending[berth.name] = task
        return workload

    async def _forget(self, name: str) -> None:
        await _cancel(self._tending.pop(name))
        del self._workloads[name]

    def _check_ports(self, wish: Wish) -> None:
        """At once, while somebody is there to hear it."""
        others = {each.berth.listen: name for name, each in self._workloads.items()}
        for port in (wish.listen, wish.metrics_port):
            if port is None:
                continue
            if not ports.is_free(port):
                whose = f" by {others[port]}" if port in others else ""
                raise errors.Conflict(
                    f"port already taken{whose}: {port}", hint="choose another port to listen on"
                )

    def _program_changed(self, instance: Instance) -> None:
        known = self._workloads.get(tables.workload_of(instance.name))
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
                    # Nobody is lost by it: the rollout looks for itself before long.
                    _log.warning("sight_not_told", workload=name, error=error.message)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _report(task: asyncio.Task[None]) -> None:
    """One who tends never ends by itself: if it does, a workload is left alone."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("tending_failed", task=task.get_name(), exc_info=task.exception())
