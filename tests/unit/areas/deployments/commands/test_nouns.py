"""Stacks and deployments in the terminal: lists, filters, and one of them closely."""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.cli import app
from fairlead.console.context import CliContext
from fairlead.engine import service
from fairlead.engine.store import sqlite
from tests import engines
from tests.unit.areas.deployments.domain.samples import flagged

STORY = (
    ("d1", messages.Request("d1", flagged(Flag.QUICK), cause="push", by="ann")),
    ("d2", messages.Request("d2", flagged(Flag.QUICK))),
    ("d1", messages.ReportStackStatus(StackStatus.COMPLETE)),
    ("d1", messages.ReportStep("PGUpsert", 1, StepStatus.DONE)),
    ("d1", messages.ReportStep("CFUpsert", 1, StepStatus.FAILED, "no room")),
)


class Terminal:
    """Types commands of the whole program on a store where a deployment is under way."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._context = CliContext(installation=bootstrap.installation)

    def type(self, *words: str) -> str:
        self._capsys.readouterr()
        assert app.run([*words], self._context) == 0
        return self._capsys.readouterr().out


async def tell(folder: Path) -> None:
    kept = sqlite.SqliteStore(folder / "fairlead.db")
    kept.migrate()
    known = parts.machines([parts.core(DEPLOYMENTS)])
    made = service.Engine(service.Parts(kept, known, {}), perform=False)
    async with made.running() as engine:
        for name, command in STORY:
            await engines.tell(engine, f"deployment/{name}", command)


@pytest.fixture
def terminal(state_dir: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    state_dir.mkdir()
    asyncio.run(tell(state_dir))
    return Terminal(capsys)


def test_a_stack_shows_who_has_its_turn_and_who_waits(terminal: Terminal) -> None:
    listed = terminal.type("get", "stacks").splitlines()
    shown = terminal.type("get", "stack", "prod/shop")

    assert listed[1].split() == ["prod/shop", "CREATING", "d1", "1", "-"]
    assert "queue    d2" in shown


def test_a_deployment_shows_its_plan(terminal: Terminal) -> None:
    shown = terminal.type("get", "deployment", "d1")

    assert "RUNNING (DB_MIGRATING)" in shown
    assert "requested   push by ann" in shown
    steps = {line.split()[0]: line for line in shown.partition("STEP")[2].splitlines()[1:]}
    assert steps["CFUpsert"].endswith("no room")
    assert "ACTIVE" in steps["PGMigrate"]
    assert "BLOCKED" in steps["PGCleanup"]


def test_what_is_tried_again_is_told_beside_its_step(terminal: Terminal, state_dir: Path) -> None:
    with contextlib.closing(sqlite3.connect(state_dir / "fairlead.db")) as store:
        store.execute(
            "UPDATE outbox SET attempts = 2, error = 'a lock is held by others'"
            " WHERE type = 'RunMigrations'"
        )
        store.commit()

    shown = terminal.type("get", "deployment", "d1")
    told = json.loads(terminal.type("get", "deployment", "d1", "-o", "json"))

    why = "try 2 failed, it is tried again: a lock is held by others"
    (migrating,) = (line for line in shown.splitlines() if line.startswith("PGMigrate"))
    assert migrating.endswith(why)
    assert why in [each["error"] for each in told["data"]["steps"]]


def test_what_no_worker_performs_is_told(terminal: Terminal, state_dir: Path) -> None:
    with contextlib.closing(sqlite3.connect(state_dir / "fairlead.db")) as store:
        store.execute("UPDATE outbox SET due_at = 0")
        store.commit()

    shown = terminal.type("get", "deployment", "d1").splitlines()

    why = "no worker serves streams without a queue since 1970-01-01 00:00:00 UTC"
    (migrating,) = (line for line in shown if line.startswith("PGMigrate"))
    assert migrating.endswith(why)


def test_deployments_are_found_by_what_they_are(terminal: Terminal) -> None:
    queued = terminal.type("get", "deployments", "--where", "status=QUEUED")
    told = json.loads(terminal.type("get", "deployments", "-o", "json"))

    assert [line.split()[0] for line in queued.splitlines()] == ["DEPLOYMENT", "d2"]
    assert {each["data"]["status"] for each in told} == {"QUEUED", "RUNNING"}


def test_people_end_a_deployment_by_a_command_of_its_machine(terminal: Terminal) -> None:
    terminal.type("submit", "deployment/d2", "Terminate", '{"by": "ann", "why": "wrong one"}')

    assert "queue    empty" in terminal.type("get", "stack", "prod/shop")
    assert "wrong one" in terminal.type("get", "deployment", "d2")
