"""One workload: its processes and its Envoy, brought to what is desired of it, again and again.

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
from fairlead.access import sessions
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute, Pods
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.local import envoy_mapping
from fairlead.areas.rollouts.local.desired_state import DesiredState, DesiredStates, Held
from fairlead.areas.rollouts.workloads import file_name
from fairlead.clients import envoy
from fairlead.clients.processes import Instance, Phase, Supervisor

_AGAIN_SECONDS = 1.0
_LONGEST_AGAIN_SECONDS = 15.0
_LEAVE_SECONDS = 0.1
_YOUNG_SECONDS = 2.5
# After so many silences in a row Envoy itself is checked again.
_SILENCES = 3
_MOST_TOLD = 200
_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """What all workloads of a machine share."""

    folder: Path
    states: DesiredStates
    supervisor: Supervisor
    changed: Callable[[str], None]
    """Hears the name of a workload of which there may be something new to see."""


class Workload:
    """What is desired, and what was made of it so far."""

    def __init__(self, place: Place, desired: DesiredState) -> None:
        self.desired = desired
        self._place = place
        self._listen = envoy.Listen(desired.listen, desired.metrics_port, sessions.COOKIE)
        self.proxy = self._new_proxy()
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._cleaning: asyncio.Task[None] | None = None
        # What Envoy was last told of; only what this does not name may be stopped.
        self._settled = desired
        self._serving = False
        self._starting: dict[str, float] = {}
        self._trouble = ""
        self._tries = 0

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        count = wanted.at_least if wanted.replicas is None else wanted.replicas
        held = Held(wanted.version.revision, count)
        # Unknown programs are refused before anything is written.
        self._place.states.program(self.desired.name, held.revision)
        if self._is_new(wanted.slot, wanted.order):
            slots = {**self.desired.slots, wanted.slot: held}
            self._write(slots=slots, orders={**self.desired.orders, wanted.slot: wanted.order})
            await self.settle()

    async def remove_canary(self, order: int) -> None:
        """The baseline with it."""
        leaving = [slot for slot in (Slot.CANARY, Slot.BASELINE) if self._is_new(slot, order)]
        if leaving:
            slots = {slot: held for slot, held in self.desired.slots.items() if slot not in leaving}
            orders = {**self.desired.orders, **dict.fromkeys(leaving, order)}
            self._write(slots=slots, orders=orders)
            await self.settle()

    async def route(self, wanted: messages.SetRoute) -> None:
        if wanted.order >= self.desired.route_order and not self.desired.gone:
            self._write(route=wanted.route, route_order=wanted.order)
            await self.settle()

    async def let_go(self) -> None:
        """Stop everything; the file stays as a sign that nothing is wanted."""
        self._write(gone=True, slots={}, orders={}, route=None, route_order=0)
        await self.settle()

    async def settle(self) -> None:
        """One pass; what cannot be done now is told, and tried again by `reconcile`."""
        try:
            async with self._turn:
                await self._settle()
        except errors.FairleadError as error:
            self._note(error)
            raise
        self._trouble, self._tries = "", 0
        self._clean_soon()
        self._place.changed(self.desired.name)

    async def reconcile(self) -> None:
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
                    _log.debug("workload_not_settled", workload=self.desired.name, error=str(error))
        finally:
            if self._cleaning is not None:
                self._cleaning.cancel()

    def wake(self) -> None:
        self._wake.set()

    async def pods(self, slot: Slot) -> Pods | None:
        """What there is: also processes that are to go, as long as they are there."""
        held = self.desired.slots.get(slot)
        revision, desired = (held.revision, held.replicas) if held else self._left_in(slot)
        if not revision:
            return None
        mine = [each for each in self._instances() if _is_of(each, slot, revision)]
        ready = {each.port for each in mine if each.phase is Phase.HEALTHY}
        known = ready & set(await self._known(slot, revision))
        order = self.desired.orders.get(slot, 0)
        trouble = self._told(mine) if held else ""
        return Pods(revision, desired, len(ready), len(known), order, trouble)

    async def shown(self) -> ObservedRoute | None:
        if self.desired.route is None:
            return None
        try:
            seen = await self.proxy.shown()
        except errors.Unavailable:
            # Nobody can tell what a proxy does that does not answer; it may still serve.
            return None
        if seen is None:
            return None
        weight = sum(
            percent
            for name, percent in seen.percents.items()
            if name.startswith(f"{Slot.CANARY.value}-")
        )
        return ObservedRoute(int(seen.mark) if seen.mark.isdigit() else 0, weight)

    async def _settle(self) -> None:
        desired = self.desired
        if desired.gone:
            await self._leave()
            return
        for slot in desired.slots:
            await self._start(slot)
        if desired.slots and not self._serving:
            await self.proxy.start()
            self._serving = True
        table = envoy_mapping.table(desired, {slot: self._ports(slot) for slot in desired.slots})
        if table is not None:
            await self.proxy.publish(table, str(desired.route_order))
        self._settled = desired

    async def _start(self, slot: Slot) -> None:
        names = envoy_mapping.program_names(self.desired, slot)
        words = self._place.states.program(self.desired.name, self.desired.slots[slot].revision)
        for name in names:
            await self._place.supervisor.ensure(envoy_mapping.program(name, words))

    def _ports(self, slot: Slot) -> tuple[int, ...]:
        """Those that are ready; all where none is, for a slow answer is better than none."""
        names = set(envoy_mapping.program_names(self.desired, slot))
        mine = [each for each in self._instances() if each.name in names]
        ready = tuple(each.port for each in mine if each.phase is Phase.HEALTHY)
        return ready or tuple(each.port for each in mine if each.port)

    async def _leave(self) -> None:
        if any(
            each.name == envoy_mapping.envoy_name(self.desired.name) for each in self._instances()
        ):
            await self.proxy.stop()
        for each in self._instances():
            await self._place.supervisor.stop(each.name)
        shutil.rmtree(self.proxy.folder, ignore_errors=True)
        self.proxy, self._serving = self._new_proxy(), False
        self._settled = self.desired

    def _clean_soon(self) -> None:
        if self._cleaning is None or self._cleaning.done():
            self._cleaning = asyncio.create_task(self._clean())

    async def _clean(self) -> None:
        """Aside, because a request that takes long must not hold up a rollback."""
        try:
            while (leaving := self._unwanted()) or self.proxy.has_unwanted():
                await self.proxy.retire()
                # Envoy's worker hears a moment later than Envoy says.
                await asyncio.sleep(_LEAVE_SECONDS)
                for name in leaving:
                    # It may be desired again by now.
                    if name in self._unwanted():
                        await self._place.supervisor.stop(name)
                self._place.changed(self.desired.name)
        except errors.FairleadError as error:
            self._note(error)
            self._wake.set()

    def _unwanted(self) -> set[str]:
        wanted = {envoy_mapping.envoy_name(self.desired.name)}
        for desired in (self.desired, self._settled):
            for slot in desired.slots:
                wanted.update(envoy_mapping.program_names(desired, slot))
        return {each.name for each in self._instances()} - wanted

    def _instances(self) -> list[Instance]:
        name = self.desired.name
        found = self._place.supervisor.instances()
        return [each for each in found if envoy_mapping.workload_of(each.name) == name]

    def _left_in(self, slot: Slot) -> tuple[str, int]:
        """The revision of processes that are still there in a slot that is to be empty."""
        found = [envoy_mapping.slot_of(each.name) for each in self._instances()]
        return next((each[1] for each in found if each and each[0] is slot), ""), 0

    async def _known(self, slot: Slot, revision: str) -> tuple[int, ...]:
        try:
            found = await self.proxy.endpoints()
        except errors.Unavailable:
            return ()
        return tuple(found.get(envoy_mapping.cluster(slot, revision), ()))

    def _told(self, mine: list[Instance]) -> str:
        ill = (each for each in mine if each.phase is not Phase.HEALTHY)
        told = [words for each in ill if (words := self._words(each))][:1]
        return "; ".join((*told, *([self._trouble] if self._trouble else [])))[:_MOST_TOLD]

    def _words(self, instance: Instance) -> str:
        if not self._is_young(instance):
            return f"{instance.phase}: {instance.why}"
        # A deadline that falls between two ends must not find that all is well.
        return f"{instance.phase} again: {instance.last_end}" if instance.last_end else ""

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
        return order >= self.desired.orders.get(slot, 0) and not self.desired.gone

    def _note(self, error: errors.FairleadError) -> None:
        self._tries += 1
        if self._tries >= _SILENCES and isinstance(error, errors.Unavailable):
            self._serving = False
        if error.message != self._trouble:
            name = self.desired.name
            _log.warning("workload_trouble", workload=name, error=error.message, hint=error.hint)
        self._trouble = error.message
        self._place.changed(self.desired.name)

    def _pause(self) -> float | None:
        if not self._trouble:
            return None
        return min(_AGAIN_SECONDS * float(2 ** min(self._tries, 10)), _LONGEST_AGAIN_SECONDS)

    def _write(self, **changes: object) -> None:
        desired = dataclasses.replace(self.desired, **changes)  # type: ignore[arg-type]  # fields of it, by name
        # On disk first: what is done before it is remembered would be undone after a crash.
        self._place.states.write(desired)
        self.desired = desired

    def _new_proxy(self) -> envoy.Proxy:
        name = self.desired.name
        folder = self._place.folder / "envoy" / file_name(name)
        return envoy.Proxy(
            folder, self._place.supervisor, self._listen, envoy_mapping.envoy_name(name)
        )


def _is_of(instance: Instance, slot: Slot, revision: str) -> bool:
    return envoy_mapping.slot_of(instance.name) == (slot, revision)
