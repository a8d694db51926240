"""What is stored, in the terminal: the files that `validate` takes, lists, and removal."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from fairlead import bootstrap
from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.deployments.commands import definitions
from fairlead.areas.deployments.domain.definition import Store
from fairlead.areas.deployments.specs import reading
from fairlead.cli import app
from fairlead.console.context import CliContext
from fairlead.console.nouns import Noun
from fairlead.engine import service
from fairlead.engine.store import sqlite
from tests import engines
from tests.unit.areas.deployments.specs import files
from tests.unit.areas.deployments.specs.test_target import TARGET

NOUNS = (definitions.CLUSTER_NOUN, definitions.ENVIRONMENT_NOUN, definitions.PUSH_TARGET_NOUN)


async def tell(folder: Path) -> None:
    kept = sqlite.SqliteStore(folder / "fairlead.db")
    kept.migrate()
    made = service.Engine(
        service.Parts(kept, parts.machines([parts.core(DEPLOYMENTS)]), {}), perform=False
    )
    target = msgspec.to_builtins(reading.push_target(TARGET))
    async with made.running() as engine:
        await engines.tell(engine, "cluster/east", Store(files.CLUSTER, "ann"))
        await engines.tell(engine, "environment/prod", Store({"full_name": "prod"}, "ann"))
        await engines.tell(engine, "push-target/prod/shop", Store(target, "bob"))


@pytest.fixture
def context(state_dir: Path) -> CliContext:
    state_dir.mkdir()
    asyncio.run(tell(state_dir))
    return CliContext(installation=bootstrap.installation)


def test_lists_and_one_of_them_closely(
    context: CliContext, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["get", "push-targets"], context) == 0
    assert app.run(["get", "push-target", "prod/shop"], context) == 0
    assert app.run(["get", "environments", "-o", "json"], context) == 0

    out = capsys.readouterr().out
    assert "prod/shop  1        bob  acme/shop main, release/*, v*.*" in out
    assert "path: fairlead.yaml" in out
    assert json.loads(out[out.index("[") :])[0]["name"] == "environment/prod"


def test_a_removal_asks_what_still_needs_it(
    context: CliContext, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = app.run(["remove", "environment/prod", "--yes"], context)
    told = capsys.readouterr().err
    assert app.run(["remove", "push-target/prod/shop", "--yes"], context) == 0
    assert app.run(["remove", "environment/prod", "--yes"], context) == 0
    missing = app.run(["get", "environment", "prod"], context)

    assert refused == 6
    assert "in use: prod/shop" in told
    assert missing == 4


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.singular)
def test_the_file_to_start_from_is_valid(
    noun: Noun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert noun.manifest is not None
    file = tmp_path / "a.yaml"
    file.write_text(noun.manifest.starter)

    assert app.run(["validate", str(file)], CliContext()) == 0

    assert f"valid: {noun.singular}" in capsys.readouterr().out
    assert noun.progress is not None
    assert noun.progress(None, "version 1").state == "done"


def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("kind: push-target\nenvironment: prod\napplication: shop\nrepository: x\n")

    assert app.run(["validate", str(file)], CliContext()) == 3

    assert f"{file}:4:1" in capsys.readouterr().err
