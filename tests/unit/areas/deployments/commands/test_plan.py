"""`fairlead plan`: what it prints for files on disk, and what it says to bad ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV
from tests.unit.cli.conftest import Run

SEEN = {
    "stack": "UPDATE_COMPLETE",
    "databases": {"orders": {"pending": 1, "class": "PARALLEL", "reasons": ["an index"]}},
    "changes": [],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    environment = {key: value for key, value in ENV.items() if key != "deployments"}
    contents = {"app": APP, "env": environment, "cluster": CLUSTER, "seen": SEEN}
    for name, content in contents.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(content, indent=1), encoding="utf-8")
    return tmp_path


def planned(run: Run, files: Path, *more: str) -> Any:
    where = ("--app", str(files / "app.yaml"), "--env", str(files / "env.yaml"))
    ran = run("plan", *where, *more, "-o", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def names(told: Any) -> list[str]:
    return [step["name"] for step in told["steps"]]


@pytest.mark.requirement("deployer P4d", "deployer P5")
def test_what_was_observed_chooses_the_branch(run: Run, files: Path) -> None:
    told = planned(run, files, "--observed", str(files / "seen.yaml"))

    assert [*told] == ["mode", "class", "reasons", "steps"]
    assert (told["mode"], told["class"], told["reasons"]) == ("full", "PARALLEL", ["an index"])
    evaluation = ["PGUpsert", "PGEval", "CFPlan", "EvalJoin"]
    assert names(told) == [*evaluation, "CFUpsert", "PGMigrate", "PGCleanup"]
    assert told["steps"][3] == {
        "name": "EvalJoin",
        "kind": "EvalJoin",
        "depends_on": ["PGEval", "CFPlan"],
    }


def test_without_an_observation_all_four_branches_are_shown(run: Run, files: Path) -> None:
    told = planned(run, files, "--cluster", str(files / "cluster.yaml"))

    assert told["class"] is None
    branches = {step["branch"] for step in told["steps"] if "branch" in step}
    assert branches == {"NOP", "PARALLEL", "BEFORE", "DOWNTIME"}


@pytest.mark.requirement("deployer P2", "deployer P3")
def test_flags_choose_other_plans(run: Run, files: Path) -> None:
    quick = planned(run, files, "--flag", "quick")
    line = planned(run, files, "--flag", "sequential")

    assert names(quick) == ["CFUpsert", "PGUpsert", "PGMigrate", "PGCleanup"]
    assert names(line) == ["ScaleDown", "InfraMigrate", "PGMigrate", "ScaleUp"]


def test_a_missing_stack_is_made(run: Run, files: Path) -> None:
    (files / "seen.yaml").write_text("stack: MISSING", encoding="utf-8")

    told = planned(run, files, "--observed", str(files / "seen.yaml"))

    assert names(told) == ["InfraMigrate", "PGMigrate", "ScaleUp"]
    assert "missing" in told["reasons"][0]


def test_people_see_a_table(run: Run, files: Path) -> None:
    ran = run("plan", "--app", str(files / "app.yaml"), "--env", str(files / "env.yaml"))

    assert "STEP" in ran.out
    assert "not observed" in ran.out


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("app", "name: shop\nruntime: []\n", "app.yaml:2:1: runtime: unknown field"),
        ("app", "name: [", "not YAML or JSON"),
        ("env", "full_name: prod\ncluster_name: west\n", "env.yaml:2:1: cluster_name: unknown"),
        ("cluster", "name: east\n", "cluster.yaml:1:1: aws: missing"),
        ("seen", "stack: SHINY\n", "SHINY"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(
    run: Run, files: Path, file: str, text: str, told: str
) -> None:
    (files / f"{file}.yaml").write_text(text, encoding="utf-8")
    named = {"app": "--app", "env": "--env", "cluster": "--cluster", "seen": "--observed"}
    arguments = [
        word for name, option in named.items() for word in (option, str(files / f"{name}.yaml"))
    ]

    ran = run("plan", *arguments)

    assert ran.code == 3
    assert told in ran.err
    assert "hint:" in ran.err
