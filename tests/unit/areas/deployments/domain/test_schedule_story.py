"""Schedules on the real engine: stored by the API, cut at every commit, asleep for a year."""

import dataclasses
import itertools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.deployments.domain.definition import Remove, Store
from fairlead.areas.deployments.domain.schedule import AimRun
from fairlead.areas.deployments.triggers import handlers
from fairlead.areas.deployments.triggers.repositories import Repositories
from fairlead.clients.github import Account, GitHub
from fairlead.engine import clock, outbox, service, visibility
from fairlead.engine.messages import command_id, parse_stream, stream_name
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import HandWoundClock, Play, crash_at_every_commit
from tests.engines import events, state, tell, until
from tests.unit.areas.deployments.registry.test_api import site, stored
from tests.unit.areas.deployments.triggers.world import TARGET
from tests.unit.web import rig

__all__ = ["site"]
MACHINES = parts.machines([parts.core(DEPLOYMENTS)])
# The clocks of tests begin with the year 2030.
YEARLY: dict[str, Any] = {
    "kind": "schedule",
    "environment": "prod",
    "application": "shop",
    "name": "yearly",
    "cron": "1 0 1 1 *",
    "branch": "main",
}
STREAM = "schedule/prod/shop/yearly"
TRIGGER = "trigger/prod/shop/yearly:20300101T0001Z"


def built(store: protocol.Store, wall: clock.Clock) -> service.Engine:
    """Which knows where push targets are; nobody reads their files here."""
    made: list[service.Engine] = []
    ports = handlers.TriggerPorts(Repositories(GitHub(Account()), {}), lambda: made[0])
    aim: outbox.Handlers = {AimRun: handlers.handlers(ports)[AimRun]}
    made.append(service.Engine(service.Parts(store, MACHINES, aim, wall=wall)))
    return made[0]


async def act(engine: service.Engine) -> None:
    for name, content in (("push-target/prod/shop", TARGET), (STREAM, YEARLY)):
        stream = stream_name(*name.split("/", 1))
        await engine.submit(stream, Store(content, "ann"), command_id(f"store {name}"))


async def started(engine: service.Engine) -> bool:
    found = await state(engine, STREAM)
    return bool(found["last"])


@dataclasses.dataclass
class Story:
    """A schedule whose time comes."""

    folder: Path
    count: Any = dataclasses.field(default_factory=itertools.count)

    def fresh_store(self) -> protocol.Store:
        return sqlite.SqliteStore(self.folder / f"{next(self.count)}.db")


@pytest.mark.slow
async def test_a_schedule_cut_at_any_commit_deploys_once(tmp_path: Path) -> None:
    async def check(engine: service.Engine) -> None:
        assert await events(engine, STREAM) == ["Stored", "Armed", "Fired", "RunStarted"]
        assert await events(engine, TRIGGER) == ["Started"]

    play = Play(Story(tmp_path).fresh_store, built, act, started)

    assert await crash_at_every_commit(play, check) > 3


async def test_a_schedule_that_slept_for_years_wakes_once(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    async with built(sqlite_home.store(), wall).running() as engine:
        await act(engine)
    wall.advance(timedelta(days=3 * 366))

    async with built(sqlite_home.store(), wall).running() as engine:
        await until(lambda: started(engine), wall)
        found = await state(engine, STREAM)

    assert found["last"] == "prod/shop/yearly:20330101T0001Z"
    assert found["note"].startswith("3 passed over until 2033-01-0")


async def test_a_target_that_is_gone_starts_nothing(sqlite_home: Any, wall: HandWoundClock) -> None:
    async with built(sqlite_home.store(), wall).running() as engine:
        await act(engine)
        await tell(engine, "push-target/prod/shop", Remove("ann"))
        wall.advance(timedelta(minutes=1))

        async def told() -> bool:
            return bool((await state(engine, STREAM))["note"])

        await until(told, wall)
        found = await state(engine, STREAM)

        assert found["note"] == "the push target is gone: prod/shop"
        assert await engine.read(lambda s: visibility.find(s, parse_stream(TRIGGER))) is None


async def test_schedules_are_stored_and_refused_as_push_targets_are(site: rig.Site) -> None:
    lonely = await site.client.post("/api/v1/schedules", json=YEARLY)
    await stored(site)
    kept = await site.client.post("/api/v1/schedules", json=YEARLY)
    flags = ["quik", "destroy_database"]
    wrong = {**YEARLY, "cron": "0 0 31 2 *", "tag": "v1", "flags": flags, "time_zone": "Mars"}
    refused = await site.client.post("/api/v1/schedules", json=wrong)
    used = await site.client.post("/api/v1/push-targets/prod/shop/remove", json={})
    page = await site.client.get(f"/definitions/{STREAM}", headers={"Accept": "text/html"})
    listed = await site.client.get("/api/v1/schedules", params={"where": "target=prod/shop"})

    assert lonely.status_code == 400
    assert "no such push-target: prod/shop" in lonely.text
    assert (kept.status_code, kept.json()["name"]) == (200, "prod/shop/yearly")
    for said in (
        "exactly one of branch, tag and commit",
        "no such time zone",
        "unknown flag: quik",
        "destroys data each time: destroy_database",
    ):
        assert said in refused.text
    assert used.status_code == 409
    assert "push-target prod/shop is in use: prod/shop/yearly" in used.text
    assert "Next time" in page.text
    assert [each["name"] for each in listed.json()] == ["prod/shop/yearly"]
