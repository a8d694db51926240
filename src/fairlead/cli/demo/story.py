"""The story: order trips, kill the worker on the way, let another finish, prove the rest."""

import asyncio
import time
from dataclasses import dataclass

from fairlead._sample.messages import Order
from fairlead.cli.demo import record, scene, screen, untold, workers
from fairlead.engine import library, messages, service
from fairlead.engine.store import protocol

_LOOK_SECONDS = 0.1
_PAGE = 2000
_CRASH_AT = 0.4


@dataclass(frozen=True, slots=True)
class Told:
    """What the story left to be proven."""

    record: record.Record
    seconds: float
    crash: "Crash"
    order_taken_twice: bool


@dataclass(frozen=True, slots=True)
class Crash:
    """How the first worker ended, and what it left behind."""

    pid: int
    ended_with: int
    home_before: int
    held: int


async def tell(plan: scene.Plan, engine: service.Engine, shown: screen.Screen) -> Told:
    """Until the last trip is home; Untold where something else happens."""
    place = await engine.read(library.feed_end)
    seen = record.Record(plan, engine.repertoire, place)
    teller = _Teller(plan, engine, shown, seen)
    try:
        async with asyncio.timeout(plan.patience.total_seconds()):
            return await teller.tell()
    except TimeoutError as error:
        raise untold.Untold(
            f"{seen.home} of {plan.trips} trips were home after {plan.patience.seconds} s"
        ) from error


@dataclass(frozen=True, slots=True)
class _Teller:
    plan: scene.Plan
    engine: service.Engine
    shown: screen.Screen
    seen: record.Record

    async def tell(self) -> Told:
        async with workers.hired(self.plan.folder, 1) as first:
            self.shown.say(f"worker {first.pid} is at work")
            start = time.monotonic()
            twice = await self._order()
            await self._follow(first, transitions=int(self.plan.transitions * _CRASH_AT))
            crash = await self._crash(first)
        async with workers.hired(self.plan.folder, 2) as second:
            self.shown.say(f"worker {second.pid} took its place, and takes over what it held")
            await self._follow(second, transitions=self.plan.transitions)
            seconds = time.monotonic() - start
        return Told(self.seen, seconds, crash, twice)

    async def _order(self) -> bool:
        """Order the trips, twice under one id as a nervous client would; whether both counted."""
        order = Order(self.plan.depot, self.plan.trips, scene.LEGS, scene.AT_ONCE)
        id_ = messages.command_id(f"order for {self.plan.depot}")
        first = await self.engine.submit(self.plan.stream, order, id_)
        again = await self.engine.submit(self.plan.stream, order, id_)
        return not again.duplicate or again != first

    async def _crash(self, worker: workers.Worker) -> Crash:
        home = self.seen.home
        ended_with = await worker.kill()
        held = await self.engine.read(self._held)
        self.shown.say(f"worker {worker.pid} killed (SIGKILL) with {held} legs on the road")
        return Crash(worker.pid, ended_with, home, held)

    def _held(self, session: protocol.Session) -> int:
        found = library.effects(session, limit=10_000)
        return sum(1 for each in found if each.held and self.plan.owns(each.stream))

    async def _follow(self, worker: workers.Worker, transitions: int) -> None:
        """Read the feed until so much has happened."""
        while self.seen.transitions < transitions:
            worker.check()
            page = await self.engine.read(lambda s: library.feed(s, self.seen.place, _PAGE))
            self.seen.take(page)
            self.shown.progress(self.seen.home, self.seen.transitions)
            if len(page) < _PAGE:
                await asyncio.sleep(_LOOK_SECONDS)
