"""`fairlead resources ingest`, `kinds` and `describe` as they are typed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.areas.resources.swagger import AZURE, needs_azure, operation, ref, robots
from tests.unit.cli.conftest import Ran

Type = Callable[..., Ran]
ROBOT = {
    "Robot": {
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "size": {"type": "string", "enum": ["S", "L"]},
            "key": {"type": "string", "x-ms-secret": True},
            "arms": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
        }
    }
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "robots.json"
    path.write_text(json.dumps(robots(ROBOT, patch=operation(ref("Robot")))))
    return str(path)


def test_a_type_never_seen_before_is_described_from_its_file_alone(run: Type, file: str) -> None:
    ingested = run("resources", "ingest", file)
    then = run("resources", "describe", "Acme.Toys/robots", "-o", "json")

    assert ingested.err.startswith("types of resources: 1; files: 1; ")
    found = json.loads(then.out)
    assert {name: found[name] for name in ("type", "version", "verbs", "parent", "lro")} == {
        "type": "Acme.Toys/robots",
        "version": "2026-01-01",
        "verbs": ["GET", "PUT", "PATCH"],
        "parent": None,
        "lro": {},
    }
    assert found["properties"][1] == {
        "path": "size",
        "class": "writable",
        "provenance": "difference",
        "confidence": "assumed",
        "patch": True,
        "type": "string",
        "enum": ["S", "L"],
        "secret": False,
        "list_key": None,
    }


def test_people_get_a_table(run: Type, file: str) -> None:
    run("resources", "ingest", file)
    then = run("resources", "describe", "Acme.Toys/robots@2026-01-01")

    lines = [line.split() for line in then.out.splitlines()]
    assert ["type", "Acme.Toys/robots@2026-01-01"] in lines
    assert ["id", "string", "read-only", "readOnly,", "certain"] in lines
    assert ["key", "string", "write-only", "x-ms-secret,", "likely", "PATCH;", "secret"] in lines
    assert "PATCH; items by name" in then.out
    assert "PATCH; S | L" in then.out


def test_kinds_lists_what_was_ingested(run: Type, file: str) -> None:
    run("resources", "ingest", file)

    listed, data = run("resources", "kinds"), run("resources", "kinds", "-o", "json")

    assert listed.out.splitlines()[1].split() == [
        *("Acme.Toys/robots", "2026-01-01", "GET", "PUT", "PATCH")
    ]
    assert json.loads(data.out)[0]["type"] == "Acme.Toys/robots"


def test_files_that_did_not_change_are_not_read_again(run: Type, file: str) -> None:
    run("resources", "ingest", file)

    then = run("resources", "ingest", file)

    assert then.err == "nothing changed; files: 1\n"


@pytest.mark.requirement("resources R13")
def test_overrides_come_from_a_file(run: Type, file: str, tmp_path: Path) -> None:
    overrides = tmp_path / "overrides.yaml"
    overrides.write_text("Acme.Toys/robots: {size: create-only}\n")

    run("resources", "ingest", file, "--overrides", str(overrides))
    then = run("resources", "describe", "Acme.Toys/robots", "-o", "json")

    size = json.loads(then.out)["properties"][1]
    assert (size["class"], size["provenance"]) == ("create-only", "override")


def test_an_override_with_an_unknown_class_is_refused_at_its_place(
    run: Type, file: str, tmp_path: Path
) -> None:
    overrides = tmp_path / "overrides.yaml"
    overrides.write_text("Acme.Toys/robots:\n  size: create\n")

    then = run("resources", "ingest", file, "--overrides", str(overrides))

    assert then.code != 0
    assert "overrides.yaml" in then.err


def test_what_was_never_ingested_is_said_with_the_way_to_do_it(run: Type) -> None:
    then = run("resources", "kinds")

    assert then.code == 4
    assert "hint: read descriptions with fairlead resources ingest PATH" in then.err


def test_several_folders_need_a_tree(run: Type, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    then = run("resources", "ingest", str(tmp_path / "a"), str(tmp_path / "b"))

    assert then.code == 3
    assert "--tree" in then.err


@needs_azure
def test_a_real_file_refers_to_its_tree(run: Type) -> None:
    file = AZURE / "redis/resource-manager/Microsoft.Cache/stable/2020-12-01/redis.json"

    alone = run("resources", "ingest", str(file))
    whole = run("resources", "ingest", str(file), "--tree", str(AZURE))

    assert alone.code == 3
    assert "reference out of the tree" in alone.err
    assert whole.err.startswith("types of resources: 5; files: 1; ")
