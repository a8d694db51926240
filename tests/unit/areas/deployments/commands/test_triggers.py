"""Triggers in the terminal: a list, and one of them with all of its targets."""

import asyncio
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.deployments.domain.trigger.messages import Refuse, Source, Start, Target
from fairlead.cli import app
from fairlead.console.context import CliContext
from fairlead.engine import service
from fairlead.engine.store import sqlite
from tests import engines

SOURCE = Source("github", "acme/shop", "refs/heads/main", "c" * 40)
TARGETS = (Target("prod", "shop", "a.yaml"), Target("prod", "till", "b.yaml"))


async def tell(folder: Path) -> None:
    kept = sqlite.SqliteStore(folder / "fairlead.db")
    kept.migrate()
    made = service.Engine(
        service.Parts(kept, parts.machines([parts.core(DEPLOYMENTS)]), {}), perform=False
    )
    async with made.running() as engine:
        start = Start("t1", SOURCE, TARGETS, "push to main", "github:ann")
        await engines.tell(engine, "trigger/t1", start)
        await engines.tell(engine, "trigger/t1", Refuse("prod/till", "b.yaml:2:1: name"))


def test_a_list_and_one_of_them_closely(
    state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state_dir.mkdir()
    asyncio.run(tell(state_dir))
    context = CliContext(installation=bootstrap.installation)

    assert app.run(["get", "triggers", "--where", "status=FETCHING"], context) == 0
    listed = capsys.readouterr().out
    assert app.run(["get", "trigger", "t1"], context) == 0
    shown = capsys.readouterr().out

    assert "t1       FETCHING  acme/shop   cccccccccccc  push to main  github:ann" in listed
    assert "prod/shop  FETCHING  -           -" in shown
    assert "prod/till  REFUSED   -           b.yaml:2:1: name" in shown
