"""How far a deployed version has come, on a real engine."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

from fairlead.analysis.conditions import Phase as CheckPhase
from fairlead.areas.rollouts import detail
from fairlead.areas.rollouts.commands.progress import CHECKS, progress, result
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.engine import service
from fairlead.engine.messages import command_id
from fairlead.engine.store import sqlite
from fairlead.values import Percent
from tests.fakes import fleet

FREE = Spec(Strategy(steps=(Pace(Percent(10)),)))
"""No step waits for a person."""


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[service.Engine]:
    store = sqlite.SqliteStore(folder / "fairlead.db")
    store.migrate()
    cast = fleet.Fleet().cast()
    parts = service.Parts(store, cast.machines, cast.handlers, cast.views)
    async with service.Engine(parts).running() as engine:
        yield engine


def said(told: detail.Detail, revision: str) -> tuple[str, str]:
    then = progress(told, revision)
    return then.state, then.why


async def test_a_version_that_waits_for_a_person_is_paused(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        told = await fleet.halfway(engine, "shop")

    then = progress(told, "shop-v2")
    assert then.state == "paused"
    assert then.hint.startswith("go on with one of: fairlead approve shop, fairlead promote shop")
    assert then.frame[:4] == (
        "shop  AwaitingApproval  v1 90 %, v2 10 %",
        "  current           1   10 %  needs approval",
        "  to come           2   50 %  needs approval",
        "  to come           3  100 %",
    )
    assert said(told, "shop-v1") == ("replaced", "another version was requested meanwhile")


async def test_what_no_worker_performs_is_told_beside_how_it_stands(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        told = await fleet.live(engine, "shop", FREE)
    why = "no worker serves kubernetes@prod since 2030-01-01 00:00:00 UTC"

    then = progress(dataclasses.replace(told, unserved=why), "shop-v2")

    assert then.frame[-2:] == (told.rollout.sentence, why)


def test_every_result_of_a_check_has_its_word() -> None:
    phases = {each.value for each in CheckPhase} - {"Pending"} | {"Waiting", "NoVerdict"}

    assert set(CHECKS) == phases


def test_what_is_measured_on_is_called_good_so_far_as_on_the_page() -> None:
    measured = detail.CheckSheet("errors", "", "", "Running", "2 measurements", "Successful")

    assert result(measured) == "good so far"
    assert result(dataclasses.replace(measured, last="Failed")) == "measuring"


async def test_a_version_with_all_traffic_is_done(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        told = await fleet.live(engine, "shop", FREE)
        await fleet.want(engine, "shop", "v2", FREE)
        later = await fleet.until(engine, "shop", lambda seen: seen.stable == "shop-v2")

    assert said(told, "shop-v1") == ("done", "v1 has all traffic")
    assert said(later, "shop-v2") == ("done", "v2 has all traffic")


async def test_a_version_that_was_rolled_back_has_failed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await fleet.halfway(engine, "shop")
        abort = messages.Abort("ann", "too slow")
        await engine.submit(coordination.rollout_stream("shop"), abort, command_id("abort"))
        told = await fleet.until(engine, "shop", lambda seen: seen.rollout.phase == "RolledBack")

    state, why = said(told, "shop-v2")
    assert state == "failed"
    assert why.startswith("rolled back to v1: ")
    assert "too slow" in why
