"""`fairlead get resources` and `watch`: what people see of what is reconciled."""

import json
from pathlib import Path

import msgspec
import pytest

from fairlead.areas.resources.commands import nouns
from fairlead.areas.resources.view import Summary
from tests.simulated_cloud import SimulatedCloud
from tests.unit.areas.resources.commands.test_reconcile import (
    ID,
    WANTED,
    Type,
    cloud,
    file,
    run,
    wanted,
    written,
)

__all__ = ["cloud", "file", "run", "wanted"]


@pytest.mark.requirement("resources R32")
def test_what_was_applied_is_listed_with_its_id_and_its_next_look(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    run("resources", "apply", wanted)

    (one,) = json.loads(run("get", "resources", "-o", "json").out)
    heads, row = run("get", "resources", "--where", "phase=Ready").out.splitlines()

    assert (one["id"], one["type"], one["phase"]) == (ID, "Acme.Toys/robots", "Ready")
    assert (one["why"], one["differs"]) == ("", [])
    assert one["last_write"] < one["updated"] < one["next"]
    assert heads.split("  ")[0] == "RESOURCE"
    assert row.startswith(f"{ID}  Ready  -  ")
    assert run("get", "resources", "--where", "phase=Failed").err == "no resources\n"


def test_what_failed_says_why_and_what_it_would_have_changed(
    run: Type, wanted: str, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    run("resources", "apply", wanted)
    written(tmp_path, "r2.yaml", WANTED.replace("size: L", "size: S"))
    cloud.behaviour.style, cloud.behaviour.polls = "azure-async-operation", 1
    cloud.failures.append({"code": "QuotaExceeded", "message": "no robots left"})
    run("resources", "apply", wanted)

    one = json.loads(run("get", "resource", ID.strip("/"), "-o", "json").out)
    shown = run("get", "resource", ID.upper()).out

    assert (one["phase"], one["why"]) == ("Failed", "Refused: QuotaExceeded: no robots left")
    assert [each["path"] for each in one["differs"]] == ["size"]
    assert "why         Refused: QuotaExceeded: no robots left\n" in shown
    assert shown.splitlines()[-3:-1] == ["DIFFERS", "PATH  WHY"]
    assert f"Failed  size  {one['why']}" in nouns.line(msgspec.convert(one, Summary))


def test_an_id_that_nobody_declared_is_told_with_where_to_look(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    run("resources", "apply", wanted)

    then = run("get", "resource", f"{ID}3")

    assert then.code != 0
    assert f"no such resource: {ID}3" in then.err
    assert "hint: list them with fairlead get resources" in then.err
