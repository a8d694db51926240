"""A release that is cut before and after every commit still ends as the sequence has it."""

import datetime as dt
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.areas.content.domain.population import NOBODY
from fairlead.areas.content.domain.release import messages
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.machine import RELEASE
from fairlead.areas.content.domain.release.place import NO_VERSION, Versions
from fairlead.engine import clock, outbox, service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.unit.areas.content.domain.release import samples

NAME = stream("gathering")
# The clock is wound by quarters of a second: a bake of hours would take minutes.
SHORT = dt.timedelta(seconds=1)
STEPS = tuple(replace(each, bake=SHORT) for each in samples.STEPS)
PROPOSE = replace(samples.PROPOSE, plan=replace(samples.PLAN, steps=STEPS, poll_interval=SHORT))
ORDER = ["0", "1.0.1/1.0.2", "1000", "5000", "1.0.2/none", "0"]


async def test_a_crash_at_every_commit_ends_the_same(tmp_path: Path) -> None:
    numbers, worlds = itertools.count(), []

    def fresh() -> protocol.Store:
        worlds.append(_World())
        return sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db", [RELEASE.name])

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        return service.Engine(service.Parts(store, (RELEASE,), worlds[-1].handlers(), wall=wall))

    async def act(engine: service.Engine) -> None:
        await engine.submit(NAME, PROPOSE, command_id("propose"))
        await engine.submit(NAME, samples.approval(PROPOSE), command_id("approve"))

    async def settled(engine: service.Engine) -> bool:
        view = await engine.read(lambda s: visibility.stream(s, NAME))
        return bool(view.data["phase"] == "Idle" and view.data["runs"] == 1)

    async def check(engine: service.Engine) -> None:
        view = await engine.read(lambda s: visibility.stream(s, NAME))
        assert (view.data["stable"], view.data["share"]) == ("1.0.2", 0)
        # What was performed twice was performed twice in a row.
        assert [each for each, _ in itertools.groupby(worlds[-1].performed)] == ORDER
        events = await engine.read(lambda s: visibility.events(s, NAME, limit=100))
        assert [each.type for each in events].count("Promoted") == 1

    cuts = await crash_at_every_commit(Play(fresh, build, act, settled, patience=60.0), check)

    assert cuts >= 10


class _World:
    def __init__(self) -> None:
        self.performed: list[str] = []
        self.share = 0

    def handlers(self) -> outbox.Handlers:
        made: dict[type, Any] = {
            messages.SetShare: self._set,
            messages.Deploy: self._deploy,
            messages.Measure: self._measure,
        }
        return {effect: outbox.Handler(perform) for effect, perform in made.items()}

    async def _set(
        self, effect: messages.SetShare, _: outbox.EffectContext
    ) -> messages.ShareConfirmed:
        self.performed.append(str(effect.share))
        self.share = effect.share
        return messages.ShareConfirmed(effect.order)

    async def _deploy(
        self, effect: messages.Deploy, _: outbox.EffectContext
    ) -> messages.DeploymentReady:
        wanted: Versions = effect.versions
        assert wanted.canary == NO_VERSION or self.share == NOBODY
        self.performed.append(f"{wanted.stable}/{wanted.canary}")
        return messages.DeploymentReady(effect.order)

    async def _measure(self, effect: messages.Measure, _: outbox.EffectContext) -> messages.Judged:
        return messages.Judged(effect.ticket, (samples.GOOD,))
