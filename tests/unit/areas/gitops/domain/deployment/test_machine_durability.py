"""A deployment that is cut before and after every commit is applied, changed and removed."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.gitops.domain import messages
from fairlead.areas.gitops.domain.deployment.machine import DEPLOYMENT
from fairlead.engine import clock, outbox, service, visibility
from fairlead.engine import machine as machines
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from fairlead.kubernetes.messages import PublishStatus, ReleaseObject
from tests.unit.areas.gitops.domain.deployment.samples import MAP, SUBJECT, WEB, declare, observed

NAME = stream_name(DEPLOYMENT.name, "team-a/shop/uid")
SECOND = messages.Intent("https://git.example/shop.git", "second")


class World:
    """Git with two folders, a namespace, and the object itself."""

    def __init__(self) -> None:
        self.applied: set[messages.ObjectRef] = set()
        self.operations: set[str] = set()
        self.released = False

    def perform(self, effect: Any) -> object | None:
        match effect:
            case messages.Gather(order):
                return messages.Gathered(order, "ns-uid", "builtin")
            case messages.Render(order, operation, _, intent):
                self.operations.add(operation.operation_id)
                found = (MAP,) if intent.path == "second" else (MAP, WEB)
                return messages.Rendered(order, "f" * 40, found)
            case messages.Apply():
                found = (MAP,) if effect.intent.path == "second" else (MAP, WEB)
                self.applied = (self.applied | {*found}) - {*effect.obsolete}
                return messages.Applied(effect.order, observed(*found))
            case messages.Remove():
                self.operations.add(effect.operation.operation_id)
                self.applied -= {*effect.inventory}
                return messages.Removed(effect.order)
            case ReleaseObject():
                self.released = True
        return None


@pytest.mark.slow
@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
async def test_a_crash_at_every_commit_loses_no_intent(tmp_path: Path, *, is_deleted: bool) -> None:
    numbers, worlds = itertools.count(), []

    def fresh() -> protocol.Store:
        worlds.append(World())
        return sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db", [DEPLOYMENT.name])

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        handlers = _handlers(worlds[-1])
        return service.Engine(service.Parts(store, (DEPLOYMENT,), handlers, wall=wall))

    async def act(engine: service.Engine) -> None:
        await engine.submit(NAME, declare(), command_id("first"))
        await engine.submit(NAME, declare(SECOND, 2), command_id("second"))
        if is_deleted:
            await engine.submit(NAME, messages.Delete(SUBJECT), command_id("delete"))

    async def settled(engine: service.Engine) -> bool:
        view = await engine.read(lambda s: visibility.stream(s, NAME))
        if is_deleted:
            return view.data["phase"] == "Gone" and worlds[-1].released
        return bool(view.data["phase"] == "Waiting" and view.data["operated"] == 2)

    async def check(_: service.Engine) -> None:
        assert worlds[-1].applied == (set() if is_deleted else {MAP})
        assert len(worlds[-1].operations) <= 3

    cuts = await crash_at_every_commit(Play(fresh, build, act, settled, patience=60.0), check)

    assert cuts >= 5


def _handlers(world: World) -> outbox.Handlers:
    async def perform(effect: Any, _: outbox.EffectContext) -> object | None:
        return world.perform(effect)

    effects = machines.members(DEPLOYMENT.vocabulary.effects)
    assert PublishStatus in effects
    return {effect: outbox.Handler(perform) for effect in effects}
