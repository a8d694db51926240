"""`fairlead resources import` as it is typed: a file that plans to nothing, and is kept."""

import json
from pathlib import Path

import pytest

from tests.simulated_cloud import SimulatedCloud
from tests.unit.areas.resources.commands.test_reconcile import (
    ID,
    Type,
    cloud,
    file,
    run,
    wanted,
    written,
)
from tests.unit.areas.resources.commands.test_resources import ROBOT
from tests.unit.areas.resources.swagger import robots

__all__ = ["cloud", "file", "run", "wanted"]
SHOWN = {"size": "S", "arms": [{"name": "left"}], "theirs": 1}


@pytest.mark.requirement("resources R33")
@pytest.mark.parametrize("patches", [True, False], ids=["PATCH", "PUT"])
def test_what_is_there_is_attached_without_a_write_by_a_file_that_plans_to_nothing(
    run: Type, file: str, tmp_path: Path, cloud: SimulatedCloud, *, patches: bool
) -> None:
    plain = written(tmp_path, "plain.json", json.dumps(robots(ROBOT)))
    run("resources", "ingest", file if patches else plain)
    cloud.put(ID, SHOWN)

    then = run("resources", "import", ID)

    assert then.out.splitlines() == [
        "kind: cloud-resource",
        "type: Acme.Toys/robots",
        "apiVersion: '2026-01-01'",
        f"resourceId: {ID}",
        "properties:",
        "  size: S",
        "  arms:",
        "  - name: left",
    ]
    made = written(tmp_path, "made.yaml", then.out)
    assert run("resources", "plan", made).out == "nothing to change\n"
    (one,) = json.loads(run("get", "resources", "-o", "json").out)
    assert (one["id"], one["phase"], cloud.writes) == (ID, "Ready", [])
    written(tmp_path, "made.yaml", then.out.replace("size: S", "size: L"))
    run("resources", "apply", made)
    shown = cloud.shown(ID)
    assert shown is not None
    assert (shown["size"], shown["theirs"]) == ("L", 1)
    assert [method for method, _, _ in cloud.writes] == ["PATCH" if patches else "PUT"]


def test_what_is_kept_already_is_not_imported_over_its_file(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    run("resources", "apply", wanted)

    then = run("resources", "import", ID)

    assert (then.code, then.out) == (6, "")
    assert f"it is kept as declared already: {ID}" in then.err


def test_a_secret_that_is_shown_is_named_and_attached_once_its_file_is_there(
    run: Type, wanted: str, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    cloud.put(ID, {**SHOWN, "key": "hunter2"})

    first = run("resources", "import", ID, "--type", "Acme.Toys/robots")
    nothing = run("get", "resources").err
    (tmp_path / "secrets" / "r2-key").write_text("hunter2\n")
    again = run("resources", "import", ID)

    assert "  key:\n    fromSecret: r2-key\n" in first.out
    assert "not attached, as a secret is missing: key" in first.err
    assert f"hint: write it into {tmp_path / 'secrets' / 'r2-key'}; then apply" in first.err
    assert "hunter2" not in first.out + first.err + again.out + again.err
    assert "no database here" in nothing
    assert (again.code, again.out, cloud.writes) == (0, first.out, [])


def test_what_is_not_there_or_of_no_type_is_told(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    absent = run("resources", "import", ID)
    unknown = run("resources", "import", "/subscriptions/s")
    other = run("resources", "import", "/subscriptions/s", "--type", "Acme.Toys/robots")

    assert f"no such resource: {ID}" in absent.err
    assert "of no known type: /subscriptions/s" in unknown.err
    assert "not an id of Acme.Toys/robots: /subscriptions/s" in other.err
    assert len(cloud.asked) == 1


def test_what_others_change_before_it_is_attached_is_a_drift_and_told(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    cloud.put(ID, {**SHOWN, "size": "L"})
    seen = cloud.stored[ID.lower()]
    seen.old, seen.stale = SHOWN, 1

    then = run("resources", "import", ID)

    assert "  size: S\n" in then.out
    assert f"changed meanwhile, so it was written: PATCH {ID}" in then.err
    assert [said for _, _, said in cloud.writes] == [{"size": "S"}]
