"""One workload: its processes and its Envoy, brought to what its berth says, again and again.

settle: start what is wanted ──► tell Envoy of what is ready ──► drain and stop the rest (aside)

Nothing is stopped that Envoy may still send requests to, and Envoy is told of nothing that was
never ready, unless there is nothing else.
"""

import asyncio
import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import structlog

from fairlead import errors
from fairlead.adapters import envoy
from fairlead.adapters.local import tables
from fairlead.adapters.local.berths import Berth, Held, Ledger
from fairlead.adapters.processes import Instance, Phase, Supervisor
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.sight import Pods, Shown

_AGAIN_SECONDS = 1.0
_LONGEST_AGAIN_SECONDS = 15.0
_LEAVE_SECONDS = 0.1
_YOUNG_SECONDS = 2.5
# After so many silences in a row Envoy itself is looked at again.
_SILENCES = 3
_MOST_TOLD = 200
_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """What all workloads of a machine share."""

    folder: Path
    ledger: Ledger
    supervisor: Supervisor
    changed: Callable[[str], None]
    """Hears the name of a workload of which there may be something new to see."""


class Workload:
    """A berth, and what was made of it so far."""

    def __init__(self, place: Place, berth: Berth) -> None:
        self.berth = berth
        self._place = place
        self._listen = envoy.Listen(berth.listen, berth.metrics_port)
        self.proxy = self._new_proxy()
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._cleaning: asyncio.Task[None] | None = None
        # What Envoy was last told of; only what this does not name may be stopped.
        self._settled = berth
        self._serving = False
        self._starting: dict[str, float] = {}
        self._trouble = ""
        self._tries = 0

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        count = wanted.at_least if wanted.replicas is None else wanted.replicas
        held = Held(wanted.version.revision, count)
        # Unknown programs are refused before anything is written.
        self._place.ledger.program(self.berth.name, held.revision)
        if self._is_new(wanted.slot, wanted.order):
            slots = {**self.berth.slots, wanted.slot: held}
            self._write(slots=slots, orders={**self.berth.orders, wanted.slot: wanted.order})
            await self.settle()

    async def remove_canary(self, order: int) -> None:
        """The baseline with it."""
        leaving = [slot for slot in (Slot.CANARY, Slot.BASELINE) if self._is_new(slot, order)]
        if leaving:
            slots = {slot: held for slot, held in self.berth.slots.items() if slot not in leaving}
            orders = {**self.berth.orders, **dict.fromkeys(leaving, order)}
            self._write(slots=slots, orders=orders)
            await self.settle()

    async def route(self, wanted: messages.SetRoute) -> None:
        if wanted.order >= self.berth.route_order and not self.berth.gone:
            self._write(route=wanted.route, route_order=wanted.order)
            await self.settle()

    async def let_go(self) -> None:
        """Stop everything; the berth stays as a sign that nothing is wanted."""
        self._write(gone=True, slots={}, orders={}, route=None, route_order=0)
        await self.settle()

    async def settle(self) -> None:
        """One pass; what cannot be done now is told, and tried again by `tend`."""
        try:
            async with self._turn:
                await self._settle()
        except errors.FairleadError as error:
            self._note(error)
            raise
        self._trouble, self._tries = "", 0
        self._clean_soon()
        self._place.changed(self.berth.name)

    async def tend(self) -> None:
        """Until cancelled: settle whenever a process changed, or something went wrong before."""
        try:
            while True:
                try:
                    async with asyncio.timeout(self._pause()):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
                try:
                    await self.settle()
                except errors.FairleadError as error:
                    _log.debug("workload_not_settled", workload=self.berth.name, error=str(error))
        finally:
            if self._cleaning is not None:
                self._cleaning.cancel()

    def wake(self) -> None:
        self._wake.set()

    async def pods(self, slot: Slot) -> Pods | None:
        """What there is: also processes that are to go, as long as they are there."""
        held = self.berth.slots.get(slot)
        revision, desired = (held.revision, held.replicas) if held else self._left_in(slot)
        if not revision:
            return None
        mine = [each for each in self._instances() if _is_of(each, slot, revision)]
        ready = {each.port for each in mine if each.phase is Phase.HEALTHY}
        known = ready & set(await self._known(slot, revision))
        order = self.berth.orders.get(slot, 0)
        trouble = self._told(mine) if held else ""
        return Pods(revision, desired, len(ready), len(known), order, trouble)

    async def shown(self) -> Shown | None:
        if self.berth.route is None:
            return None
        try:
            seen = await self.proxy.shown()
        except errors.Unavailable:
            # Nobody can tell what a proxy does that does not answer; it may still serve.
            return None
        if seen is None:
            return None
        share = sum(
            percent
            for name, percent in seen.percents.items()
            if name.startswith(f"{Slot.CANARY.value}-")
        )
        return Shown(int(seen.mark) if seen.mark.isdigit() else 0, share)

    async def _settle(self) -> None:
        berth = self.berth
        if berth.gone:
            await self._leave()
            return
        for slot in berth.slots:
            await self._start(slot)
        if berth.slots and not self._serving:
            await self.proxy.start()
            self._serving = True
        table = tables.table(berth, {slot: self._ports(slot) for slot in berth.slots})
        if table is not None:
            await self.proxy.publish(table, str(berth.route_order))
        self._settled = berth

    async def _start(self, slot: Slot) -> None:
        names = tables.program_names(self.berth, slot)
        words = self._place.ledger.program(self.berth.name, self.berth.slots[slot].revision)
        for name in names:
            await self._place.supervisor.ensure(tables.program(name, words))

    def _ports(self, slot: Slot) -> tuple[int, ...]:
        """Those that are ready; all where none is, for a slow answer is better than none."""
        names = set(tables.program_names(self.berth, slot))
        mine = [each for each in self._instances() if each.name in names]
        ready = tuple(each.port for each in mine if each.phase is Phase.HEALTHY)
        return ready or tuple(each.port for each in mine if each.port)

    async def _leave(self) -> None:
        if any(each.name == tables.envoy_name(self.berth.name) for each in self._instances()):
            await self.proxy.stop()
        for each in self._instances():
            await self._place.supervisor.stop(each.name)
        shutil.rmtree(self.proxy.folder, ignore_errors=True)
        self.proxy, self._serving = self._new_proxy(), False
        self._settled = self.berth

    def _clean_soon(self) -> None:
        if self._cleaning is None or self._cleaning.done():
            self._cleaning = asyncio.create_task(self._clean())

    async def _clean(self) -> None:
        """Aside, because a request that takes long must not hold up a way home."""
        try:
            while (leaving := self._unwanted()) or self.proxy.has_unwanted():
                await self.proxy.retire()
                # Envoy's worker hears a moment later than Envoy says.
                await asyncio.sleep(_LEAVE_SECONDS)
                for name in leaving:
                    # It may be wanted again by now.
                    if name in self._unwanted():
                        await self._place.supervisor.stop(name)
                self._place.changed(self.berth.name)
        except errors.FairleadError as error:
            self._note(error)
            self._wake.set()

    def _unwanted(self) -> set[str]:
        wanted = {tables.envoy_name(self.berth.name)}
        for berth in (self.berth, self._settled):
            for slot in berth.slots:
                wanted.update(tables.program_names(berth, slot))
        return {each.name for each in self._instances()} - wanted

    def _instances(self) -> list[Instance]:
        name = self.berth.name
        found = self._place.supervisor.instances()
        return [each for each in found if tables.workload_of(each.name) == name]

    def _left_in(self, slot: Slot) -> tuple[str, int]:
        """The revision of processes that are still there in a slot that is to be empty."""
        found = [tables.slot_of(each.name) for each in self._instances()]
        return next((each[1] for each in found if each and each[0] is slot), ""), 0

    async def _known(self, slot: Slot, revision: str) -> tuple[int, ...]:
        try:
            found = await self.proxy.endpoints()
        except errors.Unavailable:
            return ()
        return tuple(found.get(tables.cluster(slot, revision), ()))

    def _told(self, mine: list[Instance]) -> str:
        ill = (each for each in mine if each.phase is not Phase.HEALTHY)
        told = [f"{each.phase}: {each.reason}" for each in ill if not self._is_young(each)][:1]
        return "; ".join((*told, *([self._trouble] if self._trouble else [])))[:_MOST_TOLD]

    def _is_young(self, instance: Instance) -> bool:
        """One that was started a moment ago has no trouble yet."""
        loop = asyncio.get_running_loop()
        if instance.phase is not Phase.STARTING:
            self._starting.pop(instance.name, None)
            return False
        if instance.name not in self._starting:
            self._starting[instance.name] = loop.time()
            # One that stays silent makes no news by itself.
            loop.call_later(_YOUNG_SECONDS, self.wake)
        return loop.time() - self._starting[instance.name] < _YOUNG_SECONDS

    def _is_new(self, slot: Slot, order: int) -> bool:
        """One performed before may be performed again: it asks for the same."""
        return order >= self.berth.orders.get(slot, 0) and not self.berth.gone

    def _note(self, error: errors.FairleadError) -> None:
        self._tries += 1
        if self._tries >= _SILENCES and isinstance(error, errors.Unavailable):
            self._serving = False
        if error.message != self._trouble:
            name = self.berth.name
            _log.warning("workload_trouble", workload=name, error=error.message, hint=error.hint)
        self._trouble = error.message
        self._place.changed(self.berth.name)

    def _pause(self) -> float | None:
        if not self._trouble:
            return None
        return min(_AGAIN_SECONDS * float(2 ** min(self._tries, 10)), _LONGEST_AGAIN_SECONDS)

    def _write(self, **changes: object) -> None:
        berth = dataclasses.replace(self.berth, **changes)  # type: ignore[arg-type]  # fields of Berth, by name
        # On disk first: what is done before it is remembered would be undone after a crash.
        self._place.ledger.write(berth)
        self.berth = berth

    def _new_proxy(self) -> envoy.Proxy:
        name = self.berth.name
        folder = self._place.folder / "envoy" / name
        return envoy.Proxy(folder, self._place.supervisor, self._listen, tables.envoy_name(name))


def _is_of(instance: Instance, slot: Slot, revision: str) -> bool:
    return tables.slot_of(instance.name) == (slot, revision)
