"""A rolling upgrade, a roll-back and the upgrade again, while parcels are sent all the time.

Version 2 brings a new type of effect, a new version of an event and of the state, an optional
field of a command, and a wider schema. Nothing may be lost, buried or done twice.
"""

import asyncio
import contextlib
import functools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.engine import batch, codec, machine, messages, service, visibility
from fairlead.engine.store import protocol
from tests.durability import outside, parcel_v1, parcel_v2, story
from tests.durability.conftest import NewStorySetup
from tests.durability.program import EXPANSION, Program

WORKERS, STOPS = 3, 4
REGISTRY = batch.MachineRegistry(machine.Machines([parcel_v2.PARCEL]))
SENDS = {1: parcel_v1.Send(STOPS), 2: parcel_v2.Send(STOPS, express=False)}


@dataclass(slots=True)
class Fleet:
    """The workers of one store, each replaced by one of another version in its turn."""

    place: story.StorySetup
    folder: Path
    door: service.Engine
    workers: list[contextlib.ExitStack] = field(default_factory=list)
    starts: int = 0

    async def roll(self, version: int) -> None:
        """Replace all workers by this version, one by one; the first time, start them."""
        for _ in range(WORKERS):
            if len(self.workers) == WORKERS:
                await asyncio.to_thread(self.workers.pop(0).close)
            await self._start(version)

    async def _start(self, version: int) -> None:
        self.starts += 1
        log = self.folder / f"worker-{self.starts}-version-{version}.log"
        held = contextlib.ExitStack()
        self.workers.append(held)
        process = held.enter_context(Program(version, self.place).process(log))
        if self.starts % 2:
            # Every other one may hand over what it holds; the rest are killed.
            held.callback(_end, process)
        async with asyncio.timeout(story.PATIENCE):
            while not await self._lives(process.pid):
                assert process.exitcode is None, log.read_text()
                await asyncio.sleep(0.05)

    async def _lives(self, pid: int | None) -> bool:
        rows = await self.door.read(lambda s: s.rows("live_workers", now=0))
        return any(str(name).endswith(f":{pid}") for _, name, *_ in rows)


def _end(process: BaseProcess) -> None:
    process.terminate()
    process.join(story.PATIENCE)


@contextlib.contextmanager
def fleet(place: story.StorySetup, folder: Path, door: service.Engine) -> Iterator[Fleet]:
    made = Fleet(place, folder, door)
    try:
        yield made
    finally:
        for each in made.workers:
            each.close()


@dataclass(slots=True)
class Load:
    """Sends a parcel now and then through the door in production, and asks for older ones."""

    doors: dict[int, service.Engine]
    production: int = 1
    sent: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    over: bool = False

    @contextlib.asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Ends between two parcels: one cut off in its sending may be sent, and not counted."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._go_on())
            try:
                yield
            finally:
                self.over = True

    async def _go_on(self) -> None:
        while not self.over:
            number = self.sent + 1
            await self._tell(self.production, number, SENDS[self.production], f"send {number}")
            self.sent = number
            # The answer got lost, and the retry meets a door of the other version.
            other = 3 - self.production
            await self._tell(other, number, SENDS[other], f"send {number}")
            older = random.randint(1, number)
            await self._tell(self.production, older, parcel_v1.Nudge(), f"nudge {number}")
            await asyncio.sleep(0.03)

    async def _tell(self, version: int, number: int, command: object, id_: str) -> None:
        door, stream = self.doors[version], messages.stream_name("parcel", str(number))
        try:
            receipt = await door.submit(stream, command, messages.command_id(id_))
        except errors.Newer:
            # Asked again later, by whoever wants to know; the first one sent it.
            assert version == 1
            self.seen["newer"] += 1
        else:
            self.seen["again" if receipt.duplicate else "taken"] += 1

    async def until_sent(self, more: int) -> None:
        """A while, as work counts it: so many parcels later."""
        target = self.sent + more

        async def sent() -> bool:
            return self.sent >= target

        await until(sent)


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(story.PATIENCE):
        while True:
            if await check():
                return
            await asyncio.sleep(0.05)


async def over(door: service.Engine) -> bool:
    return await door.read(lambda s: s.rows("count_rows")) == [(0, 0, 0, 0)]


async def ended(door: service.Engine, number: int) -> bool:
    name = messages.stream_name("parcel", str(number))
    view = await door.read(lambda session: visibility.stream(session, name))
    return view.ended_at is not None


def check_events(session: protocol.Session, name: messages.StreamName) -> None:
    """The events of both versions, read by the later one, fold to the state in the row."""
    registered = REGISTRY.of(name)
    (stream,) = session.rows("get_stream", name=name)
    rows = session.rows("stream_events", name=name, after=0, limit=1000)
    events = [registered.codec.events.decode(codec.Encoded(*row[2:5])) for row in rows]
    folded = functools.reduce(registered.machine.evolve, events, registered.machine.initial)
    assert [row[1] for row in rows] == list(range(1, stream[3] + 1))
    assert folded == registered.codec.states.decode(codec.Encoded(*stream[4:7])), name


def check(place: story.StorySetup, sent: int) -> int:
    """Nothing lost, nothing twice; how often the outside was asked again."""
    with contextlib.closing(place.store().open()) as session:
        streams = visibility.streams(session, visibility.StreamFilter(limit=100_000))
        assert sorted(int(each.name.partition("/")[2]) for each in streams) == [*range(1, sent + 1)]
        assert [each.name for each in streams if each.ended_at is None] == []
        for each in streams:
            check_events(session, each.name)
    world = outside.Outside(place.rollout)
    stops = {f"parcel/{n} stop {stop + 1}": 1 for n in range(1, sent + 1) for stop in range(STOPS)}
    assert {what: len(keys) for what, keys in world.accepted().items()} == stops
    return world.count() - len(stops)


@pytest.mark.slow
async def test_versions_replace_each_other_to_and_fro_under_load(
    new_story_setup: NewStorySetup, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    place, begun = new_story_setup("rolling"), time.monotonic()
    old, new = (Program(version, place).engine(perform=False) for version in (1, 2))

    async with old.running(), new.running():
        load = Load({1: old, 2: new})
        with fleet(place, tmp_path, old) as workers:
            await workers.roll(1)
            async with load.going_on():
                await load.until_sent(20)
                await workers.roll(2)
                load.production = 2
                await load.until_sent(20)
                load.production = 1
                await workers.roll(1)
                before = load.sent
                await load.until_sent(20)
                # What version 1 sends goes on beside what waits for version 2.
                last = load.sent
                await until(lambda: ended(old, last))
                left = [each for each in range(1, before) if not await ended(old, each)]
                await workers.roll(2)
                load.production = 2
                await load.until_sent(10)
            await until(lambda: over(old))

    repeats = check(place, load.sent)
    assert EXPANSION.name not in place.store().pending_migrations()
    assert left
    assert load.seen["newer"] > 0
    assert load.seen["again"] > 0
    seen = {"sent": load.sent, **load.seen, "waited": len(left), "repeats": repeats}
    record_property("upgrade", {**seen, "seconds": round(time.monotonic() - begun, 1)})
