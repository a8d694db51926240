"""A resource that is cut before and after every commit is still made once, and as declared."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.engine import clock, outbox, service, visibility
from fairlead.engine import machine as machines
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.unit.areas.resources.domain.reconcile.cloud import DECLARED, Cloud, changed

NAME = stream(DECLARED.id)


@pytest.mark.requirement("resources R29")
@pytest.mark.slow
async def test_a_crash_at_every_commit_makes_it_once_and_loses_no_change(tmp_path: Path) -> None:
    numbers, clouds = itertools.count(), []

    def fresh() -> protocol.Store:
        clouds.append(Cloud())
        return sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db", [RESOURCE.name])

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        handlers = _handlers(clouds[-1])
        return service.Engine(service.Parts(store, (RESOURCE,), handlers, wall=wall))

    async def act(engine: service.Engine) -> None:
        await engine.submit(NAME, messages.Apply(DECLARED), command_id("apply"))
        await engine.submit(NAME, messages.Apply(changed(tag2="b")), command_id("change"))

    async def settled(engine: service.Engine) -> bool:
        view = await engine.read(lambda s: visibility.stream(s, NAME))
        return bool(view.data["phase"] == "Ready" and view.data["converged"] == 2)

    async def check(engine: service.Engine) -> None:
        cloud = clouds[-1]
        assert cloud.made == 1
        assert cloud.body is not None
        assert cloud.body["tags"] == {"tag2": "b"}
        assert len(cloud.writes) == len({*cloud.writes})

    cuts = await crash_at_every_commit(Play(fresh, build, act, settled, patience=60.0), check)

    assert cuts >= 10


def _handlers(cloud: Cloud) -> outbox.Handlers:
    async def perform(effect: Any, _: outbox.EffectContext) -> object:
        answer: object = cloud.perform(effect)
        return answer

    effects = machines.members(RESOURCE.vocabulary.effects)
    return {effect: outbox.Handler(perform) for effect in effects}
