"""A worker that keeps resources at rest, for two hours of a clock that it winds."""

import asyncio
import resource
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from fairlead.areas.resources import handlers
from fairlead.areas.resources.budgeted import Budgeted
from fairlead.areas.resources.domain import reading
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.budget import BUDGET
from fairlead.areas.resources.domain.documents import Documents
from fairlead.areas.resources.domain.model import Model
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import Apply, Declared
from fairlead.areas.resources.finding import Api
from fairlead.areas.resources.host import Begun
from fairlead.clients.arm.client import Answer, Arm, Follow, Question
from fairlead.clients.arm.identity import FileToken
from fairlead.engine import service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import HandWoundClock

_AT = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets"
_HOURS, _STEP = 2, timedelta(minutes=1)
_STEPS_OF_AN_HOUR = 60
_QUIET = 3


class Rest(msgspec.Struct, frozen=True):
    """What to keep, and where."""

    url: str
    count: int
    reads: int
    writes: int


@dataclass
class Counted:
    """An API, and what was asked of it in each hour."""

    api: Api
    wall: HandWoundClock
    hours: Counter[int]

    async def ask(self, question: Question) -> Answer:
        self.hours[int(self.wall.steady() // 3600)] += 1
        return await self.api.ask(question)

    async def follow(self, at: Follow, correlation: str = "") -> Answer:
        return await self.api.follow(at, correlation)


async def keep(job: Rest, folder: Path) -> dict[str, float]:
    (folder / "token").write_text("t\n")
    wall, hours = HandWoundClock(), Counter[int]()
    arm = Arm(job.url, FileToken(folder / "token"), "url")
    counted = Counted(arm, wall, hours)
    api = Budgeted(counted, job.url, {"reads": job.reads, "writes": job.writes})
    model, begun = _model(), Begun()
    ports = handlers.ResourcePorts(api, lambda _, __: model, Seal(b"k"), str, begun)
    store = sqlite.SqliteStore(folder / "store.db", [RESOURCE.name, BUDGET.name])
    store.migrate()
    parts = service.Parts(store, (RESOURCE, BUDGET), handlers.handlers(ports), wall=wall)
    engine, started = service.Engine(parts), time.process_time()
    async with arm.open(), engine.running():
        api.engine = begun.engine = engine
        async with asyncio.TaskGroup() as group:
            for number in range(job.count):
                told = Apply(Declared(model.type.type, "1", f"{_AT}/n{number}", _SPEC))
                name = stream(told.declared.id)
                group.create_task(engine.submit(name, told, command_id(f"apply {number}")))
        for _ in range(_HOURS * _STEPS_OF_AN_HOUR):
            await _quiet(engine)
            wall.advance(_STEP)
        await _quiet(engine)
        ready = await engine.read(lambda session: _ready(session, job.count))
    return {
        "ready": ready,
        "most_reads_of_an_hour": max(hours.values()),
        "reads_of_the_last_hour": hours[_HOURS - 1],
        "cpu_ms_a_read": (time.process_time() - started) * 1000 / hours.total(),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


_SPEC = {"tags": {"tag1": "value"}, "properties": {"notes": "x" * 2_000}}


def _model() -> Model:
    text, said = {"type": "string"}, {"$ref": "#/definitions/Set"}
    properties = {
        "tags": {"type": "object", "additionalProperties": text},
        "properties": {"properties": {"notes": text, "provisioningState": text}},
    }
    one = {
        "get": {"responses": {"200": {"schema": said}}},
        "put": {"parameters": [{"in": "body", "schema": said}], "responses": {}},
    }
    parameters = "/subscriptions/{s}/resourceGroups/{g}/providers/Acme.Toys/sets/{name}"
    document = {
        "swagger": "2.0",
        "info": {"version": "1"},
        "paths": {parameters: one},
        "definitions": {"Set": {"properties": properties}},
    }
    (found,) = reading.read(Documents({"a.json": document}), ["a.json"], {})
    return Model.of(found)


def _ready(session: protocol.Session, count: int) -> int:
    ready, before = 0, None
    while True:
        which = visibility.StreamFilter(RESOURCE.name, before=before, limit=min(count, 500))
        found = visibility.streams(session, which)
        ready += len([each for each in found if each.data["phase"] == "Ready"])
        if not found.more:
            return ready
        before = found[-1].number


async def _quiet(engine: service.Engine) -> None:
    """Nothing is on its way, and nothing comes of it."""
    calm = 0
    while calm < _QUIET:
        await asyncio.sleep(0.02)
        calm = 0 if engine.in_flight or engine.inbox_depth else calm + 1


def main() -> None:
    job = msgspec.json.decode(sys.argv[1], type=Rest)
    with tempfile.TemporaryDirectory() as folder:
        print(msgspec.json.encode(asyncio.run(keep(job, Path(folder)))).decode())


if __name__ == "__main__":
    main()
