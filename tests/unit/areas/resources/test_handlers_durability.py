"""Cut before and after every commit, while one call in five fails: made once, and as declared."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.resources import handlers
from fairlead.areas.resources.domain.reconcile import events
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import Apply
from fairlead.clients.arm.client import Arm
from fairlead.engine import clock, service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.simulated_cloud import Behaviour, SimulatedCloud
from tests.unit.areas.resources.driven import APPLY, ID, declared, ports

NAME = stream(ID)
_WRITE = events.WriteStarted.__name__


@pytest.mark.slow
@pytest.mark.requirement("resources R24", "resources R29")
async def test_no_cut_and_no_failing_call_makes_two_or_loses_a_change(tmp_path: Path) -> None:
    numbers = itertools.count()
    cloud = SimulatedCloud(Behaviour("azure-async-operation", polls=1, failing=0.2))

    def fresh() -> protocol.Store:
        for each in (cloud.stored, cloud.operations, cloud.made, cloud.writes):
            each.clear()
        return sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db", [RESOURCE.name])

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        return service.Engine(service.Parts(store, (RESOURCE,), performed, wall=wall))

    async def act(engine: service.Engine) -> None:
        await engine.submit(NAME, APPLY, command_id("apply"))
        changed = Apply(declared(tags={"tag2": "new"}))
        await engine.submit(NAME, changed, command_id("change"))

    async def settled(engine: service.Engine) -> bool:
        view = await engine.read(lambda s: visibility.stream(s, NAME))
        return bool(view.data["phase"] == "Ready" and view.data["converged"] == 2)

    async def check(engine: service.Engine) -> None:
        assert cloud.made == {ID.lower(): 1}
        shown = cloud.shown(ID)
        assert shown is not None
        assert shown["tags"] == {"tag2": "new"}
        told = await engine.read(lambda s: visibility.events(s, NAME, limit=100))
        plans = [each.data["plan"] for each in told if each.type == _WRITE]
        planned = {(each["method"], _changed(each)) for each in plans}
        assert {(method, _sent(method, body)) for method, _, body in cloud.writes} <= planned

    async with cloud.serving():
        world = ports(cloud, tmp_path)
        performed = handlers.handlers(world)
        assert isinstance(world.api, Arm)
        async with world.api.open():
            play = Play(fresh, build, act, settled, patience=60.0)
            cuts = await crash_at_every_commit(play, check)

    assert cuts >= 10


def _changed(plan: dict[str, Any]) -> frozenset[str]:
    return frozenset(each["path"] for each in plan["reasons"])


def _sent(method: str, body: dict[str, Any] | None) -> frozenset[str]:
    """What a request changes: the whole, or each value that a patch says."""
    if method == "PUT":
        return frozenset([""])
    return frozenset(_paths("", body or {}))


def _paths(prefix: str, body: dict[str, Any]) -> Iterator[str]:
    for name, value in body.items():
        if isinstance(value, dict):
            yield from _paths(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}"
